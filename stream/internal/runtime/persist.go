package runtime

import (
	"context"
	"errors"

	"go.uber.org/zap"

	"github.com/semelstream/semel/internal/seam"
	"github.com/semelstream/semel/state"
)

// A writeBack is committed rows on their way to disk, off the worker's loop.
type writeBack struct {
	t     *task
	write *state.Write // nil to flush only
	flush bool
	err   error
}

// persistDue is C7: now and then, what is committed goes to disk. It is apart
// from the commit on purpose; a crash in between costs a replay of the
// changelog's tail, and a write at each commit would cost half of the CPU.
func (w *worker) persistDue() {
	now := w.app.env.Clock.Now()
	for _, t := range w.order {
		t.note()
		if t.db == nil || t.write != nil {
			continue
		}
		due := !now.Before(t.storeAt) || t.db.PendingBytes() > w.app.cfg.StoreBytes
		switch {
		case due && t.db.PendingBytes() > 0:
			w.persist(t)
		case t.unflushed && !now.Before(t.flushAt):
			w.writeBack(t, nil, true)
		}
	}
}

func (w *worker) persist(t *task) {
	now := w.app.env.Clock.Now()
	t.storeAt = now.Add(w.app.cfg.StoreInterval)
	t.db.Lock()
	write := t.db.Persist()
	t.db.Unlock()
	if write == nil {
		return
	}
	w.writeBack(t, write, !now.Before(t.flushAt))
}

// writeBack commits a write, if there is one, and flushes, on a goroutine of
// its own.
func (w *worker) writeBack(t *task, write *state.Write, flush bool) {
	wb := &writeBack{t: t, write: write, flush: flush}
	if flush {
		t.flushAt = w.app.env.Clock.Now().Add(w.app.cfg.FlushInterval)
	}
	t.write = wb
	w.app.env.Go("store "+t.id.String(), func() {
		if write != nil {
			wb.err = write.Commit()
		}
		if wb.err == nil {
			w.app.env.Stops.At("C7")
			if flush {
				wb.err = t.db.Flush()
			}
		}
		w.post(&order{kind: orderWritten, written: wb})
	})
}

// written takes a write back. Rows that did not get to disk are still in
// memory and are tried again; only when they are too many does the app stop.
func (w *worker) written(wb *writeBack) error {
	t := wb.t
	t.write = nil
	t.unflushed = !wb.flush || wb.err != nil
	t.db.Lock()
	t.db.Persisted(wb.write, wb.err)
	t.db.Unlock()
	if wb.err == nil {
		return nil
	}
	w.log.Error("committed state could not be written to disk; it stays in memory and will be tried again",
		zap.Stringer("task", t.id), zap.Error(wb.err))
	if t.db.PendingBytes() > 8*w.app.cfg.StoreBytes {
		return fault("DISK", "committed state cannot be written to disk", "task "+t.id.String(), wb.err,
			"make room on the disk or mend it, and start again: nothing is lost, the changelog has it all")
	}
	return nil
}

// settle writes what is committed and closes the task's stores. What does not
// get to disk is in the changelog.
func (w *worker) settle(t *task) {
	if t.db == nil {
		return
	}
	var err error
	t.db.Lock()
	if write := t.db.Persist(); write != nil {
		err = write.Commit()
		t.db.Persisted(write, err)
	}
	t.db.Unlock()
	w.app.env.Stops.At("close")
	if err = errors.Join(err, t.db.Close()); err != nil {
		w.log.Warn("stores were not closed cleanly; they will be restored from their changelogs", zap.Stringer("task", t.id), zap.Error(err))
	}
}

// purgeDue deletes processed records of repartition topics, which nobody else
// reads, up to committed offsets and no further.
func (w *worker) purgeDue(ctx context.Context, offs seam.Offsets) {
	now := w.app.env.Clock.Now()
	if now.Before(w.purgeAt) {
		return
	}
	w.purgeAt = now.Add(w.app.cfg.PurgeInterval)
	before := map[seam.TP]int64{}
	for tp, o := range offs {
		if in := w.inputs[tp]; in != nil && in.topic.Internal && o.At > 0 {
			before[tp] = o.At
		}
	}
	if len(before) == 0 {
		return
	}
	w.app.env.Go("purge", func() {
		if err := w.app.env.Broker.Purge(ctx, before); err != nil {
			w.log.Warn("processed records of repartition topics could not be deleted; it will be tried again", zap.Error(err))
		}
	})
}
