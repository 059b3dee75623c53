package stream

import (
	"github.com/semelstream/semel/stream/internal/graph"
	"github.com/semelstream/semel/stream/internal/runtime"
)

// Peek calls f for each record on its way. After an abort f is called again
// for the same record.
func (s Stream[K, V]) Peek(f func(key K, value V), opts ...Option) Stream[K, V] {
	out := filter(s, "peek", f == nil, opts)
	s.n.use(func(o *opener) (port[K, V], error) {
		next, err := out.open(o)
		return &peekPort[K, V]{o, out.node, f, next}, err
	})
	return Stream[K, V]{out}
}

// ForEach calls f for each record and ends the stream. An error is the
// failure of the record. After an abort f is called again.
func (s Stream[K, V]) ForEach(f func(key K, value V) error, opts ...Option) {
	from := s.at()
	n := from.b.add("for-each", settingsOf(opts), from.node)
	from.b.needFunc(n, f == nil)
	from.use(func(o *opener) (port[K, V], error) { return &forEachPort[K, V]{o, n, f}, nil })
}

type peekPort[K, V any] struct {
	o    *opener
	n    *graph.Node
	f    func(K, V)
	next port[K, V]
}

func (p *peekPort[K, V]) push(r Record[K, V]) error {
	if !r.NoValue {
		p.o.enter(p.n)
		p.f(r.Key, r.Value)
	}
	return p.next.push(r)
}

type forEachPort[K, V any] struct {
	o *opener
	n *graph.Node
	f func(K, V) error
}

func (p *forEachPort[K, V]) push(r Record[K, V]) error {
	if r.NoValue {
		p.o.drop(p.n, tombstoned)
		return nil
	}
	p.o.enter(p.n)
	if err := p.f(r.Key, r.Value); err != nil {
		return p.o.fail(p.n, runtime.OpFunction, err)
	}
	return nil
}
