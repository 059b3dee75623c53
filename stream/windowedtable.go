package stream

import (
	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/stream/internal/graph"
)

// A WindowedTable holds a row per key and window. It sends as the aggregate
// does that it comes from, unless Final or Suppress follows.
//
// It is a type of its own because a method chain that reaches Table[Windowed[K],
// V] does not compile; [Rows] makes one outside the chain.
type WindowedTable[K, V any] struct {
	n *tableNode[Windowed[K], V]
}

// at is the typed side of t.
func (t WindowedTable[K, V]) at() *tableNode[Windowed[K], V] {
	if t.n == nil {
		panic("stream: a WindowedTable that was declared but never made is used; get one from an aggregate by windows")
	}
	return t.n
}

// Filter is [Table.Filter].
func (t WindowedTable[K, V]) Filter(keep func(key Windowed[K], value V) bool, opts ...Option) WindowedTable[K, V] {
	n := newView(t.at(), "table-filter", opts, keep == nil, func(key Windowed[K], v V) (V, bool, error) {
		return v, keep(key, v), nil
	})
	n.value = t.n.value
	return WindowedTable[K, V]{n}
}

// MapValues is [Table.MapValues].
func (t WindowedTable[K, V]) MapValues[V2 any](f func(value V) V2, opts ...Option) WindowedTable[K, V2] {
	return WindowedTable[K, V2]{newView(t.at(), "table-map", opts, f == nil, func(_ Windowed[K], v V) (V2, bool, error) {
		return f(v), true, nil
	})}
}

// GroupBy is [Table.GroupBy] over all windows.
func (t WindowedTable[K, V]) GroupBy[K2, V2 any](f func(key Windowed[K], value V) (K2, V2), opts ...GroupOption) GroupedTable[K2, V2] {
	return groupRows(t.at(), f, settingsOf(opts))
}

// Unwindowed is the table's changes under the key alone. They stay in their
// partitions, so nothing is repartitioned.
func (t WindowedTable[K, V]) Unwindowed(opts ...Option) Stream[K, V] {
	n := windowsToStream(t.at(), opts, false, func(w Windowed[K]) K { return w.Key })
	n.key = innerOf(t.n.key)
	return Stream[K, V]{n}
}

// ToStream is the table's changes under the key that key gives: [KeepWindow]
// or a function of your own.
func (t WindowedTable[K, V]) ToStream[K2 any](key func(Windowed[K]) K2, opts ...Option) Stream[K2, V] {
	n := windowsToStream(t.at(), opts, key == nil, key)
	n.key, _ = any(t.n.key).(codec.Codec[K2])
	n.rekeyed = true
	return Stream[K2, V]{n}
}

// To writes the table's changes to topic. They go to the partition of the key
// without its window if the topic's keys are [WindowKey]s or [SessionKey]s.
func (t WindowedTable[K, V]) To(topic Topic[Windowed[K], V], opts ...Option) {
	writeTo(changesOf(t.at(), settings{}), topic, settingsOf(opts))
}

// KeepWindow is the key with its window, for [WindowedTable.ToStream].
func KeepWindow[K any](w Windowed[K]) Windowed[K] { return w }

// Rows is t as a table of windowed keys, for what only a [Table] can do, such
// as joining windows with windows. It stays in its partitions.
func Rows[K, V any](t WindowedTable[K, V]) Table[Windowed[K], V] {
	return Table[Windowed[K], V]{t.at()}
}

// windowsToStream is a table's changes under keys that f makes of windowed
// ones.
func windowsToStream[K, K2, V any](from *tableNode[Windowed[K], V], opts []Option, isNil bool, f func(Windowed[K]) K2) *streamNode[K2, V] {
	b := from.b
	n := &streamNode[K2, V]{b: b, value: from.value}
	n.node = b.add("to-stream", settingsOf(opts), from.node)
	b.needFunc(n.node, isNil)
	from.use(func(o *opener) (tablePort[Windowed[K], V], error) {
		out, err := n.open(o)
		return &windowsPort[K, K2, V]{o, n.node, f, out}, err
	})
	return n
}

type windowsPort[K, K2, V any] struct {
	o    *opener
	node *graph.Node
	f    func(Windowed[K]) K2
	out  port[K2, V]
}

func (p *windowsPort[K, K2, V]) change(c change[Windowed[K], V]) error {
	p.o.enter(p.node)
	return p.out.push(Record[K2, V]{
		Key: p.f(c.key), Value: c.new, Time: timeOf(c.ms), Headers: c.headers, NoValue: !c.hasNew,
	})
}
