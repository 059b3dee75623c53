package statetest

import (
	"iter"
	"maps"
	"math"
	"slices"

	"pgregory.net/rapid"

	"github.com/semelstream/semel/state"
)

// found is a row that was read; its place has no sequence number.
type found struct {
	place
	row
}

func ofWindows(rows state.WindowRows[string, string]) iter.Seq2[found, error] {
	return func(yield func(found, error) bool) {
		for r, err := range rows {
			if !yield(found{place{key: r.Key, at: r.Start}, row{r.Value, r.Time}}, err) {
				return
			}
		}
	}
}

func ofSessions(rows state.SessionRows[string, string]) iter.Seq2[found, error] {
	return func(yield func(found, error) bool) {
		for r, err := range rows {
			if !yield(found{place{key: r.Key, at: r.End, start: r.Start}, row{r.Value, r.Time}}, err) {
				return
			}
		}
	}
}

func everything(place) bool { return true }

// visible are the places of rows that are not gone and that in wants, in order.
func (tb *expiring) visible(rows map[place]row, bound int64, order func(a, b place) int, in func(place) bool) []place {
	out := slices.SortedFunc(maps.Keys(rows), order)
	return slices.DeleteFunc(out, func(p place) bool { return p.at < bound || !in(p) })
}

func (m *windows) wantRows(what string, rows iter.Seq2[found, error], want []place, of map[place]row) {
	m.Helper()
	i := 0
	for r, err := range rows {
		m.must(err)
		if i == len(want) {
			m.Fatalf("%s: a row %v too many, want %v", what, r, want)
		}
		p := want[i]
		if r.row != of[p] || r.key != p.key || r.at != p.at || r.start != p.start {
			m.Fatalf("%s: row %d is %v, want %v %v", what, i, r, p, of[p])
		}
		i++
	}
	if i != len(want) {
		m.Fatalf("%s: %d rows, want %v", what, i, want)
	}
}

// both reads in both directions.
func (m *windows) both(what string, want []place, of map[place]row, read func(backward bool) iter.Seq2[found, error]) {
	m.Helper()
	m.wantRows(what, read(false), want, of)
	back := slices.Clone(want)
	slices.Reverse(back)
	m.wantRows(what+" backward", read(true), back, of)
}

// scans are a store's scans in one direction, of committed rows or all.
func (tb *expiring) windowScan(backward, committed bool) state.WindowScan[string, string] {
	scan := tb.w.Backward().Backward()
	if committed {
		scan = tb.w.View().WindowScan
	}
	if backward {
		scan = scan.Backward()
	}
	return scan
}

func (tb *expiring) sessionScan(backward, committed bool) state.SessionScan[string, string] {
	scan := tb.s.Backward().Backward()
	if committed {
		scan = tb.s.View().SessionScan
	}
	if backward {
		scan = scan.Backward()
	}
	return scan
}

func (m *windows) readAll(tb *expiring, of map[place]row, bound int64, committed bool) {
	m.both(tb.name+" All", tb.visible(of, bound, tb.compare, everything), of, func(back bool) iter.Seq2[found, error] {
		if tb.s != nil {
			return ofSessions(tb.sessionScan(back, committed).All())
		}
		return ofWindows(tb.windowScan(back, committed).All())
	})
}

func (m *windows) readByTime(tb *expiring, of map[place]row, bound, from, to int64, committed bool) {
	in := func(p place) bool { return from <= p.at && p.at <= to }
	m.both(tb.name+" by time", tb.visible(of, bound, tb.byTime, in), of, func(back bool) iter.Seq2[found, error] {
		if tb.s != nil {
			return ofSessions(tb.sessionScan(back, committed).ByEnd(from, to))
		}
		return ofWindows(tb.windowScan(back, committed).ByStart(from, to))
	})
}

func (m *windows) checkAll() {
	m.Helper()
	for _, tb := range m.tables {
		m.readAll(tb, tb.now, tb.bound, false)
		m.readByTime(tb, tb.now, tb.bound, 0, math.MaxInt64, false)
	}
	m.versions.checkAll(m)
}

