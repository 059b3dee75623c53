package stream

import (
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/state"
	"github.com/semelstream/semel/stream/internal/graph"
	"github.com/semelstream/semel/stream/internal/runtime"
)

// A WindowStore is a declared store of values by key and time; see [Store].
type WindowStore[K, V any] struct{ kept *keptWindows[K, V] }

// WindowStore declares a store of values by key and time, each kept for
// retain of stream time: until something is put that begins that much later.
// Size is how long a window is, and retain at least that.
func (b *Builder) WindowStore[K, V any](name string, key codec.Codec[K], value codec.Codec[V], size, retain time.Duration, opts ...StoreOption) WindowStore[K, V] {
	checkStore(b, "WindowStore", name, key, value, retain)
	if size <= 0 || size > retain {
		b.problem(nil, "store %q has windows of %v and keeps them for %v; give it a size of 1 ms or more, and keep windows for at least that", name, size, retain)
	}
	id := -1 - len(b.graph.Stores) // no node has it
	s := &keptWindows[K, V]{store: withCodecs(b.addStore(nil, name, graph.Window, settingsOf(opts)), key, value), id: id, key: key, value: value}
	s.store.Retain, s.store.ByKey = retain.Milliseconds(), true
	return WindowStore[K, V]{s}
}

// checkStore finds what is wrong with a store for processors.
func checkStore[K, V any](b *Builder, what, name string, key codec.Codec[K], value codec.Codec[V], retain time.Duration) {
	if key == nil || value == nil {
		b.problem(nil, "store %q lacks a codec; give Builder.%s one for keys and one for values", name, what)
	}
	if retain.Milliseconds() <= 0 {
		b.problem(nil, "store %q keeps rows for %v; keep them for 1 ms or more", name, retain)
	}
}

// KeepDuplicates keeps several values under one key and time, in order; such a
// store cannot delete. Call it where the store is declared.
func (s WindowStore[K, V]) KeepDuplicates() WindowStore[K, V] {
	s.kept.store.Duplicates = true
	return s
}

// In opens the store for one call. What is written gets the time of the
// record at hand, or that of the timer.
func (s WindowStore[K, V]) In(c Scope) state.Windows[K, V] {
	return used[*windowStore[K, V]](c, s.kept, "store", s.kept.store.Name)
}

func (s WindowStore[K, V]) usedBy(b *Builder, node *graph.Node) { useStore(b, node, s.kept.store) }

func (s WindowStore[K, V]) bind(t *Task) (binding, error) {
	w, err := s.kept.open(t.o)
	if err != nil {
		return binding{}, err
	}
	keepExpiry(t.o, s.kept.store.Name, w)
	if s.kept.store.Duplicates {
		keepAdded(t.o, s.kept.store.Name, w.Added, w.SetAdded)
	}
	return binding{s.kept, &windowStore[K, V]{t, s.kept.store, w, w}}, nil
}

// expiring is a store whose rows expire.
type expiring interface {
	Expired() int64
	Expire(before int64)
}

// keepExpiry makes the bound of what has expired in a store survive, once for
// all that open the store.
func keepExpiry(o *opener, store string, e expiring) {
	name := runtime.ExpiredTime(store)
	if !slices.ContainsFunc(o.in.times, func(k keptTime) bool { return k.name == name }) {
		o.keepTime(name, e.Expired, e.Expire)
	}
}

// keepAdded makes the number of the last row of a store with duplicates survive.
func keepAdded(o *opener, store string, added func() int64, set func(int64)) {
	name := store + ".added"
	if !slices.ContainsFunc(o.in.times, func(k keptTime) bool { return k.name == name }) {
		o.keepTime(name, added, set)
	}
}

// forget makes what is older than the store keeps disappear, at a time that is
// put.
func forget(s *graph.Store, e expiring, at int64) { e.Expire(at - s.Retain + 1) }

// windowScan reads in one direction.
type windowScan[K, V any] interface {
	Fetch(key K, from, to int64) state.WindowRows[K, V]
	FetchRange(first, last K, from, to int64) state.WindowRows[K, V]
	FetchAll(from, to int64) state.WindowRows[K, V]
	All() state.WindowRows[K, V]
}

