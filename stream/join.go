package stream

import (
	"github.com/semelstream/semel/stream/internal/graph"
)

// Join adds to each record the table's row for its key, as of now; of a
// [Versioned] table as of the record's time. Rows that change later make no new
// results. Records without a row are dropped.
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
	touch := set.keyCodec == nil && s.n.key != nil // the stream's sources have keys as the table has
	open := func(o *opener) (port[K, V], error) {
		look, err := lookUp(o, table, touch, s.n.node)
		if err != nil {
			return nil, err
		}
		out, err := n.open(o)
		return &joinPort[K, V, V2, R]{o, n.node, look, left, f, out}, err
	}
	if set.wait == nil {
		s.n.use(open)
		return Stream[K, R]{n}
	}
	set.wait.check(b, n.node, table.node, table.history)
	wait := delay(b, n.node, s.n, set)
	s.n.use(func(o *opener) (port[K, V], error) {
		join, err := open(o)
		if err != nil {
			return nil, err
		}
		return wait(o, join)
	})
	return Stream[K, R]{n}
}

// lookUp finds the row that a record meets: that of the record's time if the
// table knows it, else the present one. With touch the rows of records that come
// to n are made ready.
func lookUp[K, V any](o *opener, table *tableNode[K, V], touch bool, n *graph.Node) (func(key K, ms int64) (V, bool, error), error) {
	if table.openPast != nil {
		past, err := table.openPast(o)
		if err != nil {
			return nil, err
		}
		return past.rowAt, nil
	}
	rows, err := table.openRows(o)
	if stored, ok := rows.(interface{ touch(keys [][]byte) }); ok && touch && err == nil {
		o.touchAhead(n, stored.touch)
	}
	return func(key K, _ int64) (V, bool, error) {
		row, _, ok, err := rows.row(key)
		return row, ok, err
	}, err
}

type joinPort[K, V, V2, R any] struct {
	o    *opener
	node *graph.Node
	row  func(key K, ms int64) (V2, bool, error)
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
		if row, ok, err = p.row(r.Key, r.Time.UnixMilli()); err != nil {
			return p.o.rowsFailed(p.node, err)
		}
	}
	if !ok && !p.left {
		return nil // what an inner join is for, and nothing that was lost
	}
	p.o.enter(p.node)
	return p.out.push(r.WithValue(p.f(r.Value, row, ok)))
}
