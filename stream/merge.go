package stream

// Merge puts the records of the streams in one; each keeps its own order.
func (s Stream[K, V]) Merge(others ...Stream[K, V]) Stream[K, V] {
	from := s.at()
	out := derive[K, V](s, "merge", settings{})
	out.key, out.value = from.key, from.value
	open := func(o *opener) (port[K, V], error) {
		return share(o, out.node, func() (port[K, V], error) { return out.open(o) })
	}
	from.use(open)
	for _, other := range others {
		n := other.at()
		out.rekeyed = out.rekeyed || n.rekeyed
		// Records are the same whichever codec they came by; one is enough.
		if out.key == nil {
			out.key = n.key
		}
		if out.value == nil {
			out.value = n.value
		}
		out.b.link(n.node, out.node)
		n.use(open)
	}
	return Stream[K, V]{out}
}
