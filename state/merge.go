package state

import (
	"bytes"
	"fmt"

	"github.com/tidwall/btree"
)

// A span is a stretch of keys in one direction; nil is open.
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

// empty says that no key can be in s.
func (s span) empty() bool { return s.from != nil && s.to != nil && bytes.Compare(s.from, s.to) >= 0 }

// A merge walks over a store's rows: the engine's, and the overlay's where it
// knows better. It looks anew at each step, so a change during the walk shows
// if it is ahead; rows behind do not come again.
type merge[V any] struct {
	o         *overlay[V]
	route     route
	id        uint16 // whose keys on the engine
	order     *order // of the overlay's entries
	committed bool   // rows without the open and the closing transaction

	last  []byte // the key of the last row
	begun bool
	jumps []byte // scratch: where to go on

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
	row  []byte // scratch: a row's key, if key is one of the order by time
}

func (o *overlay[V]) scan(r route, committed bool) *merge[V] {
	m := &merge[V]{o: o, route: r, committed: committed, id: o.p.rec.id, order: &o.byKey}
	if r.byTime {
		m.id, m.order = o.p.rec.timeID, &o.byTime
	}
	return m
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
		if m.route.empty() {
			return false, nil
		}
		if err := m.refresh(); err != nil {
			return false, err
		}
		side := m.choose()
		if side == 0 {
			return false, nil
		}
		if c := m.route.course; c != nil {
			want, jump := c.look(m.keyAt(side), m.route.backward, m.jumps[:0])
			if jump != nil {
				m.jumps = jump
				m.jump(jump)
				continue
			}
			if !want {
				m.pass(m.keyAt(side))
				m.advance(side)
				continue
			}
		}
		ok, err := m.take(side, decode)
		if ok || err != nil {
			return ok, err
		}
	}
}

// take passes the row that the merge stands on, and says whether there is one.
func (m *merge[V]) take(side int, decode bool) (ok bool, err error) {
	var r before[V]
	if side&sideOverlay != 0 {
		item := m.cursor.Item()
		m.pass(item.key)
		r = m.overlayRow(item.idx)
	} else {
		m.pass(m.keyAt(side))
		if r, err = m.engineRow(decode); err != nil {
			return false, err
		}
	}
	m.advance(side)
	m.key, m.v, m.time = m.last, r.v, r.time
	if m.route.byTime {
		m.row = m.o.p.rec.keys.fromTime(m.row[:0], m.last)
		m.key = m.row
	}
	return r.has && !m.o.isGone(m.key, m.committed), nil
}

func (m *merge[V]) overlayRow(idx uint32) before[V] {
	e := m.o.at(idx)
	if m.committed {
		return m.o.committedRow(e)
	}
	return before[V]{v: e.v, time: e.time, has: e.flags&present != 0}
}

// engineRow is the row that engine stands on. In the order by time it is
// elsewhere, and unchanged: else the overlay would know better.
func (m *merge[V]) engineRow(decode bool) (r before[V], err error) {
	r.has = true
	switch {
	case !decode:
	case m.route.byTime:
		m.row = m.o.p.rec.keys.fromTime(m.row[:0], m.last)
		if m.o.isGone(m.row, m.committed) { // a Write may just delete it
			return before[V]{}, nil
		}
		return m.o.cleanRow(m.row)
	default:
		r.v, r.time, err = m.o.decode(m.engine.Value())
	}
	return r, err
}

// cleanRow is the row of a key that is as on the engine.
func (o *overlay[V]) cleanRow(key []byte) (r before[V], err error) {
	if idx := o.lookup(o.hash(key), key); idx != 0 {
		e := o.at(idx)
		return before[V]{v: e.v, time: e.time, has: e.flags&present != 0}, nil
	}
	ok, err := o.read(key)
	if err != nil {
		return r, err
	}
	if !ok {
		return r, fmt.Errorf("%w: the order by time has a row that is not there", ErrCorrupt)
	}
	r = before[V]{v: o.loaded, time: o.loadedT, has: true}
	var zero V
	o.loaded = zero
	return r, nil
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

// keyAt is the key that the side stands on.
func (m *merge[V]) keyAt(side int) []byte {
	if side&sideOverlay != 0 {
		return m.cursor.Item().key
	}
	return m.engine.Key()[idSize:]
}

func (m *merge[V]) choose() int {
	switch {
	case m.hasRow && m.hasEntry:
		c := bytes.Compare(m.engine.Key()[idSize:], m.cursor.Item().key)
		if m.route.backward {
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
		if m.route.backward {
			m.hasEntry = m.cursor.Prev()
		} else {
			m.hasEntry = m.cursor.Next()
		}
		m.bound()
	}
}

// jump goes on at key: forward at the first from it on, backward at the last
// before it.
func (m *merge[V]) jump(key []byte) {
	if m.route.backward {
		m.route.to = append([]byte{}, key...)
	} else {
		m.route.from = append([]byte{}, key...)
	}
	m.begun = false // what was passed lies behind
	if m.route.empty() {
		return
	}
	m.o.ekey = rowKey(m.o.ekey[:0], m.id, key)
	m.hasRow = m.engine.Seek(m.o.ekey)
	m.seek(m.route.span)
}

// refresh opens both sides again where they have changed.
func (m *merge[V]) refresh() error {
	if m.o.d.closed.Load() {
		m.engine = nil // closed with the DB
		return ErrClosed
	}
	rest := m.route.span
	stale := m.engine == nil || m.epoch != m.o.d.epoch
	if m.begun && (stale || m.treed != m.order.treed) {
		rest = m.route.span.after(m.last)
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
	if tree := m.o.sorted(m.order); m.tree != tree || m.treed != m.order.treed {
		if m.tree != tree {
			m.tree, m.cursor = tree, tree.Iter()
		}
		m.treed = m.order.treed
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
	from, to := storeRange(m.id)
	if s.from != nil {
		from = rowKey(nil, m.id, s.from)
	}
	if s.to != nil {
		to = rowKey(nil, m.id, s.to)
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
	if m.route.backward {
		m.hasEntry = m.route.from == nil || bytes.Compare(key, m.route.from) >= 0
	} else {
		m.hasEntry = m.route.to == nil || bytes.Compare(key, m.route.to) < 0
	}
}
