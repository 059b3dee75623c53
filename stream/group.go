package stream

// A Grouped stream is partitioned by K, ready to aggregate into a store.
// Records without key or value are dropped. A result's time is the larger of
// the record's and the row's.
//
// The result reaches what follows once per key and transaction, with the last
// value; with [EmitEach], at every update.
type Grouped[K, V any] struct {
	s   Stream[K, V]
	set settings // of the repartition topic, should there be one
}

// GroupByKey prepares to aggregate by the key that the stream has. If an
// operator before may have changed it, the records go through a repartition
// topic named after the aggregate's store.
func (s Stream[K, V]) GroupByKey(opts ...GroupOption) Grouped[K, V] {
	return Grouped[K, V]{Stream[K, V]{s.at()}, settingsOf(opts)}
}

// GroupBy prepares to aggregate by the key that f gives, through a repartition
// topic named after the aggregate's store.
func (s Stream[K, V]) GroupBy[K2 any](f func(key K, value V) K2, opts ...GroupOption) Grouped[K2, V] {
	set := settingsOf(opts)
	return Grouped[K2, V]{s.SelectKey(f, set.ofOperator()), set}
}

// ofOperator are those settings that fit every operator, as an option.
func (s settings) ofOperator() Option {
	return option(func(to *settings) { to.name, to.policy = s.name, s.policy })
}
