package state

import "github.com/semelstream/semel/internal/assert"

// set changes an entry in the open transaction.
func (o *overlay[V]) set(idx uint32, v V, time int64, has bool) {
	e := o.at(idx)
	if e.flags&live == 0 { // the assertion's arguments cost an allocation
		assert.That(false, "store %s: a Ref is used after it ended", o.p.name)
	}
	if e.mark != o.d.gen {
		o.logUndo(e, idx)
	}
	if e.tx == 0 {
		o.logTx(e, idx)
	}
	o.put(e, v, time, has)
}

// put is all that changes an entry's row.
func (o *overlay[V]) put(e *entry[V], v V, time int64, has bool) {
	if had := e.flags&present != 0; had != has {
		e.flags ^= present
		o.rows.add(has)
	}
	e.v, e.time = v, time
	o.resize(e)
}

func (o *overlay[V]) logUndo(e *entry[V], idx uint32) {
	if o.gen != o.d.gen { // the first change of this store since the mark
		clear(o.undos)
		o.undos = o.undos[:0]
		o.gen, o.txMark = o.d.gen, len(o.tx)
	}
	o.undos = append(o.undos, before[V]{e.v, e.time, idx, e.flags&present != 0, e.tx == 0})
	e.mark = o.gen
}

func (o *overlay[V]) logTx(e *entry[V], idx uint32) {
	if e.flags&stowed == 0 {
		o.pin(e, idx)
	}
	o.tx = append(o.tx, before[V]{v: e.v, time: e.time, idx: idx, has: e.flags&present != 0})
	e.tx = uint32(len(o.tx))
	o.d.dirty += int64(e.size)
}

// undo goes back to the last mark.
func (o *overlay[V]) undo() {
	o.gone.undo(o.d.gen)
	if o.gen != o.d.gen { // nothing changed since
		return
	}
	for _, u := range o.undos { // each entry at most once
		e := o.at(u.idx)
		o.put(e, u.v, u.time, u.has)
		if u.first {
			o.leaveTx(e)
		}
	}
	clear(o.undos)
	o.undos = o.undos[:0]
	clear(o.tx[o.txMark:])
	o.tx = o.tx[:o.txMark]
}

// leaveTx makes e unchanged in the open transaction.
func (o *overlay[V]) leaveTx(e *entry[V]) {
	e.tx = 0
	o.d.dirty -= int64(e.size)
	if e.flags&stowed == 0 {
		o.unpin(e)
	}
}

// isNothing: the row came and went in the transaction, or was and is absent.
func (o *overlay[V]) isNothing(t *before[V], e *entry[V]) bool {
	return !t.has && e.flags&present == 0
}

func (o *overlay[V]) changes(f func(key, value []byte, time int64) error) error {
	for i := range o.tx {
		t := &o.tx[i]
		e := o.at(t.idx)
		if o.isNothing(t, e) {
			continue
		}
		o.lkey = o.p.rec.keys.toLog(o.lkey[:0], o.keyOf(e))
		if err := o.emit(t, e, f); err != nil {
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

// committed ends the open transaction: its rows wait for the engine.
func (o *overlay[V]) committed() {
	for i := range o.tx {
		t := &o.tx[i]
		e := o.at(t.idx)
		if !o.isNothing(t, e) {
			o.stow(e, t.idx)
		}
		o.leaveTx(e)
	}
	clear(o.tx)
	o.tx = o.tx[:0]
	o.gone.commit()
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

func (o *overlay[V]) idle() bool { return len(o.tx)+len(o.pend)+len(o.flight) == 0 }

// drop forgets everything. It touches nothing of the DB if there is nothing.
func (o *overlay[V]) drop() {
	o.gone.stored = 0 // what is restored may be before it again
	if o.next == 1 && !o.rows.known {
		return
	}
	for idx := uint32(1); idx < o.next; idx++ {
		e := o.at(idx)
		size := int64(e.size)
		switch {
		case e.flags&live == 0:
			continue
		case e.tx == 0 && e.flags&stowed == 0:
			o.d.clean -= size
		}
		if e.tx != 0 {
			o.d.dirty -= size
		}
		if e.flags&stowed != 0 {
			o.d.pending -= size
		}
	}
	o.clear()
}

// rewind takes back what is not a row.
func (o *overlay[V]) rewind() { o.gone.rewind() }
