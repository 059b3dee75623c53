package runtime

import (
	"context"
	"errors"
	"slices"

	"go.uber.org/zap"

	"github.com/semelstream/semel/changelog"
	"github.com/semelstream/semel/internal/seam"
)

// obey meets the orders in the inbox.
func (w *worker) obey(ctx context.Context) error {
	over, err := w.meetEnd(ctx)
	if err != nil {
		return err
	}
	orders := w.take()
	for i, o := range orders {
		if err := w.meet(ctx, o); err != nil {
			w.putBack(orders[i+1:])
			return err
		}
	}
	w.closeLeaving()
	if over && w.commitDue() {
		return w.close(ctx) // before a poll waits for more
	}
	return nil
}

// putBack keeps orders for later.
func (w *worker) putBack(orders []*order) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.inbox = append(slices.Clone(orders), w.inbox...)
}

func (w *worker) meet(ctx context.Context, o *order) error {
	switch o.kind {
	case orderAssign, orderPause:
		return nil // openMissing, or rest, follows
	case orderRevoke:
		return w.revoke(ctx, o)
	case orderPrepared:
		return w.prepared(ctx, o.job)
	case orderWritten:
		return w.written(o.written)
	case orderCommit:
		return w.commit(ctx)
	default:
		return w.stop(ctx, o)
	}
}

// revoke commits what the worker has in hand and gives tasks up. The whole
// transaction is committed, since it is one for all tasks.
func (w *worker) revoke(ctx context.Context, o *order) error {
	w.revoking = append(w.revoking, o)
	if err := w.awaitEnd(ctx); err != nil {
		return err
	}
	if w.involves(o.tasks) {
		if o.lost {
			// Others may own the tasks already. What was done for them must
			// not be committed, and everything else shares its transaction.
			return errLost
		}
		if err := w.commit(ctx); err != nil {
			return err
		}
	}
	w.giveUp(o)
	return nil
}

var errLost = errors.New("tasks were lost in the middle of a transaction")

// involves says that the open transaction has something of the tasks.
func (w *worker) involves(tasks []seam.Task) bool {
	return slices.ContainsFunc(tasks, func(id seam.Task) bool {
		t := w.tasks[id]
		return t != nil && t.touched
	})
}

// giveUp takes the tasks of a revocation out of the loop; they process nothing
// more. They are closed as soon as no other goroutine works on them, and are
// not opened again before.
func (w *worker) giveUp(o *order) {
	for _, id := range o.tasks {
		if t := w.tasks[id]; t != nil {
			w.leave(t, o)
		} else if err := w.release(id); err != nil {
			w.log.Error("closing stores", zap.Stringer("task", id), zap.Error(err))
		}
	}
}

func (w *worker) leave(t *task, o *order) {
	w.detach(t)
	delete(w.tasks, t.id)
	w.leaving[t.id] = leaving{t, o}
}

// leaving is a task that is to be closed.
type leaving struct {
	t     *task
	order *order
}

// closeLeaving closes tasks that nobody works on any more, and tells whoever
// waits for an order when all of its tasks are gone.
func (w *worker) closeLeaving() {
	for _, id := range w.leavingIDs() {
		l := w.leaving[id]
		if l.t.busy() {
			w.hurry(l.t)
			continue
		}
		delete(w.leaving, id)
		w.closeTask(l.t, l.order.lost)
	}
	w.revoking = slices.DeleteFunc(w.revoking, func(o *order) bool {
		for _, l := range w.leaving {
			if l.order == o {
				return false
			}
		}
		w.app.finished(o)
		return true
	})
}

func (w *worker) leavingIDs() []seam.Task {
	return sortedTasks(w.leaving)
}

// busy says that another goroutine works on the task.
func (t *task) busy() bool { return t.job != nil || t.write != nil }

func (w *worker) hurry(t *task) {
	if t.job != nil {
		w.app.cancel(t.job)
	}
}

// closeTask closes a task that is out of the loop and whose work is committed.
func (w *worker) closeTask(t *task, dirty bool) {
	if t.inst != nil {
		if err := t.inst.Close(dirty); err != nil {
			w.log.Warn("closing processors", zap.Stringer("task", t.id), zap.Error(err))
		}
	}
	w.settle(t)
}

// detach takes a task out of the worker's loop.
func (w *worker) detach(t *task) {
	w.order = slices.DeleteFunc(w.order, func(x *task) bool { return x == t })
	w.running.Store(int32(len(w.order)))
	w.sinks.calm()
	w.app.closed(t)
	for _, in := range t.inputs {
		if w.inputs[in.tp] == in {
			delete(w.inputs, in.tp)
			delete(w.owners, in.tp)
			if w.txn != nil {
				w.txn.Unassign(in.tp)
			}
		}
	}
}

// prepared puts a task to work whose offsets and stores are ready.
func (w *worker) prepared(ctx context.Context, j *prepareJob) error {
	t := j.t
	t.job = nil
	switch {
	case w.tasks[t.id] != t:
		return nil // it is leaving
	case j.err == nil:
		return w.activate(ctx, t, j)
	case errors.Is(j.err, changelog.ErrCanceled):
		return nil // a revocation is in the inbox
	default:
		return t.damage(j.err)
	}
}

// stop commits and closes everything.
func (w *worker) stop(ctx context.Context, o *order) error {
	w.stopping = o
	if err := w.commit(ctx); err != nil {
		return err
	}
	for _, t := range w.sorted() {
		w.leave(t, o)
	}
	return nil
}
