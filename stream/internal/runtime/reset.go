package runtime

import (
	"context"
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"go.uber.org/zap"

	"github.com/semelstream/semel/internal/seam"
)

// reset drops everything that is not known to be committed: the producer, the
// instances, the overlays. What was committed and is not on disk comes back
// from the changelog.
func (w *worker) reset(ctx context.Context, why error) {
	w.log.Warn("starting over from what is committed", zap.Error(why))
	w.app.env.Stops.At("reset")
	for _, x := range w.underWay() {
		x.cancel()
	}
	w.closeTxn()
	w.quiesce(ctx)
	w.dropEnding(why)
	w.dropOpen()
	for _, t := range w.sorted() {
		if mutant == skipRewind {
			w.noteLast(t)
		}
		w.detach(t)
		delete(w.tasks, t.id)
		if t.inst != nil {
			if err := t.inst.Close(true); err != nil {
				w.log.Warn("closing processors", zap.Stringer("task", t.id), zap.Error(err))
			}
		}
		switch {
		case t.db == nil:
		case t.corrupt != nil:
			w.moveAside(t)
		default:
			w.rewind(t)
		}
	}
	for _, o := range w.revoking {
		w.giveUp(o) // of those whose commit failed only the stores are left
	}
	w.closeLeaving()
	w.fresh()
	w.spare = nil
	w.restart()
	w.app.updateState()
}

// rewind takes a task's stores back to what is on disk and keeps them open for
// the next session.
func (w *worker) rewind(t *task) {
	t.db.Lock()
	err := t.db.Rewind()
	t.db.Unlock()
	if err != nil {
		err = errors.Join(err, t.db.Close())
		w.log.Error("stores could not be taken back; they will be opened anew", zap.Stringer("task", t.id), zap.Error(err))
		return
	}
	w.kept[t.id] = t.db
}

// release closes stores that were kept for a task that is not ours any more.
func (w *worker) release(id seam.Task) error {
	db := w.kept[id]
	if db == nil {
		return nil
	}
	delete(w.kept, id)
	return db.Close()
}

func (w *worker) releaseAll() {
	for _, id := range sortedTasks(w.kept) {
		if err := w.release(id); err != nil {
			w.log.Error("closing stores", zap.Stringer("task", id), zap.Error(err))
		}
	}
}

// quiesce waits until no other goroutine works on a task of this worker.
// Orders that come meanwhile are kept.
func (w *worker) quiesce(ctx context.Context) {
	var kept []*order
	for w.anyBusy() {
		w.signal.Wait(context.WithoutCancel(ctx), 100*time.Millisecond)
		for _, o := range w.take() {
			switch o.kind {
			case orderPrepared:
				o.job.t.job = nil
			case orderWritten:
				if err := w.written(o.written); err != nil {
					w.log.Error("writing state", zap.Error(err))
				}
			default:
				kept = append(kept, o)
			}
		}
	}
	w.putBack(kept)
}

func (w *worker) anyBusy() (busy bool) {
	for _, x := range w.underWay() {
		busy = busy || !w.over(x)
	}
	for _, t := range w.sorted() {
		if t.busy() {
			w.hurry(t)
			busy = true
		}
	}
	for _, id := range w.leavingIDs() {
		if t := w.leaving[id].t; t.busy() {
			w.hurry(t)
			busy = true
		}
	}
	return busy
}

// drop is the end of a worker that cannot go on. From here on its orders are
// met by doing nothing.
func (w *worker) drop(ctx context.Context) {
	open := len(w.underWay()) > 0
	w.reset(ctx, errors.New("the worker ends"))
	w.releaseAll()
	if open {
		w.abandon(ctx)
	}
	w.mu.Lock()
	w.dead = true
	left := w.inbox
	w.inbox = nil
	w.mu.Unlock()
	for _, o := range left {
		w.app.finished(o)
	}
	if w.stopping != nil {
		w.app.finished(w.stopping)
	}
}

// abandon aborts the transaction that the worker left open, which would hold
// up the readers of what it wrote, and the next owners of its tasks, until its
// timeout.
func (w *worker) abandon(ctx context.Context) {
	t, err := w.app.env.Broker.Txn(ctx, w.app.txnID(w.id))
	if err != nil {
		w.log.Warn("the open transaction could not be aborted; it ends with its timeout", zap.Error(err))
		return
	}
	t.Close()
}

func isOutOfRange(err error) bool { return errors.Is(err, kerr.OffsetOutOfRange) }

// noteLast is a mutant.
func (w *worker) noteLast(t *task) {
	if w.last == nil {
		w.last = map[seam.TP]int64{}
	}
	for _, in := range t.inputs {
		if t.inst != nil {
			w.last[in.tp], _ = in.position()
		}
	}
}
