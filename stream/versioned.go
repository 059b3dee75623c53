package stream

import (
	"fmt"
	"math"
	"time"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/state"
	"github.com/semelstream/semel/stream/internal/graph"
)

// Versioned keeps the versions of each row for history of stream time, so
// that joins see the one valid at a record's time: until a version is put that
// begins that much later. It fits [Builder.Table], [Stream.ToTable] and
// [Table.Stored].
//
// Times decide about the rows then and not the order of records: one with an
// older time than the row's becomes a version of the past. What follows the
// table as a stream is told of it, but joins, groups and stores of tables go by
// the newest versions alone. A record that is older than the history is dropped
// as late.
//
// The table has a changelog of its own, since its topic may forget versions.
func Versioned(history time.Duration) TableSourceOption {
	return option(func(s *settings) { s.history, s.versioned = history, true })
}

// versionsKept is a declared store of versions with its types.
type versionsKept[K, V any] struct {
	store *graph.Store
	id    int // of the shared opening
	key   codec.Codec[K]
	value codec.Codec[V]
}

// newVersions declares a store of versions; without node it is one for
// processors.
func newVersions[K, V any](b *Builder, node *graph.Node, name string, set settings, history time.Duration, key codec.Codec[K], value codec.Codec[V]) *versionsKept[K, V] {
	id := -1 - len(b.graph.Stores) // no node has it
	s := &versionsKept[K, V]{withCodecs(b.addStore(node, name, graph.Versioned, set), key, value), id, key, value}
	s.store.Retain = history.Milliseconds()
	return s
}

// keepVersions declares the store of node's rows and their versions.
func keepVersions[K, V any](b *Builder, node *graph.Node, store string, set settings, key codec.Codec[K], value codec.Codec[V]) *versionsKept[K, V] {
	if set.history < time.Millisecond || set.history%time.Millisecond != 0 {
		b.problem(node, "its history of %v is no whole number of milliseconds from 1 on; give Versioned one", set.history)
	}
	s := newVersions(b, node, store, set, set.history,
		codecFor(b, node, set.keyCodec, key), codecFor(b, node, set.valueCodec, value))
	b.autoName(node, store)
	return s
}

// open gives the store of o's task. Its time goes with the offsets, so that
// what is late stays late.
func (s *versionsKept[K, V]) open(o *opener) (*state.Versioned[K, V], error) {
	return share(o, &graph.Node{ID: s.id}, func() (*state.Versioned[K, V], error) {
		rows, err := state.OpenVersioned(o.task.DB(), s.store.Name, s.key, s.value, s.store.Retain)
		if err != nil {
			return nil, fmt.Errorf("opening store %q: %w", s.store.Name, err)
		}
		o.keepTime(s.store.Name+".time of versions", rows.Time, rows.SetTime)
		return rows, nil
	})
}

// pastRows reads rows as they were valid at a time, stored or worked out.
type pastRows[K, V any] interface {
	rowAt(key K, ms int64) (v V, ok bool, err error)
}

// newVersionedTable is a table whose rows are kept, with their versions, in a
// store of node's.
func newVersionedTable[K, V any](b *Builder, node *graph.Node, kept *versionsKept[K, V]) *tableNode[K, V] {
	tells := &telling{node: node}
	open := func(o *opener) (versionRows[K, V], error) {
		rows, err := kept.open(o)
		return versionRows[K, V]{rows}, err
	}
	return &tableNode[K, V]{
		b: b, node: node, key: kept.key, value: kept.value, store: kept.store, history: kept.store.Retain,
		reads: []*telling{tells}, tells: tells,
		openRows: func(o *opener) (rows[K, V], error) { return open(o) },
		openPast: func(o *opener) (pastRows[K, V], error) { return open(o) },
	}
}

// versionRows are the rows of a versioned table: the newest versions, and those
// of the past.
type versionRows[K, V any] struct{ s *state.Versioned[K, V] }

func (r versionRows[K, V]) row(key K) (V, int64, bool, error) { return r.s.Get(key) }

func (r versionRows[K, V]) rowAt(key K, ms int64) (v V, ok bool, err error) {
	v, _, _, ok, err = r.s.GetAsOf(key, ms)
	return v, ok, err
}

// keepVersioned is [keepTable] for a table with versions.
func keepVersioned[K, V any](s Stream[K, V], node *graph.Node, store string, set settings) Table[K, V] {
	kept := keepVersions(s.n.b, node, store, set, s.n.key, s.n.value)
	n := newVersionedTable(s.n.b, node, kept)
	s.n.use(func(o *opener) (port[K, V], error) {
		p, err := openVersions(o, n, kept)
		return recordVersions[K, V]{p}, err
	})
	return Table[K, V]{n}
}

// storeVersioned is [Table.Stored] for a table with versions.
func storeVersioned[K, V any](from *tableNode[K, V], node *graph.Node, store string, set settings) Table[K, V] {
	kept := keepVersions(from.b, node, store, set, from.key, from.value)
	n := newVersionedTable(from.b, node, kept)
	from.use(func(o *opener) (tablePort[K, V], error) {
		p, err := openVersions(o, n, kept)
		return changeVersions[K, V]{p}, err
	})
	return Table[K, V]{n}
}

// A versionsPort puts versions and tells of them.
type versionsPort[K, V any] struct {
	o    *opener
	node *graph.Node
	rows *state.Versioned[K, V]
	out  tablePort[K, V]
}

func openVersions[K, V any](o *opener, n *tableNode[K, V], kept *versionsKept[K, V]) (*versionsPort[K, V], error) {
	rows, err := kept.open(o)
	if err != nil {
		return nil, err
	}
	out, err := n.open(o)
	return &versionsPort[K, V]{o, n.node, rows, out}, err
}

// put makes c's new row, or its absence, a version from c's time on. What was
// before is known of the newest version only.
func (p *versionsPort[K, V]) put(c change[K, V]) error {
	old, _, had, err := p.rows.Get(c.key)
	if err != nil {
		return p.o.rowsFailed(p.node, err)
	}
	to, ok, err := p.write(c)
	if err != nil {
		return p.o.rowsFailed(p.node, err)
	}
	if !ok {
		p.o.drop(p.node, late)
		return nil
	}
	if c.past = to != math.MaxInt64; c.past {
		var none V
		old, had = none, false
	}
	c.old, c.hasOld = old, had
	return p.out.change(c)
}

func (p *versionsPort[K, V]) write(c change[K, V]) (to int64, ok bool, err error) {
	if c.hasNew {
		return p.rows.Put(c.key, c.ms, c.new)
	}
	return p.rows.Delete(c.key, c.ms)
}

// recordVersions makes versions of records.
type recordVersions[K, V any] struct{ *versionsPort[K, V] }

func (p recordVersions[K, V]) push(r Record[K, V]) error {
	if r.NoKey {
		p.o.drop(p.node, noKey)
		return nil
	}
	return p.put(change[K, V]{
		key: r.Key, new: r.Value, hasNew: !r.NoValue, ms: r.Time.UnixMilli(), headers: r.Headers,
	})
}

// changeVersions makes versions of a table's changes.
type changeVersions[K, V any] struct{ *versionsPort[K, V] }

func (p changeVersions[K, V]) change(c change[K, V]) error { return p.put(c) }
