package stream

import "github.com/semelstream/semel/codec"

// A WindowedGroup is a grouped stream cut into windows; see [Grouped] for
// what its methods do.
//
// Each record is added to the row of each of its windows that still takes
// records: whose end is later than stream time less grace, stream time being
// the largest time of all records that have come, this one among them. Rows are
// kept for [Retain], by default as long as the window takes records.
type WindowedGroup[K, V any] struct {
	g Grouped[K, V]
	w Windows
}

// Windowed cuts the time of each key into windows.
func (g Grouped[K, V]) Windowed(w Windows) WindowedGroup[K, V] {
	g.s.at() // a group of no stream is found here
	return WindowedGroup[K, V]{g, w}
}

// Count counts the records of each key and window.
func (g WindowedGroup[K, V]) Count(store string, opts ...WindowOption) WindowedTable[K, int64] {
	return aggregateWindows(g, "window-count", store, opts, codec.Int64, false, sum, func(_ K, _ V, n int64, _ bool) (int64, bool, error) {
		return n + 1, true, nil
	})
}

// sum merges counts.
func sum(a, b int64) int64 { return a + b }

// Reduce combines the values of each key and window.
func (g WindowedGroup[K, V]) Reduce(store string, f func(acc, value V) V, opts ...WindowOption) WindowedTable[K, V] {
	return aggregateWindows(g, "window-reduce", store, opts, g.g.s.at().value, f == nil, f, func(_ K, v, row V, ok bool) (V, bool, error) {
		if !ok {
			return v, true, nil
		}
		return f(row, v), true, nil
	})
}

// Aggregate adds each record to the rows of its windows.
func (g WindowedGroup[K, V]) Aggregate[A any](store string, add func(key K, value V, acc A) A, opts ...WindowOption) WindowedTable[K, A] {
	return aggregateWindows(g, "window-aggregate", store, opts, nil, add == nil, nil, func(k K, v V, row A, _ bool) (A, bool, error) {
		return add(k, v, row), true, nil
	})
}

// Update is the general aggregate, for each window that the record is in.
func (g WindowedGroup[K, V]) Update[A any](store string, f func(key K, value V, row A, ok bool) (A, bool), opts ...WindowOption) WindowedTable[K, A] {
	return aggregateWindows(g, "window-update", store, opts, nil, f == nil, nil, trying(f))
}
