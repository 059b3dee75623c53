package stream

import (
	"time"

	"github.com/semelstream/semel/codec"
)

// Sessions gathers records of a key that are at most gap apart, each from the
// next. A session may come to be by the merging of others, as late as grace
// after its gap. A record counts as long as the session that it becomes part of
// ends no earlier than stream time less gap and grace; later ones are dropped.
func (g Grouped[K, V]) Sessions(gap, grace time.Duration) SessionGroup[K, V] {
	g.s.at()
	return SessionGroup[K, V]{g, gap, grace}
}

// A SessionGroup is a grouped stream gathered into sessions. When a record
// joins sessions into one, merge combines their rows, in order of their ends,
// before the record is added; the rows of the old sessions are deleted.
//
// A result's time is the end of its session. Results reach what follows as
// those of [Grouped] do; with [EmitEach] the deletes of the old sessions come
// before the new one, also where only a record in the middle was added.
type SessionGroup[K, V any] struct {
	g          Grouped[K, V]
	gap, grace time.Duration
}

// Count counts the records of each session.
func (g SessionGroup[K, V]) Count(store string, opts ...WindowOption) WindowedTable[K, int64] {
	return aggregateSessions(g, "session-count", store, opts, codec.Int64, false,
		func(_ K, _ V, n int64, _ bool) (int64, bool) { return n + 1, true },
		func(_ K, a int64, _ bool, b int64) int64 { return a + b })
}

// Reduce combines the values of each session, and the results of sessions
// that become one.
func (g SessionGroup[K, V]) Reduce(store string, f func(acc, value V) V, opts ...WindowOption) WindowedTable[K, V] {
	return aggregateSessions(g, "session-reduce", store, opts, g.g.s.n.value, f == nil,
		func(_ K, v, row V, ok bool) (V, bool) {
			if !ok {
				return v, true
			}
			return f(row, v), true
		},
		func(_ K, a V, ok bool, b V) V {
			if !ok {
				return b
			}
			return f(a, b)
		})
}

// Aggregate adds each record to its session's row. A session starts as A's
// zero value, and merge puts the rows of the sessions that it is made of into
// that, one after the other, also if there is one only.
func (g SessionGroup[K, V]) Aggregate[A any](store string, add func(key K, value V, acc A) A, merge func(key K, a, b A) A, opts ...WindowOption) WindowedTable[K, A] {
	return aggregateSessions(g, "session-aggregate", store, opts, nil, add == nil || merge == nil,
		func(k K, v V, row A, _ bool) (A, bool) { return add(k, v, row), true },
		func(k K, a A, _ bool, b A) A { return merge(k, a, b) })
}

// Update is the general aggregate of a session: f gets the row of the session
// that the record joins, merged from several if need be, or false if it begins
// one; where f returns false the session is deleted. Merge only gets rows.
func (g SessionGroup[K, V]) Update[A any](store string, f func(key K, value V, row A, ok bool) (A, bool), merge func(key K, a, b A) A, opts ...WindowOption) WindowedTable[K, A] {
	return aggregateSessions(g, "session-update", store, opts, nil, f == nil || merge == nil, f, mergeRows(merge))
}

// mergeRows is merge for rows alone: the first one is taken as it is.
func mergeRows[K, A any](merge func(key K, a, b A) A) func(key K, acc A, ok bool, row A) A {
	return func(key K, acc A, ok bool, row A) A {
		if !ok {
			return row
		}
		return merge(key, acc, row)
	}
}
