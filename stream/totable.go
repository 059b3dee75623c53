package stream

import (
	"github.com/semelstream/semel/state"
	"github.com/semelstream/semel/stream/internal/graph"
)

// ToTable keeps the latest value of each key in store; a tombstone deletes.
// If an operator before may have changed the key, the records go through a
// repartition topic named after store.
func (s Stream[K, V]) ToTable(store string, opts ...TableOption) Table[K, V] {
	set := settingsOf(opts)
	byKey := s
	if s.at().rekeyed {
		byKey = repartition(s, store, settings{keyCodec: set.keyCodec, valueCodec: set.valueCodec})
	}
	return keepTable(byKey, "to-table", store, set)
}

// keepTable is a table of the latest values of a stream that is partitioned by
// key.
func keepTable[K, V any](s Stream[K, V], kind, store string, set settings) Table[K, V] {
	b := s.n.b
	node := b.add(kind, set, s.n.node)
	if set.versioned {
		return keepVersioned(s, node, store, set)
	}
	kept := keep(b, node, store, set, s.n.key, s.n.value)
	n := newTable(b, node, kept)
	s.n.use(func(o *opener) (port[K, V], error) {
		kv, err := kept.open(o)
		if err != nil {
			return nil, err
		}
		out, err := n.open(o)
		return &keepPort[K, V]{o, node, kv, out}, err
	})
	return Table[K, V]{n}
}

// A keepPort writes each record over its key's row. The order of the records
// decides, not their times, so that a row's time may go back.
type keepPort[K, V any] struct {
	o    *opener
	node *graph.Node
	kv   *state.KV[K, V]
	out  tablePort[K, V]
}

func (p *keepPort[K, V]) push(r Record[K, V]) error {
	if r.NoKey {
		p.o.drop(p.node, noKey)
		return nil
	}
	ref, old, _, had, err := p.kv.Find(r.Key)
	if err != nil {
		return p.o.rowsFailed(p.node, err)
	}
	ms := r.Time.UnixMilli()
	switch {
	case !r.NoValue:
		p.kv.Set(ref, r.Value, ms)
	default:
		p.kv.Remove(ref, ms)
	}
	return p.out.change(change[K, V]{
		key: r.Key, old: old, new: r.Value, hasOld: had, hasNew: !r.NoValue, ms: ms, headers: r.Headers,
	})
}
