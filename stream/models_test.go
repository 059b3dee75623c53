package stream

import (
	"cmp"
	"slices"
	"strconv"
)

// Models of windows that follow a key's records: they keep everything, look at
// all of it anew with each record, and share nothing with the operators.

// A ModelResult is what a model says of one window.
type ModelResult struct {
	Key        string
	Start, End int64
	Value      string
	Deleted    bool
	Ms         int64
}

// A ModelAggregate is what a model does with the values of a window: Add gives
// the new row, or false to delete it; Merge is of sessions.
type ModelAggregate struct {
	Add   func(row, value string, ok bool) (string, bool)
	Merge func(a string, ok bool, b string) string
}

// ModelCount counts.
var ModelCount = ModelAggregate{
	Add: func(row, _ string, _ bool) (string, bool) { return plus(row, "1"), true },
	Merge: func(a string, _ bool, b string) string {
		return plus(a, b)
	},
}

func plus(a, b string) string {
	n, _ := strconv.ParseInt(a, 10, 64)
	m, _ := strconv.ParseInt(b, 10, 64)
	return strconv.FormatInt(n+m, 10)
}

// A WindowModel takes records and says what becomes of their windows.
type WindowModel interface {
	// Add is a record: its results in order, and how many windows it came too
	// late for.
	Add(key, value string, ms int64) (results []ModelResult, late int)
	// Rows are the windows that there are.
	Rows() []ModelResult
	// Open is the first end of a window that is open by now.
	Open() int64
}

// A FinalModel tells of each window of another model once, when it is not open
// any more.
type FinalModel struct {
	WindowModel
	// AtOnce tells it when stream time reaches the end of openness, as the
	// reference's suppress does, and not only when it has passed it.
	AtOnce bool

	told   map[ModelResult]bool // by key, start and end
	closed int64
}

// Add is [WindowModel.Add].
func (m *FinalModel) Add(key, value string, ms int64) ([]ModelResult, int) {
	_, late := m.WindowModel.Add(key, value, ms)
	open := m.Open()
	if m.AtOnce {
		open++
	}
	m.closed = max(m.closed, open)
	var finals []ModelResult
	for _, r := range m.Rows() {
		id := ModelResult{Key: r.Key, Start: r.Start, End: r.End}
		if r.End < m.closed && !m.told[id] {
			if m.told == nil {
				m.told = map[ModelResult]bool{}
			}
			m.told[id] = true
			finals = append(finals, r)
		}
	}
	slices.SortFunc(finals, func(a, b ModelResult) int {
		return cmp.Or(cmp.Compare(a.End, b.End), cmp.Compare(a.Start, b.Start), cmp.Compare(a.Key, b.Key))
	})
	return finals, late
}

// A SlideModel is sliding windows by their definition: all records are kept,
// and each window is folded anew.
type SlideModel struct {
	Apart, Grace int64
	Aggregate    ModelAggregate

	now  int64
	recs []modelRec
	told map[modelWindow]bool // windows that there are
}

type modelRec struct {
	key, value string
	t          int64
	open       int64 // then
}

type modelWindow struct {
	key   string
	start int64
}

// Move moves stream time, as a record of another key does.
func (m *SlideModel) Move(now int64) { m.now = max(m.now, now) }

// Open is [WindowModel.Open].
func (m *SlideModel) Open() int64 { return m.now - m.Grace }

// window is what a window holds.
func (m *SlideModel) window(w modelWindow) (r ModelResult, records int) {
	r = ModelResult{Key: w.key, Start: w.start, End: w.start + m.Apart, Deleted: true}
	for _, rec := range m.recs {
		if rec.key != w.key || rec.t < r.Start || rec.t > r.End || r.End < rec.open {
			continue
		}
		records++
		r.Ms = max(r.Ms, rec.t)
		value, ok := m.Aggregate.Add(r.Value, rec.value, !r.Deleted)
		if r.Value, r.Deleted = value, !ok; !ok {
			r.Value = ""
		}
	}
	return r, records
}

// Add is [WindowModel.Add]. Results are in order of their starts.
func (m *SlideModel) Add(key, value string, t int64) (results []ModelResult, late int) {
	m.Move(t)
	if t+m.Apart < m.Open() {
		return nil, 1
	}
	m.recs = append(m.recs, modelRec{key, value, t, m.Open()})
	own := modelWindow{key, max(t-m.Apart, 0)}
	at := []modelWindow{own}
	for _, r := range m.recs {
		at = append(at, modelWindow{r.key, r.t + 1})
	}
	for w := range m.told {
		at = append(at, w)
	}
	slices.SortFunc(at, func(a, b modelWindow) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.key, b.key))
	})
	for _, w := range slices.Compact(at) {
		in := w.key == key && w.start <= t && t <= w.start+m.Apart
		if w.start+m.Apart < m.Open() {
			if in && (m.told[w] || w == own) {
				late++
			}
			continue
		}
		if r, n := m.window(w); n > 0 && (in || !m.told[w]) {
			if m.told == nil {
				m.told = map[modelWindow]bool{}
			}
			m.told[w] = true
			results = append(results, r)
		}
	}
	return results, late
}

// Rows is [WindowModel.Rows].
func (m *SlideModel) Rows() (rows []ModelResult) {
	for w := range m.told {
		if r, _ := m.window(w); !r.Deleted {
			rows = append(rows, r)
		}
	}
	return rows
}

// A SessionModel is sessions by their definition.
type SessionModel struct {
	Gap, Grace int64
	Aggregate  ModelAggregate

	now  int64
	rows []ModelResult
}

// Open is [WindowModel.Open].
func (m *SessionModel) Open() int64 { return m.now - m.Gap - m.Grace }

// Rows is [WindowModel.Rows].
func (m *SessionModel) Rows() []ModelResult { return m.rows }

// Add is [WindowModel.Add]. The deletes of sessions that are absorbed come
// first.
func (m *SessionModel) Add(key, value string, t int64) (results []ModelResult, late int) {
	m.now = max(m.now, t)
	s := ModelResult{Key: key, Start: t, End: t}
	var rest, old []ModelResult
	for _, r := range m.rows {
		if r.Key != key || r.End < m.Open() || r.End < t-m.Gap || r.Start > t+m.Gap {
			rest = append(rest, r)
			continue
		}
		old = append(old, r)
		s.Start, s.End = min(s.Start, r.Start), max(s.End, r.End)
	}
	if s.End < m.Open() {
		return nil, 1
	}
	slices.SortFunc(old, func(a, b ModelResult) int { return cmp.Compare(a.End, b.End) })
	for i, r := range old {
		s.Value = m.Aggregate.Merge(s.Value, i > 0, r.Value)
		if s.Start != s.End {
			results = append(results, ModelResult{Key: key, Start: r.Start, End: r.End, Deleted: true, Ms: r.End})
		}
	}
	row, ok := m.Aggregate.Add(s.Value, value, len(old) > 0)
	if s.Value, s.Deleted, s.Ms = row, !ok, s.End; ok {
		rest = append(rest, s)
	} else {
		s.Value = ""
	}
	m.rows = rest
	return append(results, s), 0
}

func number64(n int64) string { return strconv.FormatInt(n, 10) }
