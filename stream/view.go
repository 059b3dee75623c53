package stream

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/semelstream/semel/internal/seam"
	"github.com/semelstream/semel/state"
	"github.com/semelstream/semel/stream/internal/graph"
	"github.com/semelstream/semel/stream/internal/runtime"
)

// View reads the committed rows of a table, global table or key-value store on this instance
// while the app runs; of a [Versioned] table or a store of versions it reads the
// newest ones, and those of the past by GetAsOf. It fails with [ErrNoStore] if
// the topology has no store of that name.
func (a *App) View[K, V any](store string) (View[K, V], error) {
	for _, s := range a.topology.graph.Stores {
		if s.Name == store {
			return View[K, V]{store: store, app: a.runtime, versioned: s.Kind == graph.Versioned}, nil
		}
	}
	if a.topology.globals[store] != nil {
		return View[K, V]{store: store, app: a.runtime, global: true}, nil
	}
	return View[K, V]{}, fmt.Errorf("store %q: %w", store, ErrNoStore)
}

func (a *App) runtime() *runtime.App {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.rt
}

// A View of a store reads the tasks that run on this instance. It may be used
// by many goroutines. Rows show what was committed: never more, and never
// half of a transaction in one task.
type View[K, V any] struct {
	store string
	app   func() *runtime.App

	global    bool
	versioned bool
}

// tasks are the views of the store's tasks, in order.
func (v View[K, V]) tasks() ([]*state.View[K, V], error) {
	return viewsOf(v.app(), v.store, state.ViewOf[K, V])
}

// versions is tasks for a store of versions.
func (v View[K, V]) versions() ([]*state.VersionedView[K, V], error) {
	return viewsOf(v.app(), v.store, state.VersionedViewOf[K, V])
}

func viewsOf[T any](app *runtime.App, store string, open func(*state.DB, string) (T, error)) (views []T, err error) {
	if app == nil {
		return nil, ErrClosed
	}
	dbs := app.Stores(store)
	if len(dbs) == 0 {
		return nil, fmt.Errorf("store %q: %w", store, ErrNotReady)
	}
	for _, t := range slices.SortedFunc(maps.Keys(dbs), seam.Task.Compare) {
		view, err := open(dbs[t], store)
		if err != nil {
			return nil, err
		}
		views = append(views, view)
	}
	return views, nil
}

// newest is Get for a store of versions.
func (v View[K, V]) newest(key K) (value V, ok bool, err error) {
	tasks, err := v.versions()
	for _, w := range tasks {
		if value, _, ok, err = w.Get(key); ok || err != nil {
			return value, ok, err
		}
	}
	return value, false, err
}

// Get returns the row of key, if one of the tasks here has it.
func (v View[K, V]) Get(key K) (value V, ok bool, err error) {
	if v.global {
		rows, err := v.shared()
		if err != nil {
			return value, false, err
		}
		value, _, ok, err = rows.Get(key)
		return value, ok, err
	}
	if v.versioned {
		return v.newest(key)
	}
	tasks, err := v.tasks()
	for _, t := range tasks {
		if value, _, ok, err = t.Get(key); ok || err != nil {
			return value, ok, err
		}
	}
	return value, false, err
}

// GetAsOf returns the row of key that was valid at t, of a [Versioned] table or
// a store of versions; of other stores it is an error. What was valid longer
// ago than the history is not found.
func (v View[K, V]) GetAsOf(key K, t time.Time) (value V, ok bool, err error) {
	if !v.versioned {
		return value, false, fmt.Errorf("store %q keeps no versions; make it stream.Versioned, or use Get: %w", v.store, ErrNoStore)
	}
	tasks, err := v.versions()
	for _, w := range tasks {
		if value, _, _, ok, err = w.GetAsOf(key, t.UnixMilli()); ok || err != nil {
			return value, ok, err
		}
	}
	return value, false, err
}

// Range returns rows from one key to another, both included, in order of
// encoded keys within each task.
func (v View[K, V]) Range(from, to K) state.Rows[K, V] {
	return v.each(func(t walker[K, V]) state.Rows[K, V] { return t.Range(from, to) })
}

// All returns every row.
func (v View[K, V]) All() state.Rows[K, V] {
	return v.each(walker[K, V].All)
}

// A walker reads the rows of one task, or of a global table.
type walker[K, V any] interface {
	Range(from, to K) state.Rows[K, V]
	All() state.Rows[K, V]
}

// shared is a reader of a global table.
func (v View[K, V]) shared() (*state.SharedReader[K, V], error) {
	app := v.app()
	if app == nil {
		return nil, ErrClosed
	}
	rows := app.Global(v.store)
	if rows == nil {
		return nil, fmt.Errorf("store %q: %w", v.store, ErrNotReady)
	}
	return state.SharedOf[K, V](rows)
}

func (v View[K, V]) walkers() (all []walker[K, V], err error) {
	if v.global {
		r, err := v.shared()
		return []walker[K, V]{r}, err
	}
	if v.versioned {
		tasks, err := v.versions()
		for _, t := range tasks {
			all = append(all, t)
		}
		return all, err
	}
	tasks, err := v.tasks()
	for _, t := range tasks {
		all = append(all, t)
	}
	return all, err
}

func (v View[K, V]) each(rows func(walker[K, V]) state.Rows[K, V]) state.Rows[K, V] {
	return func(yield func(state.Entry[K, V], error) bool) {
		tasks, err := v.walkers()
		if err != nil {
			yield(state.Entry[K, V]{}, err)
			return
		}
		for _, t := range tasks {
			for row, err := range rows(t) {
				if !yield(row, err) || err != nil {
					return
				}
			}
		}
	}
}
