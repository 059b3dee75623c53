package stream

import (
	"github.com/semelstream/semel/stream/internal/graph"
	"github.com/semelstream/semel/stream/internal/runtime"
)

// MapValues replaces each value. Key, time and headers stay.
func (s Stream[K, V]) MapValues[V2 any](f func(value V) V2, opts ...Option) Stream[K, V2] {
	out := mapValues[V2](s, "map-values", f == nil, opts)
	s.n.use(func(o *opener) (port[K, V], error) {
		next, err := out.open(o)
		return &mapValuesPort[K, V, V2]{o, out.node, f, next}, err
	})
	return Stream[K, V2]{out}
}

// MapValuesWithKey is MapValues for functions that look at the key.
func (s Stream[K, V]) MapValuesWithKey[V2 any](f func(key K, value V) V2, opts ...Option) Stream[K, V2] {
	out := mapValues[V2](s, "map-values", f == nil, opts)
	s.n.use(func(o *opener) (port[K, V], error) {
		next, err := out.open(o)
		return &mapWithKeyPort[K, V, V2]{o, out.node, f, next}, err
	})
	return Stream[K, V2]{out}
}

// MapOrDelete is MapValuesWithKey for values that may go: where f returns
// false the record becomes a tombstone.
func (s Stream[K, V]) MapOrDelete[V2 any](f func(key K, value V) (V2, bool), opts ...Option) Stream[K, V2] {
	out := mapValues[V2](s, "map-or-delete", f == nil, opts)
	s.n.use(func(o *opener) (port[K, V], error) {
		next, err := out.open(o)
		return &mapOrDeletePort[K, V, V2]{o, out.node, f, next}, err
	})
	return Stream[K, V2]{out}
}

// TryMapValues is MapValues for a function that can fail.
func (s Stream[K, V]) TryMapValues[V2 any](f func(value V) (V2, error), opts ...Option) Stream[K, V2] {
	out := mapValues[V2](s, "map-values", f == nil, opts)
	s.n.use(func(o *opener) (port[K, V], error) {
		next, err := out.open(o)
		return &tryMapValuesPort[K, V, V2]{o, out.node, f, next}, err
	})
	return Stream[K, V2]{out}
}

// mapValues makes the node of an operator that keeps keys. Where the type of
// values stays, their codec does.
func mapValues[V2, K, V any](s Stream[K, V], kind string, isNil bool, opts []Option) *streamNode[K, V2] {
	from := s.at()
	out := derive[K, V2](s, kind, settingsOf(opts))
	out.key, out.value = from.key, sameType[V2](from.value)
	from.b.needFunc(out.node, isNil)
	return out
}

type mapValuesPort[K, V, V2 any] struct {
	o    *opener
	n    *graph.Node
	f    func(V) V2
	next port[K, V2]
}

func (p *mapValuesPort[K, V, V2]) push(r Record[K, V]) error {
	if r.NoValue {
		return p.next.push(tombstone[V2](r))
	}
	p.o.enter(p.n)
	return p.next.push(r.WithValue(p.f(r.Value)))
}

type mapWithKeyPort[K, V, V2 any] struct {
	o    *opener
	n    *graph.Node
	f    func(K, V) V2
	next port[K, V2]
}

func (p *mapWithKeyPort[K, V, V2]) push(r Record[K, V]) error {
	if r.NoValue {
		return p.next.push(tombstone[V2](r))
	}
	p.o.enter(p.n)
	return p.next.push(r.WithValue(p.f(r.Key, r.Value)))
}

type mapOrDeletePort[K, V, V2 any] struct {
	o    *opener
	n    *graph.Node
	f    func(K, V) (V2, bool)
	next port[K, V2]
}

func (p *mapOrDeletePort[K, V, V2]) push(r Record[K, V]) error {
	if !r.NoValue {
		p.o.enter(p.n)
		if v, ok := p.f(r.Key, r.Value); ok {
			return p.next.push(r.WithValue(v))
		}
	}
	return p.next.push(tombstone[V2](r))
}

type tryMapValuesPort[K, V, V2 any] struct {
	o    *opener
	n    *graph.Node
	f    func(V) (V2, error)
	next port[K, V2]
}

func (p *tryMapValuesPort[K, V, V2]) push(r Record[K, V]) error {
	if r.NoValue {
		return p.next.push(tombstone[V2](r))
	}
	p.o.enter(p.n)
	v, err := p.f(r.Value)
	if err != nil {
		return p.o.fail(p.n, runtime.OpFunction, err)
	}
	return p.next.push(r.WithValue(v))
}
