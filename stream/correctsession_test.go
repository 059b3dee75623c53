package stream_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A sessionModel is the plain definition of session windows: a record joins
// all sessions of its key that are no further off than the gap. A session is
// open until its end, the gap and the grace period have passed, so that at the
// very moment a record still counts and the final result is not sent yet. The
// reference has two answers to that, and loses rows between them.
type sessionModel struct {
	name       string
	gap, grace int64
	final      bool
	add, merge func(a, b any) any // merge joins two rows
	latest     int64
	open       []session
	edge       bool // a record came for a session in the very moment of its close
}

type session struct {
	key        any
	start, end int64
	row        any
}

var sessionWords = regexp.MustCompile(`^in\.groupByKey\(\)\.windowedBy\(SessionWindows\.ofInactivityGap(?:AndGrace\((\d+) ms, (\d+) ms\)|WithNoGrace\((\d+) ms\))\)(?s:.*)Materialized\.as\("(\w+)"`)

// newSessionModel reads a topology of sessions and nothing else.
func newSessionModel(tr *trace) (*sessionModel, bool) {
	w := sessionWords.FindStringSubmatch(tr.Topology)
	if w == nil {
		return nil, false
	}
	m := &sessionModel{name: w[4], gap: num(w[1] + w[3]), grace: num(w[2]), latest: -1}
	m.final = strings.Contains(tr.Topology, "onWindowClose") || strings.Contains(tr.Topology, "suppress")
	switch first, _, _ := strings.Cut(tr.Topology, "\n"); {
	case strings.Contains(first, ".count("):
		m.add = func(a, _ any) any { return plus(a, "1") }
		m.merge = plus
	case strings.Contains(first, ".reduce("):
		m.add = func(a, v any) any { return text12(a, "", v) }
		m.merge = m.add
	default:
		m.add = func(a, v any) any { return text12(a, "", v) }
		m.merge = func(a, b any) any { return text12(a, "|", b) }
	}
	return m, true
}

func plus(a, b any) any {
	if a == nil {
		a = json.Number("0")
	}
	n, _ := strconv.ParseInt(fmt.Sprint(a), 10, 64)
	k, _ := strconv.ParseInt(fmt.Sprint(b), 10, 64)
	return json.Number(strconv.FormatInt(n+k, 10))
}

func text12(a any, between string, b any) any {
	if a == nil {
		a = ""
	}
	return last12(a.(string) + between + b.(string))
}

// take is a step.
func (m *sessionModel) take(rec goldenRecord) (out []goldenRecord, dropped int) {
	if rec.Key == nil || rec.Value == nil {
		return nil, 1
	}
	m.latest = max(m.latest, rec.Ts)
	merged := session{key: rec.Key, start: rec.Ts, end: rec.Ts}
	found := m.near(rec)
	for _, s := range found {
		merged.start, merged.end = min(merged.start, s.start), max(merged.end, s.end)
		merged.row = m.joined(merged.row, s.row)
	}
	if m.over(merged) {
		return nil, 1
	}
	merged.row = m.add(merged.row, rec.Value)
	for _, s := range found {
		m.open = slices.DeleteFunc(m.open, func(o session) bool { return o == s })
		if !m.final && merged.start < merged.end {
			out = append(out, s.record(nil))
		}
	}
	m.open = append(m.open, merged)
	if !m.final {
		return append(out, merged.record(merged.row)), 0
	}
	return m.close(), 0
}

// joined merges as the reference does, which begins with the first value.
func (m *sessionModel) joined(a, b any) any {
	if _, isText := b.(string); a == nil && (!isText || m.merge("a", "b") == "ab") {
		return b
	}
	return m.merge(a, b)
}

// near are the sessions that rec joins, by their ends.
func (m *sessionModel) near(rec goldenRecord) (found []session) {
	for _, s := range m.open {
		if s.key == rec.Key && s.end >= rec.Ts-m.gap && s.start <= rec.Ts+m.gap && !m.over(s) {
			m.edge = m.edge || s.end+m.gap+m.grace == m.latest
			found = append(found, s)
		}
	}
	slices.SortFunc(found, func(a, b session) int { return cmp.Compare(a.end, b.end) })
	return found
}

func (m *sessionModel) over(s session) bool { return s.end+m.gap+m.grace < m.latest }

func (m *sessionModel) close() (out []goldenRecord) {
	slices.SortFunc(m.open, func(a, b session) int {
		return cmp.Or(cmp.Compare(a.end, b.end), cmp.Compare(a.start, b.start), cmp.Compare(a.key.(string), b.key.(string)))
	})
	for len(m.open) > 0 && m.over(m.open[0]) {
		out = append(out, m.open[0].record(m.open[0].row))
		m.open = m.open[1:]
	}
	return out
}

func (s session) record(row any) goldenRecord {
	return goldenRecord{Topic: "out", Key: goldenWindow{s.key, s.start, s.end, true}, Value: row, Ts: s.end}
}

// asSessions replaces the results of sessions by what the definition gives.
func asSessions(tr *trace) {
	m, ok := newSessionModel(tr)
	if !ok {
		panic("no sessions alone: " + tr.Topology)
	}
	for i := range tr.Steps {
		if s := &tr.Steps[i]; s.In != nil {
			s.Out, s.Dropped = m.take(*s.In)
		}
	}
	// The reference does not show a session that is about to close.
	tr.Stores[m.name] = slices.DeleteFunc(tr.Stores[m.name], func(goldenRow) bool { return true })
	for _, s := range m.open {
		if s.end+m.gap+m.grace > m.latest {
			tr.Stores[m.name] = append(tr.Stores[m.name], goldenRow{Key: goldenWindow{s.key, s.start, s.end, true}, Value: s.row})
		}
	}
	sortRows(tr.Stores[m.name])
}

func sortRows(rows []goldenRow) {
	slices.SortFunc(rows, func(a, b goldenRow) int {
		x, y := a.Key.(goldenWindow), b.Key.(goldenWindow)
		return cmp.Or(cmp.Compare(x.key.(string), y.key.(string)), cmp.Compare(x.start, y.start), cmp.Compare(x.end, y.end))
	})
}

func TestTheDefinitionOfSessionsGivesWhatTheReferenceGaveWhereNothingIsWrong(t *testing.T) {
	n := 0
	for _, tr := range allTraces(t) {
		m, ok := newSessionModel(&tr)
		if !ok || tr.Defect != nil && tr.Defect.ID != "no-id-null-value-aggregated" {
			continue
		}
		n++
		if tr.Defect != nil {
			nullsAsText(&tr)
		}
		laterFinals(&tr)
		for i, s := range tr.Steps {
			if s.In == nil {
				continue
			}
			want := fmt.Sprint(s.Dropped, tr.showSorted(s.Out))
			out, dropped := m.take(*s.In)
			if m.edge {
				break // here the reference loses rows
			}
			if got := fmt.Sprint(dropped, tr.showSorted(out)); got != want {
				t.Errorf("%s, step %d:\n got %s\nwant %s", tr.Name, i, got, want)
			}
		}
	}
	if n == 0 {
		t.Error("no such traces")
	}
}
