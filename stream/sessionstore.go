package stream

import (
	"fmt"
	"time"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/state"
	"github.com/semelstream/semel/stream/internal/graph"
)

// A SessionStore is a declared store of values by key and session; see
// [Store].
type SessionStore[K, V any] struct{ kept *sessionsKept[K, V] }

// sessionsKept is a declared store of sessions with its types.
type sessionsKept[K, V any] struct {
	store *graph.Store
	id    int // of the shared opening
	key   codec.Codec[K]
	value codec.Codec[V]
}

// SessionStore declares a store of values by key and session, each kept for
// retain of stream time after the session's end: until a session is put that
// ends that much later.
func (b *Builder) SessionStore[K, V any](name string, key codec.Codec[K], value codec.Codec[V], retain time.Duration, opts ...StoreOption) SessionStore[K, V] {
	checkStore(b, "SessionStore", name, key, value, retain)
	id := -1 - len(b.graph.Stores) // no node has it
	s := &sessionsKept[K, V]{withCodecs(b.addStore(nil, name, graph.Session, settingsOf(opts)), key, value), id, key, value}
	s.store.Retain = retain.Milliseconds()
	return SessionStore[K, V]{s}
}

// In opens the store for one call. What is written gets the time of the
// record at hand, or that of the timer.
func (s SessionStore[K, V]) In(c Scope) state.Sessions[K, V] {
	return used[*sessionStore[K, V]](c, s.kept, "store", s.kept.store.Name)
}

func (s SessionStore[K, V]) usedBy(b *Builder, node *graph.Node) { useStore(b, node, s.kept.store) }

func (s SessionStore[K, V]) bind(t *Task) (binding, error) {
	k := s.kept
	rows, err := share(t.o, &graph.Node{ID: k.id}, func() (*state.Session[K, V], error) {
		return state.OpenSession(t.o.task.DB(), k.store.Name, k.key, k.value)
	})
	if err != nil {
		return binding{}, fmt.Errorf("opening store %q: %w", k.store.Name, err)
	}
	keepExpiry(t.o, k.store.Name, rows)
	return binding{k, &sessionStore[K, V]{t, k.store, rows, rows}}, nil
}

// sessionScan reads in one direction.
type sessionScan[K, V any] interface {
	Fetch(key K) state.SessionRows[K, V]
	FetchRange(first, last K) state.SessionRows[K, V]
	Overlapping(key K, earliestEnd, latestStart int64) state.SessionRows[K, V]
}

// A sessionStore is a store as processors read and write it. Its time is that
// of the latest end that was put.
type sessionStore[K, V any] struct {
	t    *Task
	kept *graph.Store
	s    *state.Session[K, V]
	scan sessionScan[K, V] // s, in one direction
}

func (s *sessionStore[K, V]) Put(session state.SessionKey[K], value V) error {
	start, end, err := s.times(session)
	if err != nil {
		return err
	}
	forget(s.kept, s.s, end)
	if end < s.s.Expired() {
		s.t.o.drop(s.t.node, expired)
		return nil
	}
	return s.t.judgeRows(s.s.Put(session.Key, start, end, value, s.t.ms))
}

// Delete moves the store's time too, as Put does.
func (s *sessionStore[K, V]) Delete(session state.SessionKey[K]) error {
	start, end, err := s.times(session)
	if err != nil {
		return err
	}
	forget(s.kept, s.s, end)
	return s.t.judgeRows(s.s.Delete(session.Key, start, end, s.t.ms))
}

// times are those of a session to put. One before 1970, or that ends before it
// starts, is the processor's to handle.
func (s *sessionStore[K, V]) times(session state.SessionKey[K]) (start, end int64, err error) {
	if start, err = s.t.windowTime(s.kept, session.Start); err != nil {
		return 0, 0, err
	}
	if end = session.End.UnixMilli(); end < start {
		return 0, 0, fmt.Errorf("store %q takes no session that ends at %v, before its start %v", s.kept.Name, session.End, session.Start)
	}
	return start, end, nil
}

func (s *sessionStore[K, V]) Get(session state.SessionKey[K]) (value V, ok bool, err error) {
	start, end := session.Start.UnixMilli(), session.End.UnixMilli()
	if start < 0 || end < start {
		return value, false, nil
	}
	value, _, ok, err = s.s.Get(session.Key, start, end)
	return value, ok, s.t.judgeRows(err)
}

func (s *sessionStore[K, V]) Fetch(key K) state.Rows[state.SessionKey[K], V] {
	return s.rows(s.scan.Fetch(key))
}

func (s *sessionStore[K, V]) FetchRange(first, last K) state.Rows[state.SessionKey[K], V] {
	return s.rows(s.scan.FetchRange(first, last))
}

func (s *sessionStore[K, V]) Overlapping(key K, from, to time.Time) state.Rows[state.SessionKey[K], V] {
	return s.rows(s.scan.Overlapping(key, from.UnixMilli(), to.UnixMilli()))
}

// Backward is the same rows, last first.
func (s *sessionStore[K, V]) Backward() state.Sessions[K, V] {
	scan := sessionScan[K, V](s.s)
	if s.scan == scan {
		scan = s.s.Backward()
	}
	return &sessionStore[K, V]{s.t, s.kept, s.s, scan}
}

func (s *sessionStore[K, V]) rows(rows state.SessionRows[K, V]) state.Rows[state.SessionKey[K], V] {
	return judgedAs(s.t, rows, func(r state.SessionRow[K, V]) state.Entry[state.SessionKey[K], V] {
		return state.Entry[state.SessionKey[K], V]{
			Key: state.SessionKey[K]{Key: r.Key, Start: timeOf(r.Start), End: timeOf(r.End)}, Value: r.Value, Time: timeOf(r.Time),
		}
	})
}
