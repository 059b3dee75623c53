package runtime

import (
	"context"
	"fmt"
	"time"

	"github.com/semelstream/semel/internal/seam"
	"github.com/semelstream/semel/state"
)

// An ending is a transaction on its way to its commit, off the worker's loop,
// which processes the records of the next one meanwhile. It is what was true
// when the transaction closed: nothing that the next one does reaches it.
//
// There is one at a time. If it does not end well, the next transaction is lost
// with it: it was made from what this one did.
type ending struct {
	txn     seam.Ending
	member  seam.Member // read when the transaction closed, never kept
	offsets seam.Offsets
	output  bool // something was produced
	tasks   []ended
	begun   time.Time
	records int
	cancel  context.CancelFunc

	// Guarded by worker.mu.
	written bool // all its records are, so that others may follow them
	done    bool
	err     error
	stored  bool // of mutants
}

// ended is the part of a task in a transaction that is ending.
type ended struct {
	t     *task
	drops map[dropKey]int
}

// turn takes the open transaction out of the worker's hands and begins the next
// one.
func (w *worker) turn() *ending {
	e := &ending{offsets: seam.Offsets{}, output: w.produced, written: !w.produced, begun: w.begun, records: w.records}
	for _, t := range w.order {
		t.commitSoon = false
		if t.touched {
			w.freeze(t, e)
		}
	}
	e.member = w.app.group.Member()
	e.txn = w.txn.Turn()
	w.arena.turn()
	w.sinks.ended()
	w.restart()
	return e
}

// freeze takes down the positions of a task's inputs with the times that must
// survive, and closes the transaction of its stores.
func (w *worker) freeze(t *task, e *ending) {
	t.touched = false
	named := t.times()
	for _, in := range t.inputs {
		at, epoch := in.position()
		e.offsets[in.tp] = seam.Offset{At: at, Epoch: epoch, Metadata: encodeMeta(in.time, named)}
	}
	part := ended{t: t}
	if len(t.drops) > 0 {
		part.drops, t.drops = t.drops, map[dropKey]int{}
	}
	e.tasks = append(e.tasks, part)
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

// end is C3 to C5, on a goroutine of its own. It touches nothing of the
// worker's.
func (w *worker) end(ctx context.Context, e *ending) {
	err := w.endSteps(ctx, e)
	if err == nil {
		w.app.env.Stops.At("C5")
	}
	w.note(func() { e.done, e.err = true, err })
}

func (w *worker) endSteps(ctx context.Context, e *ending) error {
	if !e.output {
		// Without a record the client would send no EndTxn, and the offsets
		// would leak into the next transaction.
		if err := e.txn.CommitOffsets(ctx, e.member, e.offsets); err != nil {
			return fmt.Errorf("committing offsets: %w", err)
		}
		return nil
	}
	offs := e.offsets
	if mutant == offsetsOutside {
		if err := w.app.env.Broker.Commit(ctx, e.member, offs); err != nil {
			return err
		}
		offs = seam.Offsets{}
	}
	if err := e.txn.Prepare(ctx, e.member, offs); err != nil {
		return err
	}
	w.app.env.Stops.At("C4")
	w.note(func() { e.written = true })
	for mutant == storeBeforeEnd && !w.stored(e) && w.app.env.Clock.Sleep(ctx, time.Millisecond) == nil {
		continue
	}
	if err := e.txn.End(ctx, true); err != nil {
		return fmt.Errorf("the outcome of the commit is unknown: %w", err)
	}
	return nil
}

// note tells the worker how far its ending is.
func (w *worker) note(news func()) {
	w.mu.Lock()
	news()
	txn := w.txn
	w.mu.Unlock()
	if txn != nil {
		txn.Wake()
	}
	w.signal.Notify()
}

// progress is how far the ending is.
func (w *worker) progress() (written, done bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ending.written, w.ending.done, w.ending.err
}

// mayProduce says that records of the open transaction may go out: those of the
// one before are written. Before that they could overtake them.
func (w *worker) mayProduce() bool {
	if w.ending == nil || mutant == overtake {
		return true
	}
	written, _, _ := w.progress()
	return written
}

// meetEnd takes in that the ending transaction is over, if it is.
func (w *worker) meetEnd(ctx context.Context) (over bool, err error) {
	if w.ending == nil {
		return false, nil
	}
	e := w.ending
	written, done, err := w.progress()
	if mutant == storeBeforeEnd && written && e.output && !w.stored(e) {
		w.storeNow(e)
	}
	if mutant == prepareEarly && written {
		done, err = true, nil
	}
	if !done {
		return false, nil
	}
	if mutant == guessOutcome && err != nil && written && e.output {
		w.storeNow(e)
		err = nil
	}
	w.ending = nil
	if mutant != prepareEarly {
		e.cancel()
	}
	if err == nil {
		w.committed(e)
	}
	w.transactionEnded(e.begun, e.records, err)
	if err != nil {
		return true, err
	}
	w.app.env.Stops.At("C6")
	w.purgeDue(ctx, e.offsets)
	return true, nil
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

// awaitWritten waits until records may go out.
func (w *worker) awaitWritten(ctx context.Context) error {
	for !w.mayProduce() {
		if over, err := w.meetEnd(ctx); over || err != nil {
			return err
		}
		w.signal.Wait(context.WithoutCancel(ctx), time.Second)
	}
	return nil
}

// committed is C6: the transaction is known to be committed.
func (w *worker) committed(e *ending) {
	for _, part := range e.tasks {
		t := part.t
		w.app.count(t, part.drops)
		if t.db == nil || w.stored(e) {
			continue
		}
		t.db.Lock()
		t.db.Committed(func(p *state.Part) (int64, bool) { return t.storeOf(p).moved(e.offsets) })
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
	e := w.ending
	if e == nil {
		return
	}
	if _, done, err := w.progress(); done && err == nil {
		why = nil
	}
	w.ending = nil
	w.transactionEnded(e.begun, e.records, why)
}

// transactionEnded tells the app.
func (w *worker) transactionEnded(begun time.Time, records int, err error) {
	if h := w.app.cfg.Hooks.Transaction; h != nil {
		h(w.id, records, w.app.env.Clock.Now().Sub(begun), err)
	}
}

// storeNow is a mutant.
func (w *worker) storeNow(e *ending) {
	defer w.note(func() { e.stored = true })
	for _, part := range e.tasks {
		t := part.t
		if t.db == nil {
			continue
		}
		t.db.Committed(func(p *state.Part) (int64, bool) { return t.storeOf(p).moved(e.offsets) })
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
func (w *worker) stored(e *ending) bool {
	if mutant == "" {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return e.stored
}
