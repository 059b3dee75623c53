package stream

import (
	"time"

	"github.com/semelstream/semel/stream/internal/graph"
	"github.com/semelstream/semel/stream/internal/runtime"
)

// FlatMap replaces each record by what f gives to emit, which f must not
// keep.
func (s Stream[K, V]) FlatMap[K2, V2 any](f func(key K, value V, emit func(K2, V2)), opts ...Option) Stream[K2, V2] {
	out := rekey[K2, V2](s, "flat-map", f == nil, opts)
	s.n.use(func(o *opener) (port[K, V], error) {
		return newFlatMapPort(o, out, func(k K, v V, emit func(K2, V2)) error {
			f(k, v, emit)
			return nil
		})
	})
	return Stream[K2, V2]{out}
}

// TryFlatMap is FlatMap for a function that can fail; nothing of a failed
// record is kept.
func (s Stream[K, V]) TryFlatMap[K2, V2 any](f func(key K, value V, emit func(K2, V2)) error, opts ...Option) Stream[K2, V2] {
	out := rekey[K2, V2](s, "flat-map", f == nil, opts)
	s.n.use(func(o *opener) (port[K, V], error) { return newFlatMapPort(o, out, f) })
	return Stream[K2, V2]{out}
}

// FlatMapValues replaces each value by none, one or several.
func (s Stream[K, V]) FlatMapValues[V2 any](f func(value V) []V2, opts ...Option) Stream[K, V2] {
	out := mapValues[V2](s, "flat-map-values", f == nil, opts)
	s.n.use(func(o *opener) (port[K, V], error) {
		next, err := out.open(o)
		try := func(v V) ([]V2, error) { return f(v), nil }
		return &flatMapValuesPort[K, V, V2]{o, out.node, try, next}, err
	})
	return Stream[K, V2]{out}
}

// TryFlatMapValues is FlatMapValues for a function that can fail.
func (s Stream[K, V]) TryFlatMapValues[V2 any](f func(value V) ([]V2, error), opts ...Option) Stream[K, V2] {
	out := mapValues[V2](s, "flat-map-values", f == nil, opts)
	s.n.use(func(o *opener) (port[K, V], error) {
		next, err := out.open(o)
		return &flatMapValuesPort[K, V, V2]{o, out.node, f, next}, err
	})
	return Stream[K, V2]{out}
}

// A flatMapPort makes one emit for all records, so that a record costs no
// allocation.
type flatMapPort[K, V, K2, V2 any] struct {
	o    *opener
	n    *graph.Node
	f    func(K, V, func(K2, V2)) error
	next port[K2, V2]
	emit func(K2, V2)

	// Of the record at hand.
	live    bool
	time    time.Time
	headers Headers
	err     error // of what came after
}

func newFlatMapPort[K, V, K2, V2 any](o *opener, out *streamNode[K2, V2], f func(K, V, func(K2, V2)) error) (port[K, V], error) {
	next, err := out.open(o)
	p := &flatMapPort[K, V, K2, V2]{o: o, n: out.node, f: f, next: next}
	p.emit = p.emitOne
	return p, err
}

func (p *flatMapPort[K, V, K2, V2]) push(r Record[K, V]) error {
	if r.NoValue {
		p.o.drop(p.n, tombstoned)
		return nil
	}
	p.live, p.time, p.headers, p.err = true, r.Time, r.Headers, nil
	p.o.enter(p.n)
	err := p.f(r.Key, r.Value, p.emit)
	p.live = false
	if p.err != nil {
		return p.err
	}
	if err != nil {
		return p.o.fail(p.n, runtime.OpFunction, err)
	}
	return nil
}

func (p *flatMapPort[K, V, K2, V2]) emitOne(k K2, v V2) {
	if !p.live {
		panic("FlatMap's emit was called after the function had returned; call it only within")
	}
	if p.err != nil {
		return
	}
	p.err = p.next.push(Record[K2, V2]{Key: k, Value: v, Time: p.time, Headers: p.headers})
	p.o.enter(p.n)
}

type flatMapValuesPort[K, V, V2 any] struct {
	o    *opener
	n    *graph.Node
	f    func(V) ([]V2, error)
	next port[K, V2]
}

func (p *flatMapValuesPort[K, V, V2]) push(r Record[K, V]) error {
	if r.NoValue {
		return p.next.push(tombstone[V2](r))
	}
	p.o.enter(p.n)
	values, err := p.f(r.Value)
	if err != nil {
		return p.o.fail(p.n, runtime.OpFunction, err)
	}
	for _, v := range values {
		if err := p.next.push(r.WithValue(v)); err != nil {
			return err
		}
	}
	return nil
}
