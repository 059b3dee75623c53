package stream

import (
	"iter"
	"math"
	"time"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/state"
	"github.com/semelstream/semel/stream/internal/graph"
)

// A VersionedStore is a declared store of versions; see [Store].
type VersionedStore[K, V any] struct{ kept *versionsKept[K, V] }

// VersionedStore declares a store that remembers the versions of a key's
// value for history of stream time: until a version is put that begins that
// much later.
func (b *Builder) VersionedStore[K, V any](name string, key codec.Codec[K], value codec.Codec[V], history time.Duration, opts ...StoreOption) VersionedStore[K, V] {
	checkStore(b, "VersionedStore", name, key, value, history)
	return VersionedStore[K, V]{newVersions(b, nil, name, settingsOf(opts), history, key, value)}
}

// In opens the store for one call.
func (s VersionedStore[K, V]) In(c Scope) state.Versions[K, V] {
	return used[*versionedStore[K, V]](c, s.kept, "store", s.kept.store.Name)
}

func (s VersionedStore[K, V]) usedBy(b *Builder, node *graph.Node) { useStore(b, node, s.kept.store) }

func (s VersionedStore[K, V]) bind(t *Task) (binding, error) {
	rows, err := s.kept.open(t.o)
	return binding{s.kept, &versionedStore[K, V]{t, s.kept.store, rows}}, err
}

// A versionedStore is a store as processors read and write it.
type versionedStore[K, V any] struct {
	t    *Task
	kept *graph.Store
	s    *state.Versioned[K, V]
}

func (s *versionedStore[K, V]) Put(key K, t time.Time, value V) (to time.Time, ok bool, err error) {
	return s.put(t, func(at int64) (int64, bool, error) { return s.s.Put(key, at, value) })
}

func (s *versionedStore[K, V]) Delete(key K, t time.Time) (to time.Time, ok bool, err error) {
	return s.put(t, func(at int64) (int64, bool, error) { return s.s.Delete(key, at) })
}

func (s *versionedStore[K, V]) put(t time.Time, put func(at int64) (int64, bool, error)) (to time.Time, ok bool, err error) {
	at, err := s.t.windowTime(s.kept, t)
	if err != nil {
		return to, false, err
	}
	ms, ok, err := put(at)
	if err == nil && !ok {
		s.t.o.drop(s.t.node, late)
	}
	return until(ms), ok, s.t.judgeRows(err)
}

// until is the end of a version, zero for the newest.
func until(ms int64) time.Time {
	if ms == math.MaxInt64 {
		return time.Time{}
	}
	return timeOf(ms)
}

func (s *versionedStore[K, V]) Get(key K) (v state.Version[V], ok bool, err error) {
	value, from, ok, err := s.s.Get(key)
	if !ok {
		return v, false, s.t.judgeRows(err)
	}
	return state.Version[V]{Value: value, From: timeOf(from)}, true, nil
}

func (s *versionedStore[K, V]) GetAsOf(key K, t time.Time) (v state.Version[V], ok bool, err error) {
	value, from, to, ok, err := s.s.GetAsOf(key, t.UnixMilli())
	if !ok {
		return v, false, s.t.judgeRows(err)
	}
	return state.Version[V]{Value: value, From: timeOf(from), To: until(to)}, true, nil
}

func (s *versionedStore[K, V]) History(key K, from, to time.Time) iter.Seq2[state.Version[V], error] {
	return func(yield func(state.Version[V], error) bool) {
		for v, err := range s.s.History(key, from.UnixMilli(), to.UnixMilli()) {
			if err != nil {
				yield(state.Version[V]{}, s.t.judgeRows(err))
				return
			}
			if !yield(state.Version[V]{Value: v.Value, From: timeOf(v.From), To: until(v.To)}, nil) {
				return
			}
		}
	}
}
