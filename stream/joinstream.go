package stream

import (
	"fmt"
	"reflect"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/state"
	"github.com/semelstream/semel/stream/internal/graph"
)

// JoinStream pairs each record of s with each record of other that has the
// same key and a time within w. Both sides are kept in stores named after
// store. A stream may be joined with itself.
//
// A pair is sent when its second record comes, with that one's headers and the
// later of both times. Records later than the grace of w, without a key or
// without a value are dropped.
func (s Stream[K, V]) JoinStream[V2, R any](store string, other Stream[K, V2], w JoinWindow, f func(left V, right V2) R, opts ...StoreOption) Stream[K, R] {
	return joinStreams(s, other, joinShape{kind: "join-stream"}, store, w, f == nil, opts,
		func(l V, _ bool, r V2, _ bool) R { return f(l, r) })
}

// LeftJoinStream is JoinStream that passes records of s that found no partner
// too, once none can come any more, with ok false. They keep their own time
// and headers. A record of s without a key is passed at once.
func (s Stream[K, V]) LeftJoinStream[V2, R any](store string, other Stream[K, V2], w JoinWindow, f func(left V, right V2, ok bool) R, opts ...StoreOption) Stream[K, R] {
	return joinStreams(s, other, joinShape{kind: "left-join-stream", left: true}, store, w, f == nil, opts,
		func(l V, _ bool, r V2, ok bool) R { return f(l, r, ok) })
}

// OuterJoinStream is JoinStream that passes records of both sides that found
// no partner too; the ok of the missing side is false.
func (s Stream[K, V]) OuterJoinStream[V2, R any](store string, other Stream[K, V2], w JoinWindow, f func(left V, lok bool, right V2, rok bool) R, opts ...StoreOption) Stream[K, R] {
	return joinStreams(s, other, joinShape{kind: "outer-join-stream", left: true, right: true}, store, w, f == nil, opts, f)
}

// A joinShape says which sides pass records that find no partner.
type joinShape struct {
	kind        string
	left, right bool
}

// stores are the stores' names behind that of the join. They are Kafka
// Streams', in which a side is called outer if the other one waits for it.
func (s joinShape) stores(store string) (left, right, waiting string) {
	left, right = store+"-this-join-store", store+"-other-join-store"
	switch {
	case s.right:
		return store + "-outer-this-join-store", store + "-outer-other-join-store", store + "-outer-shared-join-store"
	case s.left:
		return left, store + "-outer-other-join-store", store + "-left-shared-join-store"
	}
	return left, right, ""
}

func joinStreams[K, V, V2, R any](s Stream[K, V], other Stream[K, V2], shape joinShape, store string, w JoinWindow, isNil bool, opts []StoreOption,
	f func(V, bool, V2, bool) R) Stream[K, R] {

	b, set := s.at().b, settingsOf(opts)
	s, other = s.joined(store+"-left", set, shape.left), other.joined(store+"-right", set, shape.right)
	n := &streamNode[K, R]{b: b}
	if any(s.n) == any(other.n) {
		n.node = b.add(shape.kind, set, s.n.node)
	} else {
		n.node = b.add(shape.kind, set, s.n.node, other.n.node)
	}
	b.needFunc(n.node, isNil)
	b.copartition(n.node)
	d := declareJoin(b, n.node, shape, store, w, set, s.n, other.n)
	n.key = d.key
	open := func(o *opener) (*joining[K, R], error) {
		return share(o, n.node, func() (*joining[K, R], error) { return openJoin(o, n, d, f) })
	}
	s.n.use(func(o *opener) (port[K, V], error) {
		j, err := open(o)
		if err != nil {
			return nil, err
		}
		return openSide(j, leftSide, shape.left, d.left, d.right, func(l V, r V2) R { return f(l, true, r, true) }, func(l V) R {
			var none V2
			return f(l, true, none, false)
		})
	})
	other.n.use(func(o *opener) (port[K, V2], error) {
		j, err := open(o)
		if err != nil {
			return nil, err
		}
		return openSide(j, rightSide, shape.right, d.right, d.left, func(r V2, l V) R { return f(l, true, r, true) }, func(r V2) R {
			var none V
			return f(none, false, r, true)
		})
	})
	return Stream[K, R]{n}
}

