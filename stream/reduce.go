package stream

// Reduce combines the values of each key; the first one stands for itself.
func (g Grouped[K, V]) Reduce(store string, f func(acc, value V) V, opts ...AggregateOption) Table[K, V] {
	return aggregate(g, "reduce", store, opts, g.s.n.value, f == nil, func(_ K, v, row V, ok bool) (V, bool, error) {
		if !ok {
			return v, true, nil
		}
		return f(row, v), true, nil
	})
}

// Reduce combines the rows of each group; remove undoes add.
func (g GroupedTable[K, V]) Reduce(store string, add, remove func(acc, value V) V, opts ...AggregateOption) Table[K, V] {
	return aggregateTable(g, "table-reduce", store, opts, g.value, add == nil || remove == nil,
		func(_ K, v, row V, ok bool) (V, bool) {
			if !ok {
				return v, true
			}
			return add(row, v), true
		},
		func(_ K, v, row V, _ bool) (V, bool) { return remove(row, v), true })
}
