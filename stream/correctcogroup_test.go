package stream_test

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A cogroupModel is the plain definition of a cogroup of texts by tumbling
// windows. The reference, with ownTimes, measures how late a record is by the
// time of its own stream alone, while rows expire by the latest window of all.
// Here all streams have one time.
type cogroupModel struct {
	store       string
	size, grace int64
	ownTimes    bool
	times       map[string]int64 // by topic; one if there is one for all
	latest      int64            // start of a window with a row
	rows        map[goldenWindow]cogroupRow
}

type cogroupRow struct {
	value string
	ms    int64
}

var cogroupWords = regexp.MustCompile(`^p\.groupByKey\(\)\.cogroup\(cat12 of v\)\.cogroup\(q\.groupByKey\(\), cat12 of v in upper case\)` +
	`\.windowedBy\(TimeWindows\.ofSizeAndGrace\((\d+) ms, (\d+) ms\)\)\.aggregate\(\(\) -> "", Materialized\.as\("(\w+)"`)

func newCogroupModel(tr *trace) (*cogroupModel, bool) {
	w := cogroupWords.FindStringSubmatch(tr.Topology)
	if w == nil {
		return nil, false
	}
	return &cogroupModel{
		store: w[3], size: num(w[1]), grace: num(w[2]), latest: -1,
		times: map[string]int64{}, rows: map[goldenWindow]cogroupRow{},
	}, true
}

// take is a step.
func (m *cogroupModel) take(rec goldenRecord) (out []goldenRecord, dropped int) {
	if rec.Key == nil || rec.Value == nil {
		return nil, 1
	}
	clock, value := "all", rec.Value.(string)
	if m.ownTimes {
		clock = rec.Topic
	}
	if rec.Topic == "q" {
		value = strings.ToUpper(value)
	}
	m.times[clock] = max(m.times[clock], rec.Ts)
	start := rec.Ts - rec.Ts%m.size
	if start+m.size+m.grace <= m.times[clock] {
		return nil, 1
	}
	key := goldenWindow{rec.Key, start, start + m.size, false}
	row := m.rows[key]
	row = cogroupRow{last12(row.value + value), max(row.ms, rec.Ts)}
	m.latest = max(m.latest, start)
	m.rows[key] = row
	maps.DeleteFunc(m.rows, func(k goldenWindow, _ cogroupRow) bool { return k.start <= m.latest-m.size-m.grace })
	return []goldenRecord{{Topic: "out", Key: key, Value: row.value, Ts: row.ms}}, 0
}

// kept are the rows in the order of the trace.
func (m *cogroupModel) kept() (rows []goldenRow) {
	for key, row := range m.rows {
		rows = append(rows, goldenRow{key, row.value, &row.ms})
	}
	sortRows(rows)
	return rows
}

// asCogroup replaces the results of a cogroup by what the definition gives.
func asCogroup(tr *trace) {
	m, ok := newCogroupModel(tr)
	if !ok {
		panic("no cogroup by tumbling windows: " + tr.Topology)
	}
	for i := range tr.Steps {
		if s := &tr.Steps[i]; s.In != nil {
			s.Out, s.Dropped = m.take(*s.In)
		}
	}
	tr.Stores[m.store] = m.kept()
}

func TestTheDefinitionOfCogroupsWithATimePerStreamGivesWhatTheReferenceGave(t *testing.T) {
	n, differ := 0, 0
	for _, tr := range allTraces(t) {
		m, ok := newCogroupModel(&tr)
		if !ok {
			continue
		}
		n++
		m.ownTimes = true
		one, _ := newCogroupModel(&tr)
		for i, s := range tr.Steps {
			want := fmt.Sprint(s.Dropped, tr.showSorted(s.Out))
			out, dropped := m.take(*s.In)
			if got := fmt.Sprint(dropped, tr.showSorted(out)); got != want {
				t.Errorf("%s, step %d:\n got %s\nwant %s", tr.Name, i, got, want)
			}
			if out, dropped := one.take(*s.In); fmt.Sprint(dropped, tr.showSorted(out)) != want {
				differ++
			}
		}
		got, want := fmt.Sprint(showRows(m.kept())), fmt.Sprint(showRows(tr.Stores[m.store]))
		if got != want {
			t.Errorf("%s:\n got %s\nwant %s", tr.Name, got, want)
		}
	}
	if n == 0 || differ == 0 || differ > 10 {
		t.Errorf("%d traces, in which one time for all streams changes %d steps", n, differ)
	}
}

func showRows(rows []goldenRow) (lines []string) {
	for _, r := range rows {
		lines = append(lines, fmt.Sprintf("%v=%v@%d", r.Key, r.Value, *r.Ts))
	}
	slices.Sort(lines)
	return lines
}