func drawTimes(t *rapid.T) (from, to int64) {
	return rapid.Int64Range(-5, 105).Draw(t, "from"), rapid.SampledFrom([]int64{-1, 0, 19, 20, 50, 99, 105, math.MaxInt64}).Draw(t, "to")
}

func (m *windows) read(t *rapid.T) {
	tb := m.table(t)
	from, to := drawTimes(t)
	m.readAll(tb, tb.now, tb.bound, false)
	m.readByTime(tb, tb.now, tb.bound, from, to, false)
	if tb.w != nil {
		in := func(p place) bool { return from <= p.at && p.at <= to }
		m.both(tb.name+" FetchAll", tb.visible(tb.now, tb.bound, tb.compare, in), tb.now, func(back bool) iter.Seq2[found, error] {
			return ofWindows(tb.windowScan(back, false).FetchAll(from, to))
		})
	}
}

// readKey reads the rows of a key, and of a range of keys.
func (m *windows) readKey(t *rapid.T) {
	m.readKeyOf(t, m.table(t), false)
}

func (m *windows) readKeyOf(t *rapid.T, tb *expiring, committed bool) {
	of, bound := tb.now, tb.bound
	if committed {
		of, bound = tb.committed, tb.gone
	}
	from, to := drawTimes(t)
	first := rapid.SampledFrom(windowKeys).Draw(t, "first")
	last := rapid.SampledFrom(windowKeys).Draw(t, "last")
	window := tb.s == nil
	oneKey := func(p place) bool {
		if !window {
			return p.key == first && p.at >= from && p.start <= to
		}
		return p.key == first && from <= p.at && p.at <= to
	}
	m.both(tb.name+" of a key", tb.visible(of, bound, tb.compare, oneKey), of, func(back bool) iter.Seq2[found, error] {
		if window {
			return ofWindows(tb.windowScan(back, committed).Fetch(first, from, to))
		}
		return ofSessions(tb.sessionScan(back, committed).Overlapping(first, from, to))
	})
	if !committed && !tb.byStart() {
		m.wantRows(tb.name+" of a key at once", tb.append(m, first, from, to), tb.visible(of, bound, tb.compare, oneKey), of)
	}
	some := func(p place) bool {
		return first <= p.key && p.key <= last && (!window || from <= p.at && p.at <= to)
	}
	m.both(tb.name+" of keys", tb.visible(of, bound, tb.compare, some), of, func(back bool) iter.Seq2[found, error] {
		if window {
			return ofWindows(tb.windowScan(back, committed).FetchRange(first, last, from, to))
		}
		return ofSessions(tb.sessionScan(back, committed).FetchRange(first, last))
	})
	m.readOne(t, tb, of, bound, committed)
}

// append reads the rows of a key into memory.
func (tb *expiring) append(m *windows, key string, from, to int64) iter.Seq2[found, error] {
	m.Helper()
	if tb.s == nil {
		rows, err := tb.w.AppendFetch(nil, key, from, to)
		m.must(err)
		return ofWindows(withoutErrors(rows))
	}
	rows, err := tb.s.AppendOverlapping(nil, key, from, to)
	m.must(err)
	return ofSessions(withoutErrors(rows))
}

func withoutErrors[R any](rows []R) iter.Seq2[R, error] {
	return func(yield func(R, error) bool) {
		for _, r := range rows {
			if !yield(r, nil) {
				return
			}
		}
	}
}

// readOne reads one row.
func (m *windows) readOne(t *rapid.T, tb *expiring, of map[place]row, bound int64, committed bool) {
	p := drawPlace(t, tb)
	var got row
	var ok bool
	var err error
	switch {
	case tb.s != nil && committed:
		got.value, got.time, ok, err = tb.s.View().Get(p.key, p.start, p.at)
	case tb.s != nil:
		got.value, got.time, ok, err = tb.s.Get(p.key, p.start, p.at)
	case committed:
		got.value, got.time, ok, err = tb.w.View().Get(p.key, p.at)
	default:
		got.value, got.time, ok, err = tb.w.Get(p.key, p.at)
	}
	m.must(err)
	want, has := of[p]
	if has = has && p.at >= bound; !has {
		want = row{}
	}
	if got != want || ok != has {
		m.Fatalf("%s: %v is %v (%v), want %v (%v)", tb.name, p, got, ok, want, has)
	}
}

