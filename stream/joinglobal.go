package stream

import (
	"github.com/semelstream/semel/state"
	"github.com/semelstream/semel/stream/internal/graph"
)

// JoinGlobal adds to each record the global table's row for the key that key
// gives; without a key or a row the record is dropped.
func (s Stream[K, V]) JoinGlobal[GK, GV, R any](t GlobalTable[GK, GV], key func(key K, value V) (GK, bool), f func(value V, row GV) R, opts ...Option) Stream[K, R] {
	return joinGlobal(s, t, "join-global", false, f == nil, opts, key, func(v V, row GV, _ bool) R { return f(v, row) })
}

// LeftJoinGlobal is JoinGlobal that passes records without a key or a row
// too, with ok false.
func (s Stream[K, V]) LeftJoinGlobal[GK, GV, R any](t GlobalTable[GK, GV], key func(key K, value V) (GK, bool), f func(value V, row GV, ok bool) R, opts ...Option) Stream[K, R] {
	return joinGlobal(s, t, "left-join-global", true, f == nil, opts, key, f)
}

func joinGlobal[K, V, GK, GV, R any](s Stream[K, V], t GlobalTable[GK, GV], kind string, left, isNil bool, opts []Option,
	key func(K, V) (GK, bool), f func(V, GV, bool) R) Stream[K, R] {

	b, table := s.at().b, t.at()
	n := &streamNode[K, R]{b: b, key: s.n.key, rekeyed: s.n.rekeyed}
	n.node = b.add(kind, settingsOf(opts), s.n.node)
	n.node.Global = table.global
	b.needFunc(n.node, isNil || key == nil)
	if table.b != b {
		b.problem(n.node, "it joins a global table of another Builder; declare all that belongs together in one function given to Build")
	}
	s.n.use(func(o *opener) (port[K, V], error) {
		rows, err := table.open(o)
		if err != nil {
			return nil, err
		}
		out, err := n.open(o)
		return &joinGlobalPort[K, V, GK, GV, R]{o, n.node, rows, left, key, f, out}, err
	})
	return Stream[K, R]{n}
}

type joinGlobalPort[K, V, GK, GV, R any] struct {
	o    *opener
	node *graph.Node
	rows *state.SharedReader[GK, GV]
	left bool
	key  func(key K, value V) (GK, bool)
	f    func(value V, row GV, ok bool) R
	out  port[K, R]
}

func (p *joinGlobalPort[K, V, GK, GV, R]) push(r Record[K, V]) error {
	if r.NoValue {
		p.o.drop(p.node, tombstoned)
		return nil
	}
	p.o.enter(p.node)
	key, ok := p.key(r.Key, r.Value)
	if !ok && !p.left {
		p.o.drop(p.node, noLookup)
		return nil
	}
	var row GV
	if ok {
		var err error
		if row, _, ok, err = p.rows.Get(key); err != nil {
			return p.o.rowsFailed(p.node, err)
		}
	}
	if !ok && !p.left {
		return nil // what an inner join is for, and nothing that was lost
	}
	p.o.enter(p.node)
	return p.out.push(r.WithValue(p.f(r.Value, row, ok)))
}
