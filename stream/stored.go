package stream

import (
	"github.com/semelstream/semel/state"
	"github.com/semelstream/semel/stream/internal/graph"
)

// Stored keeps the rows in a store, to be queried or to be compared with.
// Without it Filter, MapValues and joins work out rows when they are needed.
// Behind a [Versioned] table it keeps the newest versions, unless it is
// versioned too.
func (t Table[K, V]) Stored(store string, opts ...TableOption) Table[K, V] {
	from, b, set := t.at(), t.n.b, settingsOf(opts)
	node := b.add("stored", set, from.node)
	if set.versioned {
		return storeVersioned(from, node, store, set)
	}
	kept := keep(b, node, store, set, from.key, from.value)
	n := newTable(b, node, kept)
	from.use(func(o *opener) (tablePort[K, V], error) {
		kv, err := kept.open(o)
		if err != nil {
			return nil, err
		}
		out, err := n.open(o)
		return &storedPort[K, V]{o, node, n, kv, out}, err
	})
	return Table[K, V]{n}
}

// A storedPort writes a table's changes down. The value before comes from the
// store, which is right also where a change from above does not carry it.
type storedPort[K, V any] struct {
	o    *opener
	node *graph.Node
	n    *tableNode[K, V]
	kv   *state.KV[K, V]
	out  tablePort[K, V]
}

func (p *storedPort[K, V]) change(c change[K, V]) error {
	if c.past {
		return nil // the row stays
	}
	ref, old, _, had, err := p.kv.Find(c.key)
	if err != nil {
		return p.o.rowsFailed(p.node, err)
	}
	switch {
	case c.hasNew:
		p.kv.Set(ref, c.new, c.ms)
	case had:
		p.kv.Remove(ref, c.ms)
	case p.n.wantOld:
		return nil
	}
	c.old, c.hasOld = old, had
	return p.out.change(c)
}
