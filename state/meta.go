package state

import (
	"encoding/binary"
	"maps"
	"slices"
)

// meta is a DB's numbers by name: operators' stream times and the like. They
// go through the same states as rows.
type meta struct {
	rows map[string]*metaRow
	undo []metaUndo
	gen  uint64 // the mark that undo goes back to
}

type metaRow struct {
	now, closing, committed, stored int64
	has                             metaHas
	mark                            uint64
}

// metaHas says which of a metaRow's values are there.
type metaHas struct{ now, closing, committed, stored bool }

type metaUndo struct {
	row *metaRow
	old int64
	had bool
}

func newMeta() meta { return meta{rows: map[string]*metaRow{}} }

func (m *meta) load(name string, v int64) {
	m.rows[name] = &metaRow{now: v, closing: v, committed: v, stored: v, has: metaHas{true, true, true, true}}
}

func (m *meta) set(name string, v int64, gen uint64) {
	r := m.rows[name]
	if r == nil {
		r = &metaRow{}
		m.rows[name] = r
	}
	if m.gen != gen {
		m.undo, m.gen = m.undo[:0], gen
	}
	if r.mark != gen {
		m.undo = append(m.undo, metaUndo{r, r.now, r.has.now})
		r.mark = gen
	}
	r.now, r.has.now = v, true
}

func (m *meta) back(gen uint64) {
	if m.gen != gen {
		return
	}
	for _, u := range m.undo {
		u.row.now, u.row.has.now = u.old, u.had
	}
	m.undo = m.undo[:0]
}

func (m *meta) freeze() {
	for _, r := range m.rows {
		r.closing, r.has.closing = r.now, r.has.now
	}
}

func (m *meta) commit() {
	for _, r := range m.rows {
		r.committed, r.has.committed = r.closing, r.has.closing
	}
}

// persist puts committed values that are not stored into b and returns what
// to do when they are.
func (m *meta) persist(b *Batch) []metaStored {
	var out []metaStored
	for _, name := range slices.Sorted(maps.Keys(m.rows)) {
		r := m.rows[name]
		if !r.has.committed || r.has.stored && r.stored == r.committed {
			continue
		}
		b.Set(append(append([]byte(nil), metaPrefix...), name...), binary.BigEndian.AppendUint64(nil, uint64(r.committed)))
		out = append(out, metaStored{r, r.committed})
	}
	return out
}

type metaStored struct {
	row   *metaRow
	value int64
}

// Meta are the numbers by name as the open transaction sees them.
func (d *DB) Meta() map[string]int64 {
	out := make(map[string]int64, len(d.meta.rows))
	for name, r := range d.meta.rows {
		if r.has.now {
			out[name] = r.now
		}
	}
	return out
}

// SetMeta changes a number in the open transaction. It commits, is undone, is
// stored and is rewound with the rows, but it is in no changelog.
func (d *DB) SetMeta(name string, value int64) { d.meta.set(name, value, d.gen) }
