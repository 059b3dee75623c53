package stream

import "github.com/semelstream/semel/state"

// A Table is the latest row of each key. Its changes drive what follows, and
// a deleted row is a change too.
type Table[K, V any] struct{ n *tableNode[K, V] }

// at is the typed side of t.
func (t Table[K, V]) at() *tableNode[K, V] {
	if t.n == nil {
		panic("stream: a Table that was declared but never made is used; get one from Builder.Table or an operator")
	}
	return t.n
}

// ToStream is the table's changes as a stream; a deleted row is a tombstone.
func (t Table[K, V]) ToStream(opts ...Option) Stream[K, V] {
	return Stream[K, V]{changesOf(t.at(), settingsOf(opts))}
}

// changesOf is a table's changes as a stream.
func changesOf[K, V any](from *tableNode[K, V], set settings) *streamNode[K, V] {
	b := from.b
	n := &streamNode[K, V]{b: b, key: from.key, value: from.value}
	n.node = b.add("to-stream", set, from.node)
	from.use(func(o *opener) (tablePort[K, V], error) {
		out, err := n.open(o)
		return &toStreamPort[K, V]{out}, err
	})
	return n
}

type toStreamPort[K, V any] struct{ out port[K, V] }

func (p *toStreamPort[K, V]) change(c change[K, V]) error {
	return p.out.push(Record[K, V]{
		Key: c.key, Value: c.new, Time: timeOf(c.ms), Headers: c.headers, NoValue: !c.hasNew,
	})
}

// To writes the table's changes to topic, which should be compacted.
func (t Table[K, V]) To(topic Topic[K, V], opts ...Option) {
	t.ToStream().To(topic, opts...)
}

// In reads the table from a processor that [Uses] it. The table must have a
// store: one that is worked out from another gets it by [Table.Stored].
func (t Table[K, V]) In(c Scope) state.Reader[K, V] {
	return used[*reader[K, V]](c, t.n, "table", t.n.node.Name)
}
