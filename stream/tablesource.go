package stream

// Table reads t as the latest row of each key, kept in store. The topic is
// the table's changelog; no second one is written, unless the table is
// [Versioned].
func (b *Builder) Table[K, V any](t Topic[K, V], store string, opts ...TableSourceOption) Table[K, V] {
	set := settingsOf(opts)
	s := b.Stream(t)
	table := keepTable(s, "table", store, set)
	if !set.versioned {
		table.n.store.Source = s.n.node.Topic
	}
	return table
}
