package stream

import (
	"github.com/semelstream/semel/stream/internal/graph"
	"github.com/semelstream/semel/stream/internal/runtime"
)

// Filter keeps the records for which keep is true.
func (s Stream[K, V]) Filter(keep func(key K, value V) bool, opts ...Option) Stream[K, V] {
	out := filter(s, "filter", keep == nil, opts)
	s.n.use(func(o *opener) (port[K, V], error) {
		next, err := out.open(o)
		return &filterPort[K, V]{o, out.node, keep, next}, err
	})
	return Stream[K, V]{out}
}

// FilterRecords is Filter for all that a record holds, tombstones too.
func (s Stream[K, V]) FilterRecords(keep func(Record[K, V]) bool, opts ...Option) Stream[K, V] {
	out := filter(s, "filter-records", keep == nil, opts)
	s.n.use(func(o *opener) (port[K, V], error) {
		next, err := out.open(o)
		return &filterRecordsPort[K, V]{o, out.node, keep, next}, err
	})
	return Stream[K, V]{out}
}

// TryFilter is Filter for a function that can fail.
func (s Stream[K, V]) TryFilter(keep func(key K, value V) (bool, error), opts ...Option) Stream[K, V] {
	out := filter(s, "filter", keep == nil, opts)
	s.n.use(func(o *opener) (port[K, V], error) {
		next, err := out.open(o)
		return &tryFilterPort[K, V]{o, out.node, keep, next}, err
	})
	return Stream[K, V]{out}
}

// filter makes the node of an operator that lets records through as they are.
func filter[K, V any](s Stream[K, V], kind string, isNil bool, opts []Option) *streamNode[K, V] {
	from := s.at()
	out := derive[K, V](s, kind, settingsOf(opts))
	out.key, out.value = from.key, from.value
	from.b.needFunc(out.node, isNil)
	return out
}

type filterPort[K, V any] struct {
	o    *opener
	n    *graph.Node
	keep func(K, V) bool
	next port[K, V]
}

func (p *filterPort[K, V]) push(r Record[K, V]) error {
	if !r.NoValue {
		p.o.enter(p.n)
		if !p.keep(r.Key, r.Value) {
			return nil
		}
	}
	return p.next.push(r)
}

type filterRecordsPort[K, V any] struct {
	o    *opener
	n    *graph.Node
	keep func(Record[K, V]) bool
	next port[K, V]
}

func (p *filterRecordsPort[K, V]) push(r Record[K, V]) error {
	p.o.enter(p.n)
	if !p.keep(r) {
		return nil
	}
	return p.next.push(r)
}

type tryFilterPort[K, V any] struct {
	o    *opener
	n    *graph.Node
	keep func(K, V) (bool, error)
	next port[K, V]
}

func (p *tryFilterPort[K, V]) push(r Record[K, V]) error {
	if !r.NoValue {
		p.o.enter(p.n)
		switch keep, err := p.keep(r.Key, r.Value); {
		case err != nil:
			return p.o.fail(p.n, runtime.OpFunction, err)
		case !keep:
			return nil
		}
	}
	return p.next.push(r)
}
