package stream

import (
	"strconv"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/stream/internal/graph"
)

// A Cogrouped is several grouped streams that update the same rows.
type Cogrouped[K, A any] struct{ inputs []cogroupInput[K, A] }

// Cogroup begins an aggregate of several grouped streams into one row per
// key. Its functions are those of [Grouped.Update].
func (g Grouped[K, V]) Cogroup[A any](f func(key K, value V, row A, ok bool) (A, bool)) Cogrouped[K, A] {
	return Cogrouped[K, A]{}.With(g, f)
}

// With adds another stream. All have one stream time.
func (c Cogrouped[K, A]) With[V any](g Grouped[K, V], f func(key K, value V, row A, ok bool) (A, bool)) Cogrouped[K, A] {
	in := cogroupInput[K, A]{b: g.s.at().b, isNil: f == nil}
	in.open = func(topic string) cogroupStream[K, A] {
		s := g.byKey(topic)
		return cogroupStream[K, A]{node: s.n.node, key: s.n.key, keyCodec: g.set.keyCodec, feed: func(a *aggregation[K, A]) {
			feedAggregation(a, s, func(k K, v V, row A, ok bool) (A, bool, error) {
				row, ok = f(k, v, row, ok)
				return row, ok, nil
			})
		}}
	}
	return Cogrouped[K, A]{append(c.inputs[:len(c.inputs):len(c.inputs)], in)}
}

// A cogroupInput is a stream and its function. The type of its values is
// hidden in open, which is called when the name of its topic is known.
type cogroupInput[K, A any] struct {
	b     *Builder
	isNil bool
	open  func(topic string) cogroupStream[K, A]
}

// A cogroupStream is an input that is partitioned by its key.
type cogroupStream[K, A any] struct {
	node     *graph.Node
	key      codec.Codec[K]
	keyCodec any // of the grouping's option
	feed     func(a *aggregation[K, A])
}

// ToTable keeps the rows in store. A stream whose key may have changed goes
// through a repartition topic: the first stream's is named after store, that
// of the second store-2, and so on.
func (c Cogrouped[K, A]) ToTable(store string, opts ...AggregateOption) Table[K, A] {
	if len(c.inputs) == 0 {
		panic("stream: a Cogrouped that was declared but never made is used; get one from Grouped.Cogroup")
	}
	b, set := c.inputs[0].b, settingsOf(opts)
	node, streams := c.node("cogroup", store, set)
	first := streams[0]
	if set.keyCodec == nil {
		set.keyCodec = first.keyCodec
	}
	a := newAggregation[K, A](b, node, store, set, first.key, nil)
	a.touch = set.keyCodec == nil && sameKeys(streams)
	for _, s := range streams {
		s.feed(a)
	}
	return Table[K, A]{a.n}
}

// node is the node where the inputs meet, and the inputs as they reach it.
func (c Cogrouped[K, A]) node(kind, store string, set settings) (*graph.Node, []cogroupStream[K, A]) {
	b := c.inputs[0].b
	var streams []cogroupStream[K, A]
	var parents []*graph.Node
	for i, in := range c.inputs {
		topic := store
		if i > 0 {
			topic += "-" + strconv.Itoa(i+1)
		}
		s := in.open(topic)
		streams, parents = append(streams, s), append(parents, s.node)
	}
	node := b.add(kind, set, parents...)
	for _, in := range c.inputs {
		b.needFunc(node, in.isNil)
	}
	b.copartition(node)
	return node, streams
}

// sameKeys says that all streams write keys alike, as far as it is known.
func sameKeys[K, A any](streams []cogroupStream[K, A]) bool {
	for _, s := range streams {
		if s.key == nil || !sameCodec(s.key, streams[0].key) {
			return false
		}
	}
	return true
}
