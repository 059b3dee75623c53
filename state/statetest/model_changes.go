package statetest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"github.com/semelstream/semel/state"
)

type change struct {
	key     string
	row     row
	deletes bool
}

// keys are few, so that they meet; some are longer than an entry holds inline.
var keys = []string{"", "a", "ab", "b", "b\x00", "b\xff", "exactly-16-bytes", "exactly-16-bytes+", strings.Repeat("long", 20), "\xff", "\xff\xff", strings.Repeat("x", 300)}

func key(t *rapid.T) string { return rapid.SampledFrom(keys).Draw(t, "key") }

func (m *model) newRow(t *rapid.T) row {
	m.tick++
	return row{rapid.SampledFrom([]string{"", "x", "yy", strings.Repeat("z", 100)}).Draw(t, "value") + fmt.Sprint(m.tick%3), m.tick}
}

func (tb *table) change(key string, r row, deletes bool) {
	if deletes {
		delete(tb.now, key)
	} else {
		tb.now[key] = r
	}
	if !slices.Contains(tb.order, key) {
		tb.order = append(tb.order, key)
	}
}

func (m *model) put(t *rapid.T) {
	tb, k, r := m.table(t), key(t), m.newRow(t)
	m.must(tb.kv.Put(k, r.value, r.time))
	tb.change(k, r, false)
}

func (m *model) remove(t *rapid.T) {
	tb, k := m.table(t), key(t)
	m.tick++
	m.must(tb.kv.Delete(k, m.tick))
	if _, ok := tb.now[k]; ok {
		tb.change(k, row{}, true)
	}
}

func (m *model) findSet(t *rapid.T) {
	tb, k, r := m.table(t), key(t), m.newRow(t)
	ref, v, at, ok, err := tb.kv.Find(k)
	m.must(err)
	m.wantRow(tb, k, v, at, ok)
	tb.kv.Set(ref, r.value, r.time)
	tb.change(k, r, false)
	if rapid.Bool().Draw(t, "then remove") {
		tb.kv.Remove(ref, r.time)
		tb.change(k, row{}, true)
	}
}

func (m *model) ifAbsent(t *rapid.T) {
	tb, k, r := m.table(t), key(t), m.newRow(t)
	v, at, ok, err := tb.kv.PutIfAbsent(k, r.value, r.time)
	m.must(err)
	m.wantRow(tb, k, v, at, ok)
	if !ok {
		tb.change(k, r, false)
	}
}

func (m *model) setMeta(t *rapid.T) {
	name := rapid.SampledFrom([]string{"time", "late"}).Draw(t, "meta")
	m.tick++
	m.db.SetMeta(name, m.tick)
	m.meta[name] = m.tick
}

func (m *model) setMark(*rapid.T) {
	m.db.Mark()
	for _, tb := range m.tables {
		tb.mark, tb.markOrder = maps.Clone(tb.now), slices.Clone(tb.order)
	}
	m.metaMark = maps.Clone(m.meta)
}

func (m *model) undo(*rapid.T) {
	m.db.Undo()
	for _, tb := range m.tables {
		tb.now, tb.order = maps.Clone(tb.mark), slices.Clone(tb.markOrder)
	}
	m.meta = maps.Clone(m.metaMark)
}

// freeze writes the changes to the changelogs, like a transaction of which
// nobody knows yet whether it will be committed.
func (m *model) freeze(t *rapid.T) {
	if m.frozen {
		return
	}
	var seen []string
	err := m.db.Changes(func(p *state.Part, key, value []byte, at int64) error {
		tb := m.tableOf(p)
		tb.closing = append(tb.closing, change{string(key), row{string(value), at}, value == nil})
		seen = append(seen, p.Name()+"/"+string(key))
		return nil
	})
	m.must(err)
	var want []string
	for _, tb := range m.tables {
		for _, k := range tb.order {
			_, had := tb.base[k]
			_, has := tb.now[k]
			if had || has {
				want = append(want, tb.name+"/"+k)
			}
		}
	}
	if !slices.Equal(seen, want) {
		m.Fatalf("changes were %q, want %q", seen, want)
	}
	if rapid.Bool().Draw(t, "by hand") {
		m.db.Freeze()
	} else {
		defer m.end(t) // Committed alone is both
	}
	m.frozen = true
	for _, tb := range m.tables {
		tb.base, tb.mark = maps.Clone(tb.now), maps.Clone(tb.now)
		tb.order, tb.markOrder = nil, nil
	}
	m.metaClosing, m.metaMark = maps.Clone(m.meta), maps.Clone(m.meta)
}

func (m *model) tableOf(p *state.Part) *table {
	return m.tables[slices.IndexFunc(m.tables, func(tb *table) bool { return tb.part == p })]
}

// end commits the closing transaction.
func (m *model) end(*rapid.T) {
	if !m.frozen {
		return
	}
	m.append()
	dirty := m.db.DirtyBytes()
	m.db.Committed(func(p *state.Part) (int64, bool) { return int64(len(m.tableOf(p).log)), true })
	m.frozen = false
	for _, tb := range m.tables {
		tb.committed = tb.fold(int64(len(tb.log)))
		if !maps.Equal(tb.committed, tb.base) {
			m.Fatalf("%s: the changelog says %v, the model %v", tb.name, tb.committed, tb.base)
		}
	}
	m.metaCommitted = maps.Clone(m.metaClosing)
	open := 0
	for _, tb := range m.tables {
		open += len(tb.order)
	}
	if now := m.db.DirtyBytes(); open == 0 && now != 0 || open > 0 && now != dirty {
		m.Fatalf("%d dirty bytes after a commit, %d keys changed since, %d bytes before", now, open, dirty)
	}
}

// append is what Kafka does when it commits the closing transaction.
func (m *model) append() {
	for _, tb := range m.tables {
		tb.log, tb.closing = append(tb.log, tb.closing...), nil
	}
	m.metaLog = append(m.metaLog, maps.Clone(m.metaClosing))
}

// commit freezes and ends.
func (m *model) commit(t *rapid.T) {
	m.end(t)
	m.freeze(t)
	m.end(t)
}
