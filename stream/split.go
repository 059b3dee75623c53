package stream

import "github.com/semelstream/semel/stream/internal/graph"

// Split sends a record to match if is is true of it, else to rest. Split
// rest again for more branches.
func (s Stream[K, V]) Split(is func(key K, value V) bool, opts ...Option) (match, rest Stream[K, V]) {
	x := newSplit(s, "split", is == nil, opts)
	s.n.use(func(o *opener) (port[K, V], error) {
		match, rest, err := x.open(o)
		return &splitPort[K, V]{o, x.node, is, match, rest}, err
	})
	return Stream[K, V]{x.match}, Stream[K, V]{x.rest}
}

// SplitRecords is Split for all that a record holds, tombstones too.
func (s Stream[K, V]) SplitRecords(is func(Record[K, V]) bool, opts ...Option) (match, rest Stream[K, V]) {
	x := newSplit(s, "split-records", is == nil, opts)
	s.n.use(func(o *opener) (port[K, V], error) {
		match, rest, err := x.open(o)
		return &splitRecordsPort[K, V]{o, x.node, is, match, rest}, err
	})
	return Stream[K, V]{x.match}, Stream[K, V]{x.rest}
}

// A split is a node with two outputs. Each is a node of its own, which does
// nothing but to show in descriptions which is which.
type split[K, V any] struct {
	node        *graph.Node
	match, rest *streamNode[K, V]
}

func newSplit[K, V any](s Stream[K, V], kind string, isNil bool, opts []Option) split[K, V] {
	x := filter(s, kind, isNil, opts)
	branch := func(name string) *streamNode[K, V] {
		n := *x
		n.node = x.b.add(name, settings{}, x.node)
		x.b.autoName(n.node, x.node.Name+"-"+name)
		return &n
	}
	return split[K, V]{x.node, branch("match"), branch("rest")}
}

func (x split[K, V]) open(o *opener) (match, rest port[K, V], err error) {
	if match, err = x.match.open(o); err == nil {
		rest, err = x.rest.open(o)
	}
	return match, rest, err
}

type splitPort[K, V any] struct {
	o           *opener
	n           *graph.Node
	is          func(K, V) bool
	match, rest port[K, V]
}

// push sends a tombstone both ways, since which branch holds its key is not
// known.
func (p *splitPort[K, V]) push(r Record[K, V]) error {
	if r.NoValue {
		if err := p.match.push(r); err != nil {
			return err
		}
		return p.rest.push(r)
	}
	p.o.enter(p.n)
	if p.is(r.Key, r.Value) {
		return p.match.push(r)
	}
	return p.rest.push(r)
}

type splitRecordsPort[K, V any] struct {
	o           *opener
	n           *graph.Node
	is          func(Record[K, V]) bool
	match, rest port[K, V]
}

func (p *splitRecordsPort[K, V]) push(r Record[K, V]) error {
	p.o.enter(p.n)
	if p.is(r) {
		return p.match.push(r)
	}
	return p.rest.push(r)
}
