package runtime

import (
	"context"
	"fmt"
	"time"

	"github.com/semelstream/semel/internal/seam"
	"github.com/semelstream/semel/state"
)

// turn closes the open transaction, which its own goroutine ends from here on,
// and begins the next one.
func (w *worker) turn(ctx context.Context) {
	x := w.transit
	x.offsets, x.begun, x.records = seam.Offsets{}, w.begun, w.records
	for _, t := range w.order {
		t.commitSoon = false
		if t.touched {
			w.freeze(t, x)
		}
	}
	x.member = w.app.group.Member()
	next := w.newTransit(w.txn.Turn(), x)
	w.mu.Lock()
	x.closed, x.written = true, !x.output
	w.transit = next
	w.mu.Unlock()
	w.ending = x
	w.arena.turn()
	w.sinks.ended()
	w.restart()
	w.send(ctx, x)
}

// freeze takes down the positions of a task's inputs with the times that must
// survive, and closes the transaction of its stores.
func (w *worker) freeze(t *task, x *transit) {
	t.touched, t.expected = false, false
	named := t.times()
	for _, in := range t.inputs {
		at, epoch := in.position()
		x.offsets[in.tp] = seam.Offset{At: at, Epoch: epoch, Metadata: encodeMeta(in.time, named)}
	}
	part := ended{t: t}
	if len(t.drops) > 0 {
		part.drops, t.drops = t.drops, map[dropKey]int{}
	}
	x.tasks = append(x.tasks, part)
	if t.db == nil {
		return
	}
	t.db.Lock()
	defer t.db.Unlock()
	for name, ms := range named {
		t.db.SetMeta(name, ms)
	}
	t.db.SetMeta(storedAt, w.app.env.Clock.Now().UnixMilli())
	t.db.Freeze()
}

// endSteps is C3 to C5, when all records of the transaction are with the
// producer.
func (w *worker) endSteps(ctx context.Context, x *transit) error {
	w.app.env.Stops.At("C2")
	if !x.output {
		// Without a record the client would send no EndTxn, and the offsets
		// would leak into the next transaction.
		if err := x.txn.CommitOffsets(ctx, x.member, x.offsets); err != nil {
			return fmt.Errorf("committing offsets: %w", err)
		}
		return nil
	}
	offs := x.offsets
	if mutant == offsetsOutside {
		if err := w.app.env.Broker.Commit(ctx, x.member, offs); err != nil {
			return err
		}
		offs = seam.Offsets{}
	}
	if err := x.txn.Prepare(ctx, x.member, offs); err != nil {
		return err
	}
	w.app.env.Stops.At("C4")
	w.note(func() { x.written = true })
	for mutant == storeBeforeEnd && !w.stored(x) && w.app.env.Clock.Sleep(ctx, time.Millisecond) == nil {
		continue
	}
	if err := x.txn.End(ctx, true); err != nil {
		return fmt.Errorf("the outcome of the commit is unknown: %w", err)
	}
	return nil
}

// progress is how far the ending is.
func (w *worker) progress() (written, done bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ending.written, w.ending.done, w.ending.err
}

// meetEnd takes in that the ending transaction is over, if it is, and that the
// open one has failed, if it has.
func (w *worker) meetEnd(ctx context.Context) (over bool, err error) {
	if w.ending == nil {
		return false, w.openError()
	}
	x := w.ending
	written, done, err := w.progress()
	if mutant == storeBeforeEnd && written && x.output && !w.stored(x) {
		w.storeNow(x)
	}
	if mutant == prepareEarly && written {
		done, err = true, nil
	}
	if !done {
		return false, w.openError()
	}
	if mutant == guessOutcome && err != nil && written && x.output {
		w.storeNow(x)
		err = nil
	}
	w.ending = nil
	if mutant != prepareEarly {
		x.cancel()
	}
	if err == nil {
		w.committed(x)
		w.follow()
		w.spare = x
	}
	w.transactionEnded(x.begun, x.records, err)
	if err != nil {
		return true, err
	}
	w.app.env.Stops.At("C6")
	w.purgeDue(ctx, x.offsets)
	return true, nil
}

// openError is why the open transaction is lost.
func (w *worker) openError() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.transit == nil {
		return nil
	}
	return w.transit.err
}

// follow notes that there is no transaction before the open one any more.
func (w *worker) follow() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.transit.before = nil
}

// awaitEnd waits until no transaction is ending.
func (w *worker) awaitEnd(ctx context.Context) error {
	for w.ending != nil {
		over, err := w.meetEnd(ctx)
		if err != nil {
			return err
		}
		if !over {
			w.signal.Wait(context.WithoutCancel(ctx), time.Second)
		}
	}
	return nil
}

// committed is C6: the transaction is known to be committed.
func (w *worker) committed(x *transit) {
	for _, part := range x.tasks {
		t := part.t
		w.app.count(t, part.drops)
		if t.db == nil || w.stored(x) {
			continue
		}
		t.db.Lock()
		t.db.Committed(func(p *state.Part) (int64, bool) { return t.storeOf(p).moved(x.offsets) })
		if mutant == commitBoth {
			t.db.Committed(func(*state.Part) (int64, bool) { return 0, false })
		}
		t.db.Unlock()
	}
	w.arena.ended()
}

// dropEnding forgets a transaction whose end nobody waits for any more: the
// stable offsets say what became of it.
func (w *worker) dropEnding(why error) {
	x := w.ending
	if x == nil {
		return
	}
	if _, done, err := w.progress(); done && err == nil {
		why = nil
	}
	w.ending = nil
	w.transactionEnded(x.begun, x.records, why)
}

// transactionEnded tells the app.
func (w *worker) transactionEnded(begun time.Time, records int, err error) {
	if h := w.app.cfg.Hooks.Transaction; h != nil {
		h(w.id, records, w.app.env.Clock.Now().Sub(begun), err)
	}
}

// storeNow is a mutant.
func (w *worker) storeNow(x *transit) {
	defer w.note(func() { x.isStored = true })
	for _, part := range x.tasks {
		t := part.t
		if t.db == nil {
			continue
		}
		t.db.Committed(func(p *state.Part) (int64, bool) { return t.storeOf(p).moved(x.offsets) })
		if t.write != nil {
			continue
		}
		if write := t.db.Persist(); write != nil {
			err := write.Commit()
			t.db.Persisted(write, err)
			_ = t.db.Flush()
		}
	}
}

// stored says that a mutant has stored the rows already.
func (w *worker) stored(x *transit) bool {
	if mutant == "" {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return x.isStored
}
