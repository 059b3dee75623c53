package stream

// Final results take a way of their own through the topology: the aggregate
// that keeps the windows knows when they close, and each row goes once, as it is
// then, through the views in between to [WindowedTable.Final].

// A finalPort takes rows whose windows have closed.
type finalPort[K, V any] interface {
	final(key K, v V, ms int64) error
}

// passFinals lets the finals of from through to n, which is made of it.
func passFinals[K, V, V2 any](from *tableNode[K, V], n *tableNode[K, V2], open func(o *opener, out finalPort[K, V2]) finalPort[K, V]) {
	if from.useFinals == nil {
		return
	}
	n.useFinals = func(next func(o *opener) (finalPort[K, V2], error)) {
		from.useFinals(func(o *opener) (finalPort[K, V], error) {
			out, err := next(o)
			if err != nil {
				return nil, err
			}
			return open(o, out), nil
		})
	}
}

// viewFinals works finals out; hidden ones are none.
type viewFinals[K, V, V2 any] struct {
	view[K, V, V2]
	out finalPort[K, V2]
}

func (p *viewFinals[K, V, V2]) final(key K, v V, ms int64) error {
	v2, ok, err := p.apply(key, v)
	if err != nil || !ok {
		return err
	}
	return p.out.final(key, v2, ms)
}
