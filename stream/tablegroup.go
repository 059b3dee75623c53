package stream

import (
	"bytes"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/stream/internal/graph"
	"github.com/semelstream/semel/stream/internal/runtime"
)

// A GroupedTable is a table's rows under other keys, ready to aggregate. A
// row that changes is removed from its old group and added to its new one, in
// one step if they are the same.
type GroupedTable[K, V any] struct {
	steps Stream[K, step[V]] // by group
	set   settings           // of the repartition topic
	value codec.Codec[V]     // of the rows in a group
}

// GroupBy puts rows under other keys to aggregate them. Filter first to leave
// rows out.
func (t Table[K, V]) GroupBy[K2, V2 any](f func(key K, value V) (K2, V2), opts ...GroupOption) GroupedTable[K2, V2] {
	return groupRows(t.at(), f, settingsOf(opts))
}

// groupRows puts the rows of from under other keys.
func groupRows[K, V, K2, V2 any](from *tableNode[K, V], f func(key K, value V) (K2, V2), set settings) GroupedTable[K2, V2] {
	b := from.b
	from.needOld()
	node := b.add("table-group-by", set, from.node)
	b.needFunc(node, f == nil)
	key := codecFor[K2](b, node, set.keyCodec, nil)
	value := codecFor[V2](b, node, set.valueCodec, nil)
	n := &streamNode[K2, step[V2]]{b: b, node: node, rekeyed: true, key: key, value: stepCodec[V2]{value}}
	from.use(func(o *opener) (tablePort[K, V], error) {
		out, err := n.open(o)
		return &groupPort[K, V, K2, V2]{o: o, node: node, f: f, key: key, out: out}, err
	})
	// The options' codecs are in the stream already, and the topic's values
	// are steps.
	return GroupedTable[K2, V2]{
		steps: Stream[K2, step[V2]]{n},
		set:   settings{partitions: set.partitions, partitionsSet: set.partitionsSet},
		value: value,
	}
}

// A groupPort makes a change of a row the steps that it means for groups.
type groupPort[K, V, K2, V2 any] struct {
	o        *opener
	node     *graph.Node
	f        func(key K, value V) (K2, V2)
	key      codec.Codec[K2]
	out      port[K2, step[V2]]
	old, new []byte // scratch
}

func (p *groupPort[K, V, K2, V2]) change(c change[K, V]) error {
	if c.past {
		return nil // the row stays in its group
	}
	var s step[V2]
	var from, to K2
	if c.hasOld {
		p.o.enter(p.node)
		from, s.old = p.f(c.key, c.old)
		s.hasOld = true
	}
	if c.hasNew {
		p.o.enter(p.node)
		to, s.new = p.f(c.key, c.new)
		s.hasNew = true
	}
	if s.hasOld && s.hasNew {
		same, err := p.same(from, to)
		if err != nil {
			return err
		}
		if !same {
			// The row leaves its old group before it comes to the new one.
			if err := p.send(from, step[V2]{old: s.old, hasOld: true}, c); err != nil {
				return err
			}
			s = step[V2]{new: s.new, hasNew: true}
		}
	}
	switch {
	case s.hasNew:
		return p.send(to, s, c)
	case s.hasOld:
		return p.send(from, s, c)
	}
	return nil
}

func (p *groupPort[K, V, K2, V2]) send(group K2, s step[V2], c change[K, V]) error {
	return p.out.push(Record[K2, step[V2]]{Key: group, Value: s, Time: timeOf(c.ms), Headers: c.headers})
}

// same compares groups by their encoding, which is what the topic goes by.
func (p *groupPort[K, V, K2, V2]) same(a, b K2) (_ bool, err error) {
	if p.old, err = p.key.Append(p.old[:0], a); err == nil {
		p.new, err = p.key.Append(p.new[:0], b)
	}
	if err != nil {
		return false, p.o.fail(p.node, runtime.OpEncode, err)
	}
	return bytes.Equal(p.old, p.new), nil
}
