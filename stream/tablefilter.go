package stream

// Filter hides rows for which keep is false; a row that becomes hidden is
// deleted in what follows.
func (t Table[K, V]) Filter(keep func(key K, value V) bool, opts ...Option) Table[K, V] {
	n := newView(t.at(), "table-filter", opts, keep == nil, func(key K, v V) (V, bool, error) {
		return v, keep(key, v), nil
	})
	n.value = t.n.value
	return Table[K, V]{n}
}
