package stream

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/state"
)

// windowModel is windows by their definition: it looks at every window there
// could be.
type windowModel struct {
	size, every, grace, retain int64
	now, latest                int64 // stream time, and the start of the latest window
	rows                       map[Windowed[string]]timed[string]
	told                       map[Windowed[string]]timed[string] // finals, all of them
	dropped                    int
}

func (m *windowModel) add(r Record[string, string]) {
	if r.NoKey || r.NoValue {
		m.dropped++
		return
	}
	ms := r.Time.UnixMilli()
	m.now = max(m.now, ms)
	for start := int64(0); start <= ms; start += m.every {
		end := start + m.size
		if ms >= end {
			continue
		}
		if end <= m.now-m.grace {
			m.dropped++
			continue
		}
		key := windowed(r.Key, start, end)
		old := m.rows[key]
		m.rows[key] = timed[string]{last8(old.v + r.Value), max(old.ms, ms)}
		m.latest = max(m.latest, start)
	}
	for key, row := range m.rows {
		if key.End.UnixMilli() <= m.now-m.grace {
			m.told[key] = row
		}
		if key.Start.UnixMilli() <= m.latest-m.retain {
			delete(m.rows, key)
		}
	}
}

func last8(s string) string { return s[max(0, len(s)-8):] }

func TestWindowsAreWhatTheirDefinitionSays(t *testing.T) {
	for _, each := range []bool{false, true} {
		t.Run(fmt.Sprintf("each=%v", each), func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) { checkWindows(t, rt, each) })
		})
	}
}

func checkWindows(t *testing.T, rt *rapid.T, each bool) {
	m := &windowModel{rows: map[Windowed[string]]timed[string]{}, told: map[Windowed[string]]timed[string]{}}
	m.size = rapid.Int64Range(1, 12).Draw(rt, "size")
	m.every = rapid.Int64Range(1, m.size).Draw(rt, "every")
	m.grace = rapid.Int64Range(0, 10).Draw(rt, "grace")
	m.retain = m.size + m.grace
	opts := []WindowOption{}
	if each {
		opts = append(opts, EmitEach())
	}
	if rapid.Bool().Draw(rt, "retain") {
		m.retain += 20
		opts = append(opts, Retain(time.Duration(m.retain)*ms))
	}
	w := Hopping(time.Duration(m.size)*ms, time.Duration(m.every)*ms, time.Duration(m.grace)*ms)
	key := WindowKey(codec.String, time.Duration(m.size)*ms)
	updates, finals := NewTopic("updates", key, codec.String), NewTopic("finals", key, codec.String)
	h := newHistory(t, func(b *Builder) {
		n := b.Stream(texts).GroupByKey().Windowed(w).
			Aggregate("rows", func(_, v, row string) string { return last8(row + v) }, opts...)
		n.To(updates)
		n.Final().To(finals)
	})
	all := map[Windowed[string]]string{} // all rows there ever were
	var now int64
	for range rapid.IntRange(1, 60).Draw(rt, "records") {
		r := anyRecord(rt, &now)
		put(h, texts, r)
		m.add(r)
		for k, row := range m.rows {
			all[k] = row.v
		}
		for k, row := range m.told {
			all[k] = row.v
		}
		h.event(rt)
	}
	h.close()
	same(rt, "updates", last(h, updates), all)
	same(rt, "rows", windowsKept(h, "rows", m.size), m.rows)
	var order []Windowed[string]
	seen := map[Windowed[string]]timed[string]{}
	for _, k := range h.committed {
		if k.Topic != finals.Name {
			continue
		}
		rec := decode(h.rig, finals, k)
		if _, twice := seen[rec.Key]; twice {
			rt.Fatalf("%v is final twice", rec.Key)
		}
		seen[rec.Key] = timed[string]{rec.Value, rec.Time.UnixMilli()}
		order = append(order, rec.Key)
	}
	same(rt, "finals", seen, m.told)
	if !slices.IsSortedFunc(order, func(a, b Windowed[string]) int {
		return cmp.Or(a.Start.Compare(b.Start), cmp.Compare(a.Key, b.Key))
	}) {
		rt.Fatalf("finals came in the order %v of %v", order, slices.Collect(maps.Keys(m.told)))
	}
}

func windowsKept(h *history, store string, size int64) map[Windowed[string]]timed[string] {
	rows := map[Windowed[string]]timed[string]{}
	for _, task := range h.sorted() {
		s, err := state.OpenWindow(task.db, store, codec.String, codec.String)
		h.must(err)
		for e, err := range s.All() {
			h.must(err)
			rows[windowed(e.Key, e.Start, e.Start+size)] = timed[string]{e.Value, e.Time}
		}
	}
	return rows
}
