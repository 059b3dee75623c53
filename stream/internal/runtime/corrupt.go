package runtime

import (
	"errors"
	"fmt"

	"go.uber.org/zap"

	"github.com/semelstream/semel/internal/seam"
	"github.com/semelstream/semel/state"
	"github.com/semelstream/semel/stream/internal/graph"
)

// A Quarantiner is Stores that can move a task's files aside, which nobody has
// open. Nothing is deleted: what went wrong can be looked into.
type Quarantiner interface {
	Quarantine(t seam.Task) (moved string, err error)
}

// Corruption is found when a damaged block is read, in the middle of a record
// or of a restore. It is no record's fault, so that no policy is asked; and the
// changelog has everything, so that nobody has to be woken. The session ends,
// the files go aside, and the task is restored into new ones.

// corrupted marks the task if err is corruption.
func (t *task) corrupted(err error) bool {
	if !errors.Is(err, state.ErrCorrupt) {
		return false
	}
	t.corrupt = err
	return true
}

// damaged is corruption of a task's store on its way up. It ends the session
// and not the app.
type damaged struct {
	task seam.Task
	err  error
}

func (d *damaged) Error() string { return fmt.Sprintf("task %s: %v", d.task, d.err) }
func (d *damaged) Unwrap() error { return d.err }

// damage is err, which is not fatal if it is corruption.
func (t *task) damage(err error) error {
	if t.corrupted(err) {
		return &damaged{t.id, err}
	}
	return err
}

// moveAside closes the stores of a task that are corrupt and moves their files
// away.
func (w *worker) moveAside(t *task) {
	if err := t.db.Close(); err != nil {
		w.log.Warn("closing corrupt stores", zap.Stringer("task", t.id), zap.Error(err))
	}
	w.app.quarantine(t.id, t.corrupt)
}

// quarantine says whether the files are out of the way.
func (a *App) quarantine(id seam.Task, why error) bool {
	q, ok := a.env.Stores.(Quarantiner)
	if !ok {
		return false
	}
	moved, err := q.Quarantine(id)
	if err != nil {
		a.log.Error("local state is corrupt and cannot be moved aside", zap.Stringer("task", id), zap.Error(err), zap.NamedError("found", why))
		return false
	}
	a.log.Error("local state is corrupt; it was moved aside and is rebuilt from the changelogs",
		zap.Stringer("task", id), zap.String("moved to", moved), zap.Error(why))
	return true
}

// openDB opens a task's stores, empty ones in the place of corrupt ones.
func (a *App) openDB(id seam.Task, sub *graph.Sub) (*state.DB, error) {
	db, err := a.tryOpenDB(id, sub)
	if errors.Is(err, state.ErrCorrupt) && a.quarantine(id, err) {
		db, err = a.tryOpenDB(id, sub)
	}
	if err == nil {
		return db, nil
	}
	do := "see the cause; the directory can be deleted while no process uses it: it is rebuilt from the changelogs"
	if !errors.Is(err, state.ErrCorrupt) && !errors.Is(err, state.ErrInUse) && !errors.Is(err, state.ErrFormat) {
		do = "see the cause; if another topology used this directory or app id, choose another AppID or StateDir"
	}
	return nil, fault("STATE", "the state of a task cannot be opened", "task "+id.String(), err, do)
}

func (a *App) tryOpenDB(id seam.Task, sub *graph.Sub) (*state.DB, error) {
	inMemory := true
	var specs []state.Spec
	for _, s := range sub.Stores {
		inMemory = inMemory && s.InMemory
		specs = append(specs, StoreSpec(s))
	}
	e, err := a.env.Stores.Open(id, inMemory)
	if err != nil {
		return nil, err
	}
	return state.Open(e, state.Options{Stores: specs, CacheBytes: a.cfg.CacheBytes, Logger: a.log}) // closes e if it fails
}
