package stream

import (
	"github.com/semelstream/semel/stream/internal/graph"
)

// Join adds to each record the table's row for its key, as of now. Rows that
// change later make no new results. Records without a row are dropped.
func (s Stream[K, V]) Join[V2, R any](t Table[K, V2], f func(value V, row V2) R, opts ...JoinOption) Stream[K, R] {
	return joinTable(s, t, "join", false, f == nil, opts, func(v V, row V2, _ bool) R { return f(v, row) })
}

// LeftJoin is Join that passes records without a row too, with ok false.
func (s Stream[K, V]) LeftJoin[V2, R any](t Table[K, V2], f func(value V, row V2, ok bool) R, opts ...JoinOption) Stream[K, R] {
	return joinTable(s, t, "left-join", true, f == nil, opts, f)
}

func joinTable[K, V, V2, R any](s Stream[K, V], t Table[K, V2], kind string, left, isNil bool, opts []JoinOption, f func(V, V2, bool) R) Stream[K, R] {
	b, table := s.at().b, t.at()
	set := settingsOf(opts)
	nameless := s.n.rekeyed && set.name == ""
	if s.n.rekeyed && !nameless {
		s = repartition(s, set.name, settings{keyCodec: set.keyCodec, valueCodec: set.valueCodec, keepNoKey: left})
	}
	n := &streamNode[K, R]{b: b, key: s.n.key}
	n.node = b.add(kind, set, s.n.node, table.node)
	b.needFunc(n.node, isNil)
	b.copartition(n.node)
	if nameless {
		b.problem(n.node, `it has to repartition the stream, since an operator before may have changed the key, and needs a name for the topic; add stream.Name("...")`)
	}
	table.needRows(n.node)
	s.n.use(func(o *opener) (port[K, V], error) {
		rows, err := table.openRows(o)
		if err != nil {
			return nil, err
		}
		out, err := n.open(o)
		return &joinPort[K, V, V2, R]{o, n.node, rows, left, f, out}, err
	})
	return Stream[K, R]{n}
}

type joinPort[K, V, V2, R any] struct {
	o    *opener
	node *graph.Node
	rows rows[K, V2]
	left bool
	f    func(value V, row V2, ok bool) R
	out  port[K, R]
}

func (p *joinPort[K, V, V2, R]) push(r Record[K, V]) error {
	switch {
	case r.NoValue:
		p.o.drop(p.node, tombstoned)
		return nil
	case r.NoKey && !p.left:
		p.o.drop(p.node, noKey)
		return nil
	}
	var row V2
	var ok bool
	if !r.NoKey {
		var err error
		if row, _, ok, err = p.rows.row(r.Key); err != nil {
			return p.o.rowsFailed(p.node, err)
		}
	}
	if !ok && !p.left {
		return nil // what an inner join is for, and nothing that was lost
	}
	p.o.enter(p.node)
	return p.out.push(r.WithValue(p.f(r.Value, row, ok)))
}
