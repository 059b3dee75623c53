package state

import (
	"bytes"

	"github.com/tidwall/btree"
)

// A treeItem is the key of an entry that is not clean. The key is the entry's
// own memory, which stays in place as long as the entry does.
type treeItem struct {
	key []byte
	idx uint32
}

func lessItem(a, b treeItem) bool { return bytes.Compare(a.key, b.key) < 0 }

// sorted returns the tree of entries that are not clean, which the first scan
// makes and later changes keep. It goes when a whole Write passes without a
// scan.
func (o *overlay[V]) sorted() *btree.BTreeG[treeItem] {
	o.used = true
	if o.tree != nil {
		return o.tree
	}
	o.tree = btree.NewBTreeGOptions(lessItem, btree.Options{NoLocks: true})
	o.treed++
	for i := range o.tx {
		o.tree.Set(treeItem{o.keyOf(o.at(o.tx[i].idx)), o.tx[i].idx})
	}
	for _, list := range [][]uint32{o.pend, o.flight} {
		for _, idx := range list {
			o.tree.Set(treeItem{o.keyOf(o.at(idx)), idx})
		}
	}
	return o.tree
}

// A span is a stretch of encoded keys in one direction; nil is open.
type span struct {
	from, to []byte // to is excluded
	backward bool
}

// after is what of s lies behind key.
func (s span) after(key []byte) span {
	if s.backward {
		s.to = append([]byte{}, key...)
	} else {
		s.from = append(append(make([]byte, 0, len(key)+1), key...), 0)
	}
	return s
}

// A merge walks over a store's rows: the engine's, and the overlay's where it
// knows better. It looks anew at each step, so a change during the walk shows
// if it is ahead; rows behind do not come again.
type merge[V any] struct {
	o         *overlay[V]
	span      span
	committed bool // rows without the open transaction

	last  []byte // the key of the last row
	begun bool

	engine   Iterator
	epoch    uint64 // the DB's when engine was opened
	hasRow   bool   // engine stands on a row that was not passed yet
	tree     *btree.BTreeG[treeItem]
	cursor   btree.IterG[treeItem]
	treed    uint64
	hasEntry bool // cursor stands on an entry that was not passed yet

	key  []byte // of the row found, valid until the next step
	v    V
	time int64
}

func (o *overlay[V]) scan(s span, committed bool) *merge[V] {
	return &merge[V]{o: o, span: s, committed: committed}
}

func (m *merge[V]) close() {
	if m.engine != nil {
		_ = m.engine.Close() // next has reported its error
		m.engine = nil
	}
}

// next finds the next row; it decodes the engine's values if decode is set.
func (m *merge[V]) next(decode bool) (bool, error) {
	for {
		if err := m.refresh(); err != nil {
			return false, err
		}
		side := m.choose()
		if side == 0 {
			return false, nil
		}
		fromOverlay := side&sideOverlay != 0
		var r before[V]
		if fromOverlay {
			item := m.cursor.Item()
			m.pass(item.key)
			r = m.overlayRow(item.idx)
		} else {
			m.pass(m.engine.Key()[2:])
			r.has = true
			if decode {
				var err error
				if r.v, r.time, err = m.o.decode(m.engine.Value()); err != nil {
					return false, err
				}
			}
		}
		m.advance(side)
		if r.has {
			m.key, m.v, m.time = m.last, r.v, r.time
			return true, nil
		}
	}
}

func (m *merge[V]) overlayRow(idx uint32) before[V] {
	e := m.o.at(idx)
	if m.committed {
		return m.o.committedRow(e)
	}
	return before[V]{v: e.v, time: e.time, has: e.flags&present != 0}
}

func (m *merge[V]) pass(key []byte) {
	m.last = append(m.last[:0], key...)
	m.begun = true
}

// The sides of a merge, as bits: on both stands the same key.
const (
	sideEngine = 1 << iota
	sideOverlay
)

func (m *merge[V]) choose() int {
	switch {
	case m.hasRow && m.hasEntry:
		c := bytes.Compare(m.engine.Key()[2:], m.cursor.Item().key)
		if m.span.backward {
			c = -c
		}
		switch {
		case c < 0:
			return sideEngine
		case c > 0:
			return sideOverlay
		}
		return sideEngine | sideOverlay
	case m.hasRow:
		return sideEngine
	case m.hasEntry:
		return sideOverlay
	}
	return 0
}

// advance leaves the row that was passed. The engine's error comes out of the
// next refresh.
func (m *merge[V]) advance(side int) {
	if side&sideEngine != 0 {
		m.hasRow = m.engine.Next()
	}
	if side&sideOverlay != 0 {
		if m.span.backward {
			m.hasEntry = m.cursor.Prev()
		} else {
			m.hasEntry = m.cursor.Next()
		}
		m.bound()
	}
}

// refresh opens both sides again where they have changed.
func (m *merge[V]) refresh() error {
	if m.o.d.closed.Load() {
		m.engine = nil // closed with the DB
		return ErrClosed
	}
	rest := m.span
	stale := m.engine == nil || m.epoch != m.o.d.epoch
	if m.begun && (stale || m.treed != m.o.treed) {
		rest = m.span.after(m.last)
	}
	if stale {
		if err := m.openEngine(rest); err != nil {
			return err
		}
	}
	if !m.hasRow {
		if err := m.engine.Err(); err != nil {
			return err
		}
	}
	if tree := m.o.sorted(); m.tree != tree || m.treed != m.o.treed {
		if m.tree != tree {
			m.tree, m.cursor = tree, tree.Iter()
		}
		m.treed = m.o.treed
		m.seek(rest)
	}
	return nil
}

func (m *merge[V]) openEngine(s span) error {
	if m.engine != nil {
		if err := m.engine.Close(); err != nil {
			m.engine = nil
			return err
		}
	}
	id, kind := m.o.p.rec.id, m.o.p.rec.kind
	from, to := storeRange(id)
	if s.from != nil {
		from = kind.rowKey(nil, id, s.from, 0)
	}
	if s.to != nil {
		to = kind.rowKey(nil, id, s.to, 0)
	}
	m.engine = m.o.d.e.Scan(from, to, s.backward)
	m.epoch = m.o.d.epoch
	m.hasRow = m.engine.Next()
	return nil
}

func (m *merge[V]) seek(s span) {
	switch {
	case !s.backward && s.from != nil:
		m.hasEntry = m.cursor.Seek(treeItem{key: s.from})
	case !s.backward:
		m.hasEntry = m.cursor.First()
	case s.to == nil:
		m.hasEntry = m.cursor.Last()
	case m.cursor.Seek(treeItem{key: s.to}):
		m.hasEntry = m.cursor.Prev()
	default:
		m.hasEntry = m.cursor.Last()
	}
	m.bound()
}

// bound ends the overlay's side at the span's far end.
func (m *merge[V]) bound() {
	if !m.hasEntry {
		return
	}
	key := m.cursor.Item().key
	if m.span.backward {
		m.hasEntry = m.span.from == nil || bytes.Compare(key, m.span.from) >= 0
	} else {
		m.hasEntry = m.span.to == nil || bytes.Compare(key, m.span.to) < 0
	}
}
