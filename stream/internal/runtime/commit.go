package runtime

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/zap"

	"github.com/semelstream/semel/internal/assert"
	"github.com/semelstream/semel/internal/seam"
	"github.com/semelstream/semel/state"
)

// commitDue says that it is time to commit, or, while a transaction is ending,
// that the next one cannot go on without its end.
func (w *worker) commitDue() bool {
	if w.begun.IsZero() {
		return false
	}
	var dirty int64
	for _, t := range w.order {
		if t.commitSoon {
			return true
		}
		if t.db != nil {
			dirty += t.db.DirtyBytes()
		}
	}
	if dirty > w.app.cfg.TxnBytes || w.stopping != nil {
		return true
	}
	if w.ending != nil {
		return false // it is processed on until that is over
	}
	// A clock that was set back says nothing about how long it has been.
	if d := w.app.env.Clock.Now().Sub(w.begun); d >= w.app.cfg.CommitInterval || d < 0 {
		return true
	}
	// Positions that moved past control records alone can wait.
	return w.app.cfg.Continuous && (w.records > 0 || w.transit.output) && !w.gathering() && !w.ready()
}

// commit makes everything since the last commit one atomic step and waits for
// it. After an error the session is over.
func (w *worker) commit(ctx context.Context) error {
	if err := w.close(ctx); err != nil {
		return err
	}
	return w.awaitEnd(ctx)
}

// close closes the open transaction, in the order of the design's commit
// protocol, and lets it end off this loop; the next one begins. It waits for
// the end of the one before: a transaction is not prepared, and its changelog
// records are not made, before the one before is known to be committed. After an
// error the session is over.
func (w *worker) close(ctx context.Context) error {
	if err := w.awaitEnd(ctx); err != nil {
		return err
	}
	if w.begun.IsZero() {
		return nil
	}
	begun, records := w.begun, w.records
	w.app.env.Stops.At("C1")
	if err := w.flush(ctx); err != nil { // C2
		w.transactionEnded(begun, records, err)
		return err
	}
	if c := w.log.Check(zap.DebugLevel, "committing"); c != nil {
		c.Write(zap.Int("records", records), zap.Bool("output", w.transit.output))
	}
	w.turn(ctx)
	return nil
}

// flush is C2: what waits for the commit goes out, then the last value of each
// changed key goes to the changelogs.
func (w *worker) flush(ctx context.Context) error {
	for _, t := range w.order {
		if !t.touched {
			continue
		}
		if err := t.locked(t.emit); err != nil {
			return err
		}
		if err := w.handOverMuch(ctx, t); err != nil {
			return err
		}
		if err := t.logChanges(); err != nil {
			return err
		}
		if err := w.handOverMuch(ctx, t); err != nil {
			return err
		}
	}
	return w.handOverAll(ctx)
}

// emit sends on what aggregates hold back. A failure here has no one record
// to blame.
func (t *task) emit() error {
	err := t.inst.Flush()
	if err == nil && t.tooLarge != nil {
		err = t.takeTooLarge()
	}
	if err != nil {
		return t.unblamed("sending results at the commit", err)
	}
	return nil
}

// unblamed is an error that no record is to blame for, and that no policy lets
// pass any more.
func (t *task) unblamed(what string, err error) error {
	if t.corrupted(err) {
		return t.damage(err)
	}
	var u *unlearned
	if errors.As(err, &u) {
		return u
	}
	return fatalf("task %s: %s: %w", t.id, what, err)
}

// logChanges writes the changelog records.
func (t *task) logChanges() error {
	if t.db == nil {
		return nil
	}
	t.db.Lock()
	defer t.db.Unlock()
	for _, s := range t.stores {
		s.logged = false
	}
	err := t.db.Changes(func(p *state.Part, key, value []byte, ms int64) error {
		s := t.storeOf(p)
		if s.log == nil {
			return nil
		}
		s.logged = true
		err := s.log.Log(stager{t}, key, value, ms)
		if t.tooLarge != nil {
			return fatal{t.rowTooLarge(s)}
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("task %s: writing changelogs: %w", t.id, err)
	}
	return nil
}

// A stager is the way of changes into the transaction.
type stager struct{ t *task }

// Log stages a changelog record.
func (s stager) Log(tp seam.TP, key, value []byte, ms int64, headers []kgo.RecordHeader) (*kgo.Record, error) {
	sink, err := s.t.Sink(tp.Topic)
	if err != nil {
		return nil, err
	}
	s.t.Stage(sink, tp.Partition, key, value, ms, headers)
	if s.t.tooLarge != nil {
		return nil, errTooLarge
	}
	return s.t.staged[len(s.t.staged)-1], nil
}

// errTooLarge is for the changelog's writer; the task has the whole story.
var errTooLarge = errors.New("record too large")

// rowTooLarge says that a row does not fit its changelog. No one record is to
// blame, so that no policy can help.
func (t *task) rowTooLarge(s *taskStore) error {
	var size *Fault
	errors.As(t.takeTooLarge(), &size)
	return fault("TOO-LARGE", "a row is too large for its changelog", fmt.Sprintf("task %s, store %s, topic %s", t.id, s.spec.Name, s.tp.Topic),
		size.Err, size.Do)
}

func (t *task) storeOf(p *state.Part) *taskStore {
	for _, s := range t.stores {
		if s.part == p {
			return s
		}
	}
	assert.That(false, "task %s has no such store", t.id)
	return nil
}

// times are the named times of the task now.
func (t *task) times() map[string]int64 {
	named := map[string]int64{}
	if t.streamTime != NoTime {
		named[streamTimeName] = t.streamTime
	}
	t.inst.Save(func(name string, ms int64) { named[name] = ms })
	return named
}

// restart begins the worker's next transaction.
func (w *worker) restart() {
	w.begun, w.gathered, w.records = time.Time{}, false, 0
}

// moved is the store's new position in its changelog.
func (s *taskStore) moved(offs seam.Offsets) (int64, bool) {
	if s.source != nil {
		o, ok := offs[s.source.tp]
		return o.At, ok
	}
	if s.log == nil {
		return 0, false
	}
	return s.log.Committed()
}
