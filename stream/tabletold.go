package stream

import (
	"slices"

	"github.com/semelstream/semel/stream/internal/graph"
)

// A row can be in a store before everyone has heard of it: an aggregate tells
// of its rows when the transaction closes, and a table tells the operators
// behind it one after the other. A join of tables must take care, since one of
// its sides may come from the same table as the other, in which case a change
// reaches both, and the row of the side that comes second is new already when
// the first hears of it. The join then waits until the table has told it all.

// A telling is a table with a store, as the one that tells of its rows.
type telling struct {
	node  *graph.Node
	meets []func(o *opener) (meeting, error)
}

// A meeting is a join both sides of which may hear of one change.
type meeting interface {
	begin()     // a table tells of a change from now on
	end() error // it has told
	forget()    // it has failed to
}

// meet adds a join behind the table. The same one twice is one.
func (t *telling) meet(open func(o *opener) (meeting, error)) { t.meets = append(t.meets, open) }

// wrap makes out such that the joins know when they have heard all of a
// change. They are open already, being behind it.
func wrapTelling[K, V any](o *opener, t *telling, out tablePort[K, V]) (tablePort[K, V], error) {
	if t == nil || len(t.meets) == 0 {
		return out, nil
	}
	p := &tellPort[K, V]{out: out}
	for _, open := range t.meets {
		m, err := open(o)
		if err != nil {
			return nil, err
		}
		p.meetings = append(p.meetings, m)
	}
	return p, nil
}

type tellPort[K, V any] struct {
	out      tablePort[K, V]
	meetings []meeting // in order of declaration, so that a join is before those behind it
}

func (p *tellPort[K, V]) change(c change[K, V]) error {
	told := false
	defer func() {
		if !told {
			for _, m := range p.meetings {
				m.forget()
			}
		}
	}()
	for _, m := range p.meetings {
		m.begin()
	}
	if err := p.out.change(c); err != nil {
		return err
	}
	for _, m := range p.meetings {
		if err := m.end(); err != nil {
			return err
		}
	}
	told = true
	return nil
}

// commonTables are the tables with a store whose changes reach both sides of a
// join, one of them by way of their rows.
func commonTables[K, V, V2 any](left *tableNode[K, V], right *tableNode[K, V2]) (common []*telling) {
	add := func(reads []*telling, side *graph.Node) {
		for _, t := range reads {
			if !slices.Contains(common, t) && comesFrom(side, t.node) {
				common = append(common, t)
			}
		}
	}
	add(left.reads, right.node)
	add(right.reads, left.node)
	return common
}

// comesFrom says that n is from or behind it, with no topic in between.
func comesFrom(n, from *graph.Node) bool {
	seen := map[*graph.Node]bool{}
	var up func(n *graph.Node) bool
	up = func(n *graph.Node) bool {
		if n == from {
			return true
		}
		seen[n] = true
		return slices.ContainsFunc(n.Parents, func(p *graph.Node) bool { return !seen[p] && up(p) })
	}
	return up(n)
}
