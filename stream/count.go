package stream

import "github.com/semelstream/semel/codec"

// Count counts the records of each key.
func (g Grouped[K, V]) Count(store string, opts ...AggregateOption) Table[K, int64] {
	return aggregate(g, "count", store, opts, codec.Int64, false, func(_ K, _ V, n int64, _ bool) (int64, bool, error) {
		return n + 1, true, nil
	})
}

// Count counts the rows of each group.
func (g GroupedTable[K, V]) Count(store string, opts ...AggregateOption) Table[K, int64] {
	return aggregateTable(g, "table-count", store, opts, codec.Int64, false,
		func(_ K, _ V, n int64, _ bool) (int64, bool) { return n + 1, true },
		func(_ K, _ V, n int64, _ bool) (int64, bool) { return n - 1, true })
}
