package stream

import (
	"reflect"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/stream/internal/graph"
)

// A foreign-key join has two sides that are partitioned by different keys. The
// left side sends each row's foreign key, with a hash of the row, to the task
// that has the row of that key: it subscribes. The right side keeps the
// subscription, and answers it now and whenever its row changes. An answer is
// paired with the row on the left if that still has the hash that the answer
// carries; if not, another answer is on its way. So the result is right once
// all has arrived, whatever order it came in.

// JoinOn pairs each row with the row of other that its foreign key names. Many
// rows may name the same one and all change with it; foreign is false for a
// row that names none. The topics between the two sides and the store of
// subscriptions are named after name. The result may be [Table.Stored], and
// must be where its rows are looked up or compared with those before.
//
// [KeyCodec] and [ValueCodec] are for keys and values whose codec is not
// inherited from a topic, of whichever side has the type.
func (t Table[K, V]) JoinOn[FK, V2, R any](name string, other Table[FK, V2], foreign func(key K, value V) (FK, bool), f func(left V, right V2) R, opts ...CodecOption) Table[K, R] {
	return joinOn(t, name, other, false, foreign, f == nil, opts, func(l V, r V2, _ bool) R { return f(l, r) })
}

// LeftJoinOn is JoinOn with a result for each row of t; ok is false where it
// has no foreign key or other has no such row.
func (t Table[K, V]) LeftJoinOn[FK, V2, R any](name string, other Table[FK, V2], foreign func(key K, value V) (FK, bool), f func(left V, right V2, ok bool) R, opts ...CodecOption) Table[K, R] {
	return joinOn(t, name, other, true, foreign, f == nil, opts, f)
}

func joinOn[K, V, FK, V2, R any](t Table[K, V], name string, other Table[FK, V2], left bool, foreign func(K, V) (FK, bool), isNil bool, opts []CodecOption, f func(V, V2, bool) R) Table[K, R] {
	from, to, b, set := t.at(), other.at(), t.n.b, settingsOf(opts)
	of := settings{policy: set.policy}
	j := &foreignJoin[K, V, FK, V2, R]{left: left, foreign: foreign, f: f}

	// The left side subscribes ...
	j.extract = b.add("foreign-key", of, from.node)
	b.needFunc(j.extract, foreign == nil)
	if name == "" {
		b.problem(j.extract, "%s", badName("join", name))
	}
	j.codecs(b, from, to, set)
	registerSink := b.add(graph.Sink, of, j.extract)
	registerSource := b.add(graph.Source, of)
	register := b.betweenTopic(registerSink, registerSource, name, "-subscription-registration", j.foreignKey)

	// ... the right side answers ...
	j.answer = b.add("subscriptions", of, registerSource, to.node)
	to.needRows(j.answer)
	j.subs = newStore(b, j.answer, name+"-subscription-store", settings{}, codec.Bytes, codec.Bytes)
	answerSink := b.add(graph.Sink, of, j.answer)
	answerSource := b.add(graph.Source, of)
	answers := b.betweenTopic(answerSink, answerSource, name, "-subscription-response", nil)
	answers.Explicit = true

	// ... and the left side joins.
	kind := "join-on"
	if left {
		kind = "left-join-on"
	}
	n := &tableNode[K, R]{b: b, key: from.key}
	n.node = b.add(kind, settings{name: set.name, policy: set.policy}, answerSource, from.node)
	b.needFunc(n.node, isNil)
	from.needRows(n.node)
	b.autoName(n.node, name)
	b.autoName(j.extract, name+"-foreign-key")
	b.autoName(j.answer, name+"-subscriptions")
	j.n = n
	n.askOld = func() {
		b.problem(n.node, "what follows compares each row with the one before, which this join does not keep; keep its rows with .Stored(\"name\") and use that table")
	}

	from.needOld()
	from.use(func(o *opener) (tablePort[K, V], error) { return j.openLeft(o, registerSink, register) })
	j.readRegistrations(b, registerSource, register, to, answerSink, answers)
	to.use(func(o *opener) (tablePort[FK, V2], error) {
		p, err := j.openRight(o, to, answerSink, answers)
		return rightChanges[K, V, FK, V2, R]{p}, err
	})
	j.readAnswers(b, answerSource, answers, from)
	b.copartition(j.answer)
	b.copartition(n.node)
	return Table[K, R]{n}
}

// betweenTopic makes a topic between the sides of a foreign-key join. It has
// as many partitions as the side that reads it.
func (b *Builder) betweenTopic(sink, source *graph.Node, name, kind string, key any) *graph.Topic {
	t := b.internalTopic(sink, name+kind+"-topic", key, settings{})
	t.Whole, t.Follows, t.Sink = true, true, true
	sink.Topic = t
	b.autoName(sink, name+kind+"-sink")
	b.autoName(source, name+kind+"-source")
	return t
}

// A foreignJoin is a foreign-key join as it is declared.
type foreignJoin[K, V, FK, V2, R any] struct {
	left    bool // rows without a partner have a result too
	foreign func(K, V) (FK, bool)
	f       func(V, V2, bool) R

	extract, answer *graph.Node
	subs            *keptStore[[]byte, []byte]
	n               *tableNode[K, R]

	key        codec.Codec[K]
	value      codec.Codec[V]
	foreignKey codec.Codec[FK]
	other      codec.Codec[V2]
}

// codecs finds the codecs of both sides.
func (j *foreignJoin[K, V, FK, V2, R]) codecs(b *Builder, from *tableNode[K, V], to *tableNode[FK, V2], set settings) {
	b.checkCodecOption(j.extract, set.keyCodec, reflect.TypeFor[K](), reflect.TypeFor[FK]())
	b.checkCodecOption(j.extract, set.valueCodec, reflect.TypeFor[V](), reflect.TypeFor[V2]())
	j.key = codecFor(b, j.extract, ifOf[K](set.keyCodec), from.key)
	j.value = codecFor(b, j.extract, ifOf[V](set.valueCodec), from.value)
	j.foreignKey = codecFor(b, j.extract, ifOf[FK](set.keyCodec), to.key)
	j.other = codecFor(b, j.extract, ifOf[V2](set.valueCodec), to.value)
}

// ifOf is the codec setting if it is for T.
func ifOf[T any](explicit any) any {
	if set, ok := explicit.(codecSetting); ok && set.of == reflect.TypeFor[T]() {
		return set
	}
	return nil
}

// checkCodecOption says if an option's codec is for neither type.
func (b *Builder) checkCodecOption(n *graph.Node, explicit any, one, other reflect.Type) {
	if set, ok := explicit.(codecSetting); ok && set.of != one && set.of != other {
		b.problem(n, "it is given a codec of %v where it writes %v and %v; give it a codec of one of these", set.of, one, other)
	}
}