// view reads committed rows.
func (m *windows) view(t *rapid.T) {
	tb := m.table(t)
	if tb.viewed != tb.gone { // before the first commit a view finds more, or what is left of it
		return
	}
	from, to := drawTimes(t)
	m.readAll(tb, tb.committed, tb.gone, true)
	m.readByTime(tb, tb.committed, tb.gone, from, to, true)
	m.readKeyOf(t, tb, true)
}

// walk changes rows while it reads them in order of time.
func (m *windows) walk(t *rapid.T) {
	tb := m.table(t)
	backward := rapid.Bool().Draw(t, "backward")
	var rows iter.Seq2[found, error]
	if tb.s != nil {
		rows = ofSessions(tb.sessionScan(backward, false).ByEnd(0, math.MaxInt64))
	} else {
		rows = ofWindows(tb.windowScan(backward, false).ByStart(0, math.MaxInt64))
	}
	var last *place
	due := func() (place, bool) {
		all := tb.visible(tb.now, tb.bound, tb.byTime, everything)
		if backward {
			slices.Reverse(all)
		}
		for _, p := range all {
			if last == nil || tb.byTime(p, *last) > 0 != backward && p != *last {
				return p, true
			}
		}
		return place{}, false
	}
	for r, err := range rows {
		m.must(err)
		want, ok := due()
		if !ok || r.row != tb.now[want] {
			m.Fatalf("%s: a walk came to %v, want %v (%v)", tb.name, r, want, ok)
		}
		last = &want
		switch rapid.IntRange(0, 9).Draw(t, "in the walk") {
		case 0, 1:
			m.put(t)
		case 2, 3:
			m.remove(t)
		case 4:
			m.writeOut(t)
			m.persisted(t)
		case 5:
			m.expire(t)
		case 6:
			m.add(t)
		case 7:
			return
		}
	}
	if p, ok := due(); ok {
		m.Fatalf("%s: a walk ended before %v", tb.name, p)
	}
}

func (m *windows) changed(t *rapid.T) {
	tb := m.table(t)
	var seen, want []found
	see := func(p place, old, now row, had, has bool) {
		seen = append(seen, found{p, now})
		// The place has no sequence number: the value tells.
		if had && !slices.Contains(slices.Collect(maps.Values(tb.committed)), old) {
			m.Fatalf("%s: %v was never %v", tb.name, p, old)
		}
		if has && !slices.Contains(slices.Collect(maps.Values(tb.now)), now) {
			m.Fatalf("%s: %v is not %v", tb.name, p, now)
		}
	}
	if tb.s != nil {
		m.must(tb.s.Changed(func(c state.SessionChanged[string, string]) error {
			see(place{key: c.Key, at: c.End, start: c.Start}, row{c.Old, c.OldTime}, row{c.New, c.Time}, c.OldOK, c.OK)
			return nil
		}))
	} else {
		m.must(tb.w.Changed(func(c state.WindowChanged[string, string]) error {
			see(place{key: c.Key, at: c.Start}, row{c.Old, c.OldTime}, row{c.New, c.Time}, c.OldOK, c.OK)
			return nil
		}))
	}
	for _, p := range tb.order {
		_, had := tb.committed[p]
		r, has := tb.now[p]
		if had || has {
			p.seq = 0
			want = append(want, found{p, r})
		}
	}
	if len(seen) != len(want) {
		m.Fatalf("%s: changed %v, want %v", tb.name, seen, want)
	}
	for i := range want {
		if seen[i].place != want[i].place || want[i].row != (row{}) && seen[i].row != want[i].row {
			m.Fatalf("%s: changed %v, want %v", tb.name, seen[i], want[i])
		}
	}
}
