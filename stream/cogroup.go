package stream

import (
	"strconv"
	"time"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/stream/internal/graph"
)

// A Cogrouped is several grouped streams that update the same rows: by key, by
// key and window, or by key and session. Records without key or value are
// dropped. Results reach what follows as those of [Grouped] do.
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
		try := trying(f)
		return cogroupStream[K, A]{
			node: s.n.node, key: s.n.key, keyCodec: g.set.keyCodec,
			feed:        func(a *aggregation[K, A]) { feedAggregation(a, s, try) },
			feedWindows: func(a *windowAggregation[K, A]) { feedWindows(a, s, try) },
			feedSessions: func(kept *keptSessions[K, A], each bool, merge func(key K, acc A, ok bool, row A) A) {
				feedSessions(kept, s, each, f, merge)
			},
		}
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

// A cogroupStream is an input that is partitioned by its key. One of its
// functions is called, for the rows that it updates.
type cogroupStream[K, A any] struct {
	node     *graph.Node
	key      codec.Codec[K]
	keyCodec any // of the grouping's option

	feed         func(a *aggregation[K, A])
	feedWindows  func(a *windowAggregation[K, A])
	feedSessions func(kept *keptSessions[K, A], each bool, merge func(key K, acc A, ok bool, row A) A)
}

// ToTable keeps the rows in store. A stream whose key may have changed goes
// through a repartition topic: the first stream's is named after store, that
// of the second store-2, and so on.
func (c Cogrouped[K, A]) ToTable(store string, opts ...AggregateOption) Table[K, A] {
	in := c.gather("cogroup", store, settingsOf(opts))
	a := newAggregation[K, A](in.b, in.node, store, in.set, in.key, nil)
	a.touch = in.touch
	for _, s := range in.streams {
		s.feed(a)
	}
	return Table[K, A]{a.n}
}

// ToWindows keeps a row per key and window in store. What counts as late, and
// when rows go, is as for [WindowedGroup], by the time that all streams have
// together: a record that is late by another stream is late. Topics are named
// as those of ToTable.
func (c Cogrouped[K, A]) ToWindows(store string, w Windows, opts ...WindowOption) WindowedTable[K, A] {
	in := c.gather("window-cogroup", store, settingsOf(opts))
	a := newWindowAggregation[K, A](in.b, in.node, store, in.set, w, in.key, nil)
	a.touch = in.touch
	for _, s := range in.streams {
		s.feedWindows(a)
	}
	return WindowedTable[K, A]{a.n}
}

// ToSessions keeps a row per key and session in store; gap and grace are those
// of [Grouped.Sessions]. A session has the records of all streams that are at
// most gap apart, and merge combines rows as that of [SessionGroup.Update]: it
// only gets rows, so that a session that goes on alone is not merged. Topics are
// named as those of ToTable.
func (c Cogrouped[K, A]) ToSessions(store string, gap, grace time.Duration, merge func(key K, a, b A) A, opts ...WindowOption) WindowedTable[K, A] {
	in := c.gather("session-cogroup", store, settingsOf(opts))
	in.b.needFunc(in.node, merge == nil)
	kept := keepSessions[K, A](in.b, in.node, store, in.set, sessionRules(in.b, in.node, gap, grace), in.key, nil)
	for _, s := range in.streams {
		s.feedSessions(kept, in.set.emitEach, mergeRows(merge))
	}
	return WindowedTable[K, A]{kept.table}
}

// A gathered cogroup has the node where its inputs meet, and what is known of
// them there.
type gathered[K, A any] struct {
	b       *Builder
	node    *graph.Node
	streams []cogroupStream[K, A]
	set     settings
	key     codec.Codec[K] // of the first stream
	touch   bool           // all have their keys encoded as the rows have
}

// gather makes the inputs meet in a node of that kind.
func (c Cogrouped[K, A]) gather(kind, store string, set settings) gathered[K, A] {
	if len(c.inputs) == 0 {
		panic("stream: a Cogrouped that was declared but never made is used; get one from Grouped.Cogroup")
	}
	node, streams := c.node(kind, store, set)
	first := streams[0]
	if set.keyCodec == nil {
		set.keyCodec = first.keyCodec
	}
	return gathered[K, A]{
		b: c.inputs[0].b, node: node, streams: streams, set: set,
		key: first.key, touch: set.keyCodec == nil && sameKeys(streams),
	}
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
