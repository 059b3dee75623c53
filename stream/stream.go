package stream

// A Stream is an unbounded sequence of records. It is a handle, cheap to
// copy; using it twice gives each use every record, in order of declaration.
type Stream[K, V any] struct{ n *streamNode[K, V] }

// at is the typed side of s.
func (s Stream[K, V]) at() *streamNode[K, V] {
	if s.n == nil {
		panic("stream: a Stream that was declared but never made is used; get one from Builder.Stream or an operator")
	}
	return s.n
}

// derive makes the node of an operator on s. What is known of keys and values
// is for the caller to fill in.
func derive[K2, V2, K, V any](s Stream[K, V], kind string, set settings) *streamNode[K2, V2] {
	from := s.at()
	return &streamNode[K2, V2]{b: from.b, node: from.b.add(kind, set, from.node), rekeyed: from.rekeyed}
}
