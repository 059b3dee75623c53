package state

import (
	"slices"

	"github.com/semelstream/semel/internal/assert"
)

// set changes an entry in the open transaction.
func (o *overlay[V]) set(idx uint32, v V, time int64, has bool) {
	e := o.at(idx)
	if e.flags&live == 0 { // the assertion's arguments cost an allocation
		assert.That(false, "store %s: a Ref is used after it ended", o.p.name)
	}
	if e.mark != o.d.gen {
		o.logUndo(e, idx)
	}
	if e.tx[o.d.side&1] == 0 {
		o.logTx(e, idx)
	}
	o.put(idx, e, v, time, has)
}

// put is all that changes an entry's row.
func (o *overlay[V]) put(idx uint32, e *entry[V], v V, time int64, has bool) {
	if had := e.flags&present != 0; had != has {
		e.flags ^= present
		o.rows.add(has)
		if has {
			o.came(idx)
		} else {
			o.went(idx)
		}
	}
	e.v, e.time = v, time
	o.resize(e)
}

func (o *overlay[V]) logUndo(e *entry[V], idx uint32) {
	if o.gen != o.d.gen { // the first change of this store since the mark
		clear(o.undos)
		o.undos = o.undos[:0]
		o.gen, o.txMark = o.d.gen, len(o.logs[o.d.side&1])
	}
	o.undos = append(o.undos, before[V]{e.v, e.time, idx, e.flags&present != 0, e.tx[o.d.side&1] == 0})
	e.mark = o.gen
}

func (o *overlay[V]) logTx(e *entry[V], idx uint32) {
	if e.clean() {
		o.pin(e, idx)
	}
	side := o.d.side & 1
	o.logs[side] = append(o.logs[side], before[V]{v: e.v, time: e.time, idx: idx, has: e.flags&present != 0})
	e.tx[side] = uint32(len(o.logs[side]))
	o.d.dirty[side] += int64(e.size)
}

// undo goes back to the last mark.
func (o *overlay[V]) undo() {
	o.gone.undo(o.d.gen)
	o.clock.undo(o.d.gen)
	if o.gen != o.d.gen { // nothing changed since
		return
	}
	for _, u := range o.undos { // each entry at most once
		e := o.at(u.idx)
		o.put(u.idx, e, u.v, u.time, u.has)
		if u.first {
			o.leaveTx(e, o.d.side&1)
		}
	}
	clear(o.undos)
	o.undos = o.undos[:0]
	log := &o.logs[o.d.side&1]
	clear((*log)[o.txMark:])
	*log = (*log)[:o.txMark]
}

// leaveTx makes e unchanged in the transaction of a side.
func (o *overlay[V]) leaveTx(e *entry[V], side uint8) {
	e.tx[side] = 0
	o.d.dirty[side] -= int64(e.size)
	if e.clean() {
		o.unpin(e)
	}
}

// isNothing: the row came and went in the open transaction, or was and is
// absent.
func (o *overlay[V]) isNothing(t *before[V], e *entry[V]) bool {
	return !t.has && e.flags&present == 0
}

func (o *overlay[V]) changes(f func(key, value []byte, time int64) error) error {
	if o.p.rec.keys.kind == KindWindowOnce {
		return o.bundles(f)
	}
	return o.eachRow(func(t *before[V], e *entry[V]) error {
		o.lkey = o.p.rec.keys.toLog(o.lkey[:0], o.keyOf(e))
		return o.emit(t, e, f)
	})
}

// eachRow calls f with the entries that the open transaction changed, and as they
// were before it, in order of first change. f may change rows, after which it
// looks at t no more: those that it changes first in this transaction come later.
func (o *overlay[V]) eachRow(f func(t *before[V], e *entry[V]) error) error {
	side := o.d.side & 1
	for i := 0; i < len(o.logs[side]); i++ { //nolint:intrange // f may make it longer
		o.touchChanged(o.logs[side], i)
		t := &o.logs[side][i]
		e := o.at(t.idx)
		if o.isNothing(t, e) {
			continue
		}
		if err := f(t, e); err != nil {
			return err
		}
	}
	return nil
}

// emitRow is what a changed entry is in the changelog, under the key lkey.
func (o *overlay[V]) emitRow(_ *before[V], e *entry[V], f func(key, value []byte, time int64) error) error {
	value, err := o.encode(nil, e.v, e.flags&present != 0)
	if err != nil {
		return err
	}
	return f(o.lkey, value, e.time)
}

// encode puts the value behind dst, in scratch memory; nil if there is none.
func (o *overlay[V]) encode(dst []byte, v V, has bool) ([]byte, error) {
	if !has {
		return nil, nil
	}
	if o.eval == nil {
		o.eval = make([]byte, 0, 64) // never nil, which would delete
	}
	out, err := o.value.Append(append(o.eval[:0], dst...), v)
	if err != nil {
		return nil, err
	}
	o.eval = out
	return out, nil
}

// committed ends the closing transaction: its rows wait for the engine. What
// the open one made of them since is not looked at.
func (o *overlay[V]) committed() {
	side := (o.d.side + 1) & 1
	log := o.logs[side]
	for i := range log {
		o.touchChanged(log, i)
		t := &log[i]
		e := o.at(t.idx)
		if t.has || o.closedRow(e).has { // else it came and went
			o.stow(e, t.idx)
		}
		o.leaveTx(e, side)
	}
	if o.p.rec.keys.kind.expires() {
		o.d.hold.rows += int64(len(log))
	}
	clear(log)
	o.logs[side] = log[:0]
	o.gone.commit()
	o.clock.commit()
}

// closedRow is e's row without the open transaction.
func (o *overlay[V]) closedRow(e *entry[V]) before[V] {
	side := o.d.side & 1
	if at := e.tx[side]; at != 0 {
		return o.logs[side][at-1]
	}
	return before[V]{v: e.v, time: e.time, has: e.flags&present != 0}
}

// committedRow is e's row without the open and the closing transaction.
func (o *overlay[V]) committedRow(e *entry[V]) before[V] {
	side := (o.d.side + 1) & 1
	if at := e.tx[side]; at != 0 {
		return o.logs[side][at-1]
	}
	return o.closedRow(e)
}

// stow puts e among the pending ones.
func (o *overlay[V]) stow(e *entry[V], idx uint32) {
	if e.flags&stowed == 0 {
		o.d.pending += int64(e.size)
	}
	if e.flags&pending == 0 {
		e.flags |= pending
		o.pend = append(o.pend, idx)
	}
}

func (o *overlay[V]) waits() bool { return len(o.pend) > 0 }

func (o *overlay[V]) idle() bool {
	o.pend = slices.DeleteFunc(o.pend, func(idx uint32) bool { return o.at(idx).flags&pending == 0 })
	return len(o.logs[0])+len(o.logs[1])+len(o.pend)+len(o.flight) == 0
}

// drop forgets everything. It touches nothing of the DB if there is nothing.
func (o *overlay[V]) drop() {
	o.gone.stored = 0 // what is restored may be before it again
	o.wholeKnown = false
	if o.next == 1 && !o.rows.known {
		return
	}
	for idx := uint32(1); idx < o.next; idx++ {
		if e := o.at(idx); e.flags&live != 0 {
			o.charge(e, -int64(e.size))
		}
	}
	o.clear()
}

// freeze keeps what is not a row as the closing transaction has it.
func (o *overlay[V]) freeze() {
	o.gone.freeze()
	o.clock.freeze()
}

// rewind takes back what is not a row.
func (o *overlay[V]) rewind() {
	o.gone.rewind()
	o.clock.rewind()
}
