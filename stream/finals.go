package stream

import "github.com/semelstream/semel/stream/internal/graph"

// Final results take a way of their own through the topology: the aggregate
// that keeps the windows knows when they close, and each row goes once, as it is
// then, through the views in between to [WindowedTable.Final].

// A finalPort takes rows whose windows have closed.
type finalPort[K, V any] interface {
	final(key K, v V, ms int64) error
}

// A finalSource is what a table with windows gives to Final.
type finalSource[K, V any] struct {
	// use adds a use of the final rows.
	use func(limit finalLimit, open func(o *opener) (finalPort[K, V], error))
	// sent says which keys' rows were sent as final.
	sent func(o *opener) (func(key K) bool, error)
}

// A finalLimit is how much may wait for node to be final; 0 is no limit.
type finalLimit struct {
	node  *graph.Node
	keys  int
	bytes int64
}

// passFinals lets the finals of from through to n, which is made of it.
func passFinals[K, V, V2 any](from *tableNode[K, V], n *tableNode[K, V2], through func(o *opener, out finalPort[K, V2]) finalPort[K, V]) {
	if from.finals == nil {
		return
	}
	n.finals = &finalSource[K, V2]{
		sent: from.finals.sent,
		use: func(limit finalLimit, open func(o *opener) (finalPort[K, V2], error)) {
			from.finals.use(limit, func(o *opener) (finalPort[K, V], error) {
				out, err := open(o)
				if err != nil {
					return nil, err
				}
				return through(o, out), nil
			})
		},
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