// A windowStore is a store as processors read and write it. Its time is that
// of the newest window that was put.
type windowStore[K, V any] struct {
	t    *Task
	kept *graph.Store
	w    *state.Window[K, V]
	scan windowScan[K, V] // w, in one direction
}

func (s *windowStore[K, V]) Put(key K, start time.Time, value V) error {
	at, err := s.t.windowTime(s.kept, start)
	if err != nil {
		return err
	}
	forget(s.kept, s.w, at)
	if at < s.w.Expired() {
		s.t.o.drop(s.t.node, expired)
		return nil
	}
	if s.kept.Duplicates {
		return s.t.judgeRows(s.w.Add(key, at, value, s.t.ms))
	}
	return s.t.judgeRows(s.w.Put(key, at, value, s.t.ms))
}

// Delete moves the store's time too, as Put does.
func (s *windowStore[K, V]) Delete(key K, start time.Time) error {
	at, err := s.t.windowTime(s.kept, start)
	if err != nil || s.kept.Duplicates {
		return err
	}
	forget(s.kept, s.w, at)
	return s.t.judgeRows(s.w.Delete(key, at, s.t.ms))
}

func (s *windowStore[K, V]) Get(key K, start time.Time) (value V, ok bool, err error) {
	at := start.UnixMilli()
	if at < 0 {
		return value, false, nil
	}
	value, _, ok, err = s.w.Get(key, at)
	return value, ok, s.t.judgeRows(err)
}

func (s *windowStore[K, V]) Fetch(key K, from, to time.Time) state.Rows[state.WindowKey[K], V] {
	return s.rows(s.scan.Fetch(key, from.UnixMilli(), to.UnixMilli()))
}

func (s *windowStore[K, V]) FetchRange(first, last K, from, to time.Time) state.Rows[state.WindowKey[K], V] {
	return s.rows(s.scan.FetchRange(first, last, from.UnixMilli(), to.UnixMilli()))
}

func (s *windowStore[K, V]) FetchAll(from, to time.Time) state.Rows[state.WindowKey[K], V] {
	return s.rows(s.scan.FetchAll(from.UnixMilli(), to.UnixMilli()))
}

func (s *windowStore[K, V]) All() state.Rows[state.WindowKey[K], V] { return s.rows(s.scan.All()) }

// Backward is the same rows, last first.
func (s *windowStore[K, V]) Backward() state.Windows[K, V] {
	scan := windowScan[K, V](s.w)
	if s.scan == scan {
		scan = s.w.Backward()
	}
	return &windowStore[K, V]{s.t, s.kept, s.w, scan}
}

func (s *windowStore[K, V]) rows(rows state.WindowRows[K, V]) state.Rows[state.WindowKey[K], V] {
	return judgedAs(s.t, rows, func(r state.WindowRow[K, V]) state.Entry[state.WindowKey[K], V] {
		return state.Entry[state.WindowKey[K], V]{
			Key: state.WindowKey[K]{Key: r.Key, Start: timeOf(r.Start)}, Value: r.Value, Time: timeOf(r.Time),
		}
	})
}

// judgedAs passes rows on as entries and judges the error at their end.
func judgedAs[R, K, V any](t *Task, rows iter.Seq2[R, error], entry func(R) state.Entry[K, V]) state.Rows[K, V] {
	return func(yield func(state.Entry[K, V], error) bool) {
		for r, err := range rows {
			if err != nil {
				yield(state.Entry[K, V]{}, t.judgeRows(err))
				return
			}
			if !yield(entry(r), nil) {
				return
			}
		}
	}
}

// windowTime is a time to put a row at. One before 1970 is the processor's to
// handle.
func (t *Task) windowTime(s *graph.Store, at time.Time) (int64, error) {
	ms := at.UnixMilli()
	if ms < 0 {
		return 0, fmt.Errorf("store %q takes no rows at %v, which is before 1970", s.Name, at)
	}
	return ms, nil
}
