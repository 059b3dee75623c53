package statetest

import (
	"maps"
	"slices"
	"strings"
	"time"

	"pgregory.net/rapid"

	"github.com/semelstream/semel/state"
)

func (m *model) get(t *rapid.T) {
	tb, k := m.table(t), key(t)
	v, at, ok, err := tb.kv.Get(k)
	m.must(err)
	m.wantRow(tb, k, v, at, ok)
}

func (m *model) wantRow(tb *table, key, v string, at int64, ok bool) {
	m.Helper()
	want, has := tb.now[key]
	if ok != has || (row{v, at}) != want {
		m.Fatalf("%s: %q is %q at %d (%v), want %q at %d (%v)", tb.name, key, v, at, ok, want.value, want.time, has)
	}
}

// wantRows reads all rows of a store in both directions and in a stretch.
func (m *model) wantRows(tb *table, want map[string]row) {
	m.Helper()
	sorted := slices.Sorted(maps.Keys(want))
	m.wantSeq(tb.name+" forward", tb.kv.All(), sorted, want)
	back := slices.Clone(sorted)
	slices.Reverse(back)
	m.wantSeq(tb.name+" backward", tb.kv.Backward().All(), back, want)
}

func (m *model) wantSeq(what string, rows state.Rows[string, string], keys []string, want map[string]row) {
	m.Helper()
	i := 0
	for r, err := range rows {
		m.must(err)
		if i >= len(keys) {
			m.Fatalf("%s: a row %q too many, want %q", what, r.Key, keys)
		}
		if w := want[keys[i]]; r.Key != keys[i] || r.Value != w.value || !r.Time.Equal(time.UnixMilli(w.time)) {
			m.Fatalf("%s: row %d is %q=%q at %d, want %q=%v", what, i, r.Key, r.Value, r.Time.UnixMilli(), keys[i], w)
		}
		i++
	}
	if i != len(keys) {
		m.Fatalf("%s: %d rows, want %q", what, i, keys)
	}
}

// scan reads stretches of the open transaction's rows.
func (m *model) scan(t *rapid.T) {
	tb := m.table(t)
	m.wantRows(tb, tb.now)
	from, to := key(t), key(t)
	m.wantStretch(tb, tb.now, tb.kv.Range(from, to), false, func(k string) bool { return k >= from && k <= to })
	m.wantStretch(tb, tb.now, tb.kv.Backward().Range(from, to), true, func(k string) bool { return k >= from && k <= to })
	m.wantStretch(tb, tb.now, tb.kv.From(from), false, func(k string) bool { return k >= from })
	m.wantStretch(tb, tb.now, tb.kv.Backward().To(to), true, func(k string) bool { return k <= to })
	m.wantStretch(tb, tb.now, tb.kv.Prefix([]byte(from)), false, func(k string) bool { return strings.HasPrefix(k, from) })
	m.wantStretch(tb, tb.now, tb.kv.Backward().Prefix([]byte(from)), true, func(k string) bool { return strings.HasPrefix(k, from) })
}

func (m *model) wantStretch(tb *table, all map[string]row, rows state.Rows[string, string], backward bool, in func(string) bool) {
	m.Helper()
	var ks []string
	for _, k := range slices.Sorted(maps.Keys(all)) {
		if in(k) {
			ks = append(ks, k)
		}
	}
	if backward {
		slices.Reverse(ks)
	}
	m.wantSeq(tb.name+" stretch", rows, ks, all)
}

// walk changes rows while it reads them.
func (m *model) walk(t *rapid.T) {
	tb := m.table(t)
	backward := rapid.Bool().Draw(t, "backward")
	rows := tb.kv.All()
	if backward {
		rows = tb.kv.Backward().All()
	}
	last, begun, left := "", false, 20
	// due is the next key of the model behind last.
	due := func() (string, bool) {
		ks := slices.Sorted(maps.Keys(tb.now))
		if backward {
			slices.Reverse(ks)
		}
		for _, k := range ks {
			if !begun || (k > last) != backward && k != last {
				return k, true
			}
		}
		return "", false
	}
	for r, err := range rows {
		m.must(err)
		want, ok := due()
		if !ok || r.Key != want || (row{r.Value, r.Time.UnixMilli()}) != tb.now[want] {
			m.Fatalf("%s: a walk came to %q, want %q (%v)", tb.name, r.Key, want, ok)
		}
		last, begun = r.Key, true
		if left--; left == 0 {
			return
		}
		switch rapid.IntRange(0, 7).Draw(t, "in the walk") {
		case 0, 1:
			m.put(t)
		case 2, 3:
			m.remove(t)
		case 4:
			m.writeOut(t)
			m.persisted(t)
		case 5:
			m.get(t)
		}
	}
	if k, ok := due(); ok {
		m.Fatalf("%s: a walk ended before %q", tb.name, k)
	}
}

func (m *model) view(t *rapid.T) {
	tb := m.table(t)
	v := tb.kv.View()
	k := key(t)
	got, at, ok, err := v.Get(k)
	m.must(err)
	if want, has := tb.committed[k]; ok != has || (row{got, at}) != want {
		m.Fatalf("%s: a view has %q at %d (%v) of %q, want %v (%v)", tb.name, got, at, ok, k, want, has)
	}
	m.wantSeq(tb.name+" view", v.All(), slices.Sorted(maps.Keys(tb.committed)), tb.committed)
	to := key(t)
	m.wantStretch(tb, tb.committed, v.Range(k, to), false, func(x string) bool { return x >= k && x <= to })
	n, err := v.Len()
	m.must(err)
	if n != int64(len(tb.committed)) {
		m.Fatalf("%s: a view has %d rows, want %d", tb.name, n, len(tb.committed))
	}
}

func (m *model) changed(t *rapid.T) {
	tb := m.table(t)
	var seen, want []string
	err := tb.kv.Changed(func(c state.Changed[string, string]) error {
		seen = append(seen, c.Key)
		old, had := tb.base[c.Key]
		now, has := tb.now[c.Key]
		if c.OldOK != had || c.OK != has || (row{c.Old, c.OldTime}) != old || has && (row{c.New, c.Time}) != now {
			m.Fatalf("%s: changed %+v, want %v (%v), %v (%v)", tb.name, c, old, had, now, has)
		}
		return nil
	})
	m.must(err)
	for _, k := range tb.order {
		_, had := tb.base[k]
		_, has := tb.now[k]
		if had || has {
			want = append(want, k)
		}
	}
	if !slices.Equal(seen, want) {
		m.Fatalf("%s: changed %q, want %q", tb.name, seen, want)
	}
}

func (m *model) length(t *rapid.T) {
	tb := m.table(t)
	if n := tb.kv.Len(); n != int64(len(tb.now)) {
		m.Fatalf("%s: %d rows, want %d", tb.name, n, len(tb.now))
	}
}

func (m *model) checkAll() {
	for _, tb := range m.tables {
		for _, k := range keys {
			v, at, ok, err := tb.kv.Get(k)
			m.must(err)
			m.wantRow(tb, k, v, at, ok)
		}
		m.wantRows(tb, tb.now)
	}
	if got := m.db.Meta(); !maps.Equal(got, m.meta) {
		m.Fatalf("meta is %v, want %v", got, m.meta)
	}
}
