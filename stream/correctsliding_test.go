package stream_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/semelstream/semel/stream"
)

// followWords are the first words of a topology of windows that follow the
// records of a stream or of a cogroup.
var followWords = regexp.MustCompile(`^(?:in\.groupByKey\(\)|p\.groupByKey\(\)\.cogroup\([^.]*\)\.cogroup\(q\.groupByKey\(\), [^.]*\))\.windowedBy\((Sliding|Session)Windows\.of\w+(?:AndGrace\((\d+) ms, (\d+) ms\)|WithNoGrace\((\d+) ms\))(?s:.*)Materialized\.as\("(\w+)"\)(?:\.withRetention\((\d+) ms\))?`)

// shown leaves out of the rows of a store what the reference's store would not
// have or show. A row that is about to close still counts here, so that it is
// seen a little longer; and sliding windows keep rows that are no windows.
func (tr *trace) shown(store string, rows []stream.Row) []stream.Row {
	w := followWords.FindStringSubmatch(tr.Topology)
	if len(w) == 0 || w[5] != store {
		return rows
	}
	at := func(r stream.Row) int64 { return r.End }
	retain := num(w[2]+w[4]) + num(w[3])
	if w[1] == "Sliding" {
		at = func(r stream.Row) int64 { return r.Start }
		retain += num(w[2] + w[4])
		rows = slices.DeleteFunc(rows, func(r stream.Row) bool { return r.Ms < r.Start })
	}
	retain = max(retain, num(w[6]))
	latest := int64(0)
	for _, r := range rows {
		latest = max(latest, at(r))
	}
	return slices.DeleteFunc(rows, func(r stream.Row) bool { return at(r) <= latest-retain })
}

// newSlideModel reads a topology of sliding windows and nothing else.
func newSlideModel(tr *trace) (m stream.WindowModel, store string, ok bool) {
	w := followWords.FindStringSubmatch(tr.Topology)
	if len(w) == 0 || w[1] != "Sliding" {
		return nil, "", false
	}
	s := &stream.SlideModel{Apart: num(w[2] + w[4]), Grace: num(w[3]), Aggregate: stream.ModelCount}
	if first, _, _ := strings.Cut(tr.Topology, "\n"); !strings.Contains(first, ".count(") {
		s.Aggregate.Add = func(row, v string, _ bool) (string, bool) { return last12(row + v), true }
	}
	switch {
	case strings.Contains(tr.Topology, "suppress"):
		return &stream.FinalModel{WindowModel: s, AtOnce: true}, w[5], true
	case strings.Contains(tr.Topology, "onWindowClose"):
		return &stream.FinalModel{WindowModel: s}, w[5], true
	}
	return s, w[5], true
}

// take is a step.
func take(m stream.WindowModel, rec *goldenRecord) (out []goldenRecord, dropped int) {
	if rec.Key == nil || rec.Value == nil {
		return nil, 1
	}
	results, late := m.Add(rec.Key.(string), rec.Value.(string), rec.Ts)
	for _, r := range results {
		out = append(out, goldenRecord{Topic: "out", Key: goldenWindow{r.Key, r.Start, r.End, false}, Value: goldenValue(r.Value), Ts: r.Ms})
	}
	return out, late
}

// goldenValue is a text or a number as in a trace.
func goldenValue(v string) any {
	if v != "" && strings.Trim(v, "0123456789") == "" {
		return json.Number(v)
	}
	return v
}

// asSliding replaces the results of sliding windows by what the definition
// gives.
func asSliding(tr *trace) {
	m, store, ok := newSlideModel(tr)
	if !ok {
		panic("no sliding windows alone: " + tr.Topology)
	}
	for i := range tr.Steps {
		if s := &tr.Steps[i]; s.In != nil {
			s.Out, s.Dropped = take(m, s.In)
		}
	}
	var rows []stream.Row
	for _, r := range m.Rows() {
		rows = append(rows, stream.Row{Key: r.Key, Start: r.Start, End: r.End, Value: r.Value, Ms: r.Ms})
	}
	slices.SortFunc(rows, func(a, b stream.Row) int {
		return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Start, b.Start))
	})
	tr.Stores[store] = nil
	for _, r := range tr.shown(store, rows) {
		tr.Stores[store] = append(tr.Stores[store], goldenRow{goldenWindow{r.Key, r.Start, r.End, false}, goldenValue(r.Value), &r.Ms})
	}
}

func TestTheDefinitionOfSlidingWindowsGivesWhatTheReferenceGaveWhereNothingIsWrong(t *testing.T) {
	n := 0
	for _, tr := range allTraces(t) {
		m, _, ok := newSlideModel(&tr)
		if !ok {
			continue
		}
		wrong := false
		for i, s := range tr.Steps {
			if s.In == nil {
				continue
			}
			// From the first fault on, but for what is sent twice, the reference
			// goes on from wrong rows.
			wrong = wrong || slices.ContainsFunc(s.Out, func(o goldenRecord) bool {
				return o.Defect != "" && o.Defect != "no-id-sliding-sent-twice"
			})
			if wrong {
				break
			}
			n++
			s.Out = slices.DeleteFunc(s.Out, func(o goldenRecord) bool { return o.Defect != "" })
			out, _ := take(m, s.In)
			if got, want := fmt.Sprint(tr.showSorted(out)), fmt.Sprint(tr.showSorted(s.Out)); got != want {
				t.Errorf("%s, step %d:\n got %s\nwant %s", tr.Name, i, got, want)
			}
		}
	}
	if n == 0 {
		t.Error("no such traces")
	}
}
