package stream

import (
	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/stream/internal/graph"
	"github.com/semelstream/semel/stream/internal/runtime"
)

// Map replaces key and value. What follows and works by key will be
// repartitioned, as after all operators that may change keys.
func (s Stream[K, V]) Map[K2, V2 any](f func(key K, value V) (K2, V2), opts ...Option) Stream[K2, V2] {
	out := rekey[K2, V2](s, "map", f == nil, opts)
	s.n.use(func(o *opener) (port[K, V], error) {
		next, err := out.open(o)
		return &mapPort[K, V, K2, V2]{o, out.node, f, next}, err
	})
	return Stream[K2, V2]{out}
}

// MapRecords is Map for all that a record holds and can become: headers,
// time, tombstones, no key. To change only headers or time and stay in the
// same partition use ProcessValues.
func (s Stream[K, V]) MapRecords[K2, V2 any](f func(Record[K, V]) Record[K2, V2], opts ...Option) Stream[K2, V2] {
	out := rekey[K2, V2](s, "map-records", f == nil, opts)
	s.n.use(func(o *opener) (port[K, V], error) {
		next, err := out.open(o)
		return &mapRecordsPort[K, V, K2, V2]{o, out.node, f, next}, err
	})
	return Stream[K2, V2]{out}
}

// SelectKey replaces each key.
func (s Stream[K, V]) SelectKey[K2 any](f func(key K, value V) K2, opts ...Option) Stream[K2, V] {
	out := rekey[K2, V](s, "select-key", f == nil, opts)
	s.n.use(func(o *opener) (port[K, V], error) {
		next, err := out.open(o)
		return &selectKeyPort[K, V, K2]{o, out.node, f, next}, err
	})
	return Stream[K2, V]{out}
}

// TryMap is Map for a function that can fail.
func (s Stream[K, V]) TryMap[K2, V2 any](f func(key K, value V) (K2, V2, error), opts ...Option) Stream[K2, V2] {
	out := rekey[K2, V2](s, "map", f == nil, opts)
	s.n.use(func(o *opener) (port[K, V], error) {
		next, err := out.open(o)
		return &tryMapPort[K, V, K2, V2]{o, out.node, f, next}, err
	})
	return Stream[K2, V2]{out}
}

// TryMapRecords is MapRecords for a function that can fail.
func (s Stream[K, V]) TryMapRecords[K2, V2 any](f func(Record[K, V]) (Record[K2, V2], error), opts ...Option) Stream[K2, V2] {
	out := rekey[K2, V2](s, "map-records", f == nil, opts)
	s.n.use(func(o *opener) (port[K, V], error) {
		next, err := out.open(o)
		return &tryMapRecordsPort[K, V, K2, V2]{o, out.node, f, next}, err
	})
	return Stream[K2, V2]{out}
}

// rekey makes the node of an operator that may change keys. Where a type
// stays, its codec does.
func rekey[K2, V2, K, V any](s Stream[K, V], kind string, isNil bool, opts []Option) *streamNode[K2, V2] {
	from := s.at()
	out := derive[K2, V2](s, kind, settingsOf(opts))
	out.rekeyed = true
	out.key, out.value = sameType[K2](from.key), sameType[V2](from.value)
	from.b.needFunc(out.node, isNil)
	return out
}

// sameType is c if it is a codec of T2 too, else nil.
func sameType[T2, T any](c codec.Codec[T]) codec.Codec[T2] {
	same, _ := any(c).(codec.Codec[T2])
	return same
}

type mapPort[K, V, K2, V2 any] struct {
	o    *opener
	n    *graph.Node
	f    func(K, V) (K2, V2)
	next port[K2, V2]
}

func (p *mapPort[K, V, K2, V2]) push(r Record[K, V]) error {
	if r.NoValue {
		p.o.drop(p.n, tombstoned)
		return nil
	}
	p.o.enter(p.n)
	k, v := p.f(r.Key, r.Value)
	return p.next.push(Record[K2, V2]{Key: k, Value: v, Time: r.Time, Headers: r.Headers})
}

type tryMapPort[K, V, K2, V2 any] struct {
	o    *opener
	n    *graph.Node
	f    func(K, V) (K2, V2, error)
	next port[K2, V2]
}

func (p *tryMapPort[K, V, K2, V2]) push(r Record[K, V]) error {
	if r.NoValue {
		p.o.drop(p.n, tombstoned)
		return nil
	}
	p.o.enter(p.n)
	k, v, err := p.f(r.Key, r.Value)
	if err != nil {
		return p.o.fail(p.n, runtime.OpFunction, err)
	}
	return p.next.push(Record[K2, V2]{Key: k, Value: v, Time: r.Time, Headers: r.Headers})
}

type mapRecordsPort[K, V, K2, V2 any] struct {
	o    *opener
	n    *graph.Node
	f    func(Record[K, V]) Record[K2, V2]
	next port[K2, V2]
}

func (p *mapRecordsPort[K, V, K2, V2]) push(r Record[K, V]) error {
	p.o.enter(p.n)
	out := p.f(r)
	if err := out.check(); err != nil {
		return p.o.fail(p.n, runtime.OpFunction, err)
	}
	return p.next.push(out)
}

type tryMapRecordsPort[K, V, K2, V2 any] struct {
	o    *opener
	n    *graph.Node
	f    func(Record[K, V]) (Record[K2, V2], error)
	next port[K2, V2]
}

func (p *tryMapRecordsPort[K, V, K2, V2]) push(r Record[K, V]) error {
	p.o.enter(p.n)
	out, err := p.f(r)
	if err == nil {
		err = out.check()
	}
	if err != nil {
		return p.o.fail(p.n, runtime.OpFunction, err)
	}
	return p.next.push(out)
}

type selectKeyPort[K, V, K2 any] struct {
	o    *opener
	n    *graph.Node
	f    func(K, V) K2
	next port[K2, V]
}

func (p *selectKeyPort[K, V, K2]) push(r Record[K, V]) error {
	if r.NoValue {
		p.o.drop(p.n, tombstoned)
		return nil
	}
	p.o.enter(p.n)
	return p.next.push(r.WithKey(p.f(r.Key, r.Value)))
}
