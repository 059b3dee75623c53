package stream

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/semelstream/semel/internal/seam"
	"github.com/semelstream/semel/state"
	"github.com/semelstream/semel/stream/internal/graph"
)

// WindowView reads the committed rows of a table by window or session on this
// instance while the app runs, and of a store of windows or sessions. It fails
// with [ErrNoStore] if the topology has no store of that name, or one of
// another kind.
func (a *App) WindowView[K, V any](store string) (WindowView[K, V], error) {
	for _, s := range a.topology.graph.Stores {
		if s.Name != store {
			continue
		}
		if s.Kind != graph.Window && s.Kind != graph.Session {
			return WindowView[K, V]{}, fmt.Errorf("store %q is a %s store, not one of windows or sessions: %w", store, s.Kind, ErrNoStore)
		}
		dbs := func() ([]*state.DB, error) { return a.storesOf(store) }
		return WindowView[K, V]{store, s.Kind == graph.Session, a.topology.shapes[store], dbs}, nil
	}
	return WindowView[K, V]{}, fmt.Errorf("store %q: %w", store, ErrNoStore)
}

// storesOf are the stores of the tasks here that have store, in order of the
// tasks.
func (a *App) storesOf(store string) (dbs []*state.DB, err error) {
	app := a.runtime()
	if app == nil {
		return nil, ErrClosed
	}
	tasks := app.Stores(store)
	if len(tasks) == 0 {
		return nil, fmt.Errorf("store %q: %w", store, ErrNotReady)
	}
	for _, t := range slices.SortedFunc(maps.Keys(tasks), seam.Task.Compare) {
		dbs = append(dbs, tasks[t])
	}
	return dbs, nil
}

// A shape is what the rows of a store by window do not say themselves.
type shape struct {
	end   func(start int64) (int64, error)
	shows func(start, ms int64) bool // nil: all rows are the user's
	panes any                        // *paneShape of the row's types, or nil
}

// A WindowView reads rows by key and time; see [View]. Both ends of a stretch of
// time belong to it. Rows that have expired are not seen. A window's End is zero
// if the store does not know it, as one for processors does not.
type WindowView[K, V any] struct {
	store    string
	sessions bool
	shape    shape
	dbs      func() ([]*state.DB, error)
}

// Get returns the row of key and the window that begins at start.
func (v WindowView[K, V]) Get(key K, start time.Time) (value V, ok bool, err error) {
	for e, err := range v.Fetch(key, start, start) {
		return e.Value, err == nil, err
	}
	return value, false, nil
}

// Fetch returns the rows of key whose windows begin in [from, to].
func (v WindowView[K, V]) Fetch(key K, from, to time.Time) state.Rows[Windowed[K], V] {
	return v.each(from, to,
		func(w *state.WindowView[K, V], from, to int64) state.WindowRows[K, V] { return w.Fetch(key, from, to) },
		func(s *state.SessionView[K, V]) state.SessionRows[K, V] { return s.Fetch(key) })
}

// FetchAll returns the rows of all keys whose windows begin in [from, to].
func (v WindowView[K, V]) FetchAll(from, to time.Time) state.Rows[Windowed[K], V] {
	return v.each(from, to, (*state.WindowView[K, V]).FetchAll, (*state.SessionView[K, V]).All)
}

// each returns the rows of all tasks, one task after the other.
func (v WindowView[K, V]) each(from, to time.Time,
	windows func(w *state.WindowView[K, V], from, to int64) state.WindowRows[K, V],
	sessions func(*state.SessionView[K, V]) state.SessionRows[K, V]) state.Rows[Windowed[K], V] {

	first, last := from.UnixMilli(), to.UnixMilli()
	if from.Nanosecond()%int(time.Millisecond) != 0 {
		first++ // no window begins between milliseconds
	}
	return func(yield func(state.Entry[Windowed[K], V], error) bool) {
		dbs, err := v.dbs()
		if err != nil {
			yield(state.Entry[Windowed[K], V]{}, err)
			return
		}
		for _, db := range dbs {
			var more bool
			if v.sessions {
				more = v.yieldSessions(db, first, last, sessions, yield)
			} else {
				more = v.yieldWindows(db, first, last, windows, yield)
			}
			if !more {
				return
			}
		}
	}
}

func (v WindowView[K, V]) yieldWindows(db *state.DB, from, to int64,
	rows func(w *state.WindowView[K, V], from, to int64) state.WindowRows[K, V], yield func(state.Entry[Windowed[K], V], error) bool) bool {

	var none state.Entry[Windowed[K], V]
	view, err := state.WindowViewOf[K, V](db, v.store)
	if err != nil {
		yield(none, err)
		return false
	}
	found := rows(view, from, to)
	if v.shape.panes != nil {
		found = v.shape.panes.(*paneShape[K, V]).windows(view, rows, from, to)
	}
	for r, err := range found {
		if err != nil {
			yield(none, err)
			return false
		}
		if v.shape.shows != nil && !v.shape.shows(r.Start, r.Time) {
			continue
		}
		e := state.Entry[Windowed[K], V]{Value: r.Value, Time: timeOf(r.Time)}
		e.Key.Key, e.Key.Start = r.Key, timeOf(r.Start)
		if v.shape.end != nil {
			end, err := v.shape.end(r.Start)
			if err != nil {
				yield(none, err)
				return false
			}
			e.Key.End = timeOf(end)
		}
		if !yield(e, nil) {
			return false
		}
	}
	return true
}

func (v WindowView[K, V]) yieldSessions(db *state.DB, from, to int64,
	rows func(*state.SessionView[K, V]) state.SessionRows[K, V], yield func(state.Entry[Windowed[K], V], error) bool) bool {

	view, err := state.SessionViewOf[K, V](db, v.store)
	if err != nil {
		yield(state.Entry[Windowed[K], V]{}, err)
		return false
	}
	for r, err := range rows(view) {
		if err != nil {
			yield(state.Entry[Windowed[K], V]{}, err)
			return false
		}
		if r.Start < from || r.Start > to {
			continue
		}
		if !yield(state.Entry[Windowed[K], V]{Key: windowed(r.Key, r.Start, r.End), Value: r.Value, Time: timeOf(r.Time)}, nil) {
			return false
		}
	}
	return true
}