// joined is a side of a join, partitioned by key. keepNoKey is for a side that
// passes records without one.
func (s Stream[K, V]) joined(topic string, set settings, keepNoKey bool) Stream[K, V] {
	if !s.at().rekeyed {
		return s
	}
	set = settings{keyCodec: set.keyCodec, valueCodec: ofType[V](set.valueCodec), keepNoKey: keepNoKey}
	return repartition(s, topic, set)
}

// ofType is the setting of a codec if it is one of T: the two sides of a join
// have an option in common.
func ofType[T any](setting any) any {
	if set, ok := setting.(codecSetting); ok && set.of == reflect.TypeFor[T]() {
		return set
	}
	return nil
}

// A joinDeclared is what is fixed of a join when it is declared.
type joinDeclared[K, V, V2 any] struct {
	shape   joinShape
	span    joinSpan
	key     codec.Codec[K]
	touch   bool // the keys of the sources before are those of the rows
	left    *joinStore[K, V]
	right   *joinStore[K, V2]
	waiting *keptStore[[]byte, []byte] // nil in inner joins
}

// A joinStore keeps the records of one side.
type joinStore[K, V any] struct {
	name  string
	key   codec.Codec[K]
	value codec.Codec[V]
}

func declareJoin[K, V, V2 any](b *Builder, node *graph.Node, shape joinShape, store string, w JoinWindow, set settings, l *streamNode[K, V], r *streamNode[K, V2]) *joinDeclared[K, V, V2] {
	if text := badName("store", store); text != "" {
		b.problem(node, "%s", text)
		store = node.Name // so that nothing else is wrong
	}
	b.autoName(node, store)
	if set.valueCodec != nil && ofType[V](set.valueCodec) == nil && ofType[V2](set.valueCodec) == nil {
		codecFor(b, node, set.valueCodec, l.value) // says what is wrong
		set.valueCodec = nil
	}
	d := &joinDeclared[K, V, V2]{shape: shape, span: w.span(b, node), key: codecFor(b, node, set.keyCodec, l.key)}
	d.touch = set.keyCodec == nil && l.key != nil && r.key != nil // encoded as the sources have it
	left, right, shared := shape.stores(store)
	d.left = keepSide(b, node, left, set, d.span, d.key, l.value)
	d.right = keepSide(b, node, right, set, d.span, d.key, r.value)
	if shared != "" {
		d.waiting = newStore(b, node, shared, set, codec.Bytes, codec.Bytes)
	}
	return d
}

// keepSide declares the store of one side.
func keepSide[K, V any](b *Builder, node *graph.Node, name string, set settings, span joinSpan, key codec.Codec[K], value codec.Codec[V]) *joinStore[K, V] {
	s := b.addStore(node, name, graph.Window, set)
	s.Retain, s.ByKey, s.Duplicates, s.NeverEarly = span.retain(), true, true, true
	value = codecFor(b, node, ofType[V](set.valueCodec), value)
	withCodecs(s, key, value)
	return &joinStore[K, V]{name, key, value}
}

// open gives the store of o's task.
func (s *joinStore[K, V]) open(o *opener) (*state.Window[K, V], error) {
	w, err := state.OpenWindow(o.task.DB(), s.name, s.key, s.value)
	if err != nil {
		return nil, fmt.Errorf("opening store %q: %w", s.name, err)
	}
	keepExpiry(o, s.name, w) // for the restore, which comes before the operator
	keepAdded(o, s.name, w.Added, w.SetAdded)
	return w, nil
}
