package stream_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"testing"
)

// nullsAsText gives records with a null value one, "~", which is what the
// functions of the shapes take null for. The reference hands nulls to the
// aggregates of windows; here they are dropped. All else in such a trace can
// be compared this way.
func nullsAsText(tr *trace) {
	for i := range tr.Steps {
		s := &tr.Steps[i]
		if s.In == nil || s.In.Key == nil || s.In.Value != nil {
			continue
		}
		if s.Dropped == 0 && gone(s.Out) {
			s.Out, s.Dropped = nil, 1 // it made nothing of null: as dropped
			continue
		}
		s.In.Value = "~"
	}
}

// gone says whether all that came out is null.
func gone(out []goldenRecord) bool {
	return len(out) > 0 && !slices.ContainsFunc(out, func(o goldenRecord) bool { return o.Value != nil })
}

func TestNullsAsTextLeavesOutWhatNullMakes(t *testing.T) {
	tr := &trace{Steps: []goldenStep{
		{In: &goldenRecord{Key: "k"}, Out: []goldenRecord{{Key: "k"}}},
		{In: &goldenRecord{Key: "k"}, Out: []goldenRecord{{Key: "k", Value: "a~"}}},
		{In: &goldenRecord{}, Dropped: 1},
	}}
	nullsAsText(tr)
	if s := tr.Steps[0]; s.In.Value != nil || len(s.Out) != 0 || s.Dropped != 1 {
		t.Errorf("a null that makes null: %+v", s)
	}
	if s := tr.Steps[1]; s.In.Value != "~" || len(s.Out) != 1 || s.Dropped != 0 {
		t.Errorf("a null that makes text: %+v", s)
	}
	if s := tr.Steps[2]; s.In.Value != nil {
		t.Errorf("a record without a key: %+v", s)
	}
}

var lostFinal = regexp.MustCompile(`(\d+): (\w+)\[(\d+),(\d+)\)=(\d+)`)

// withLostFinals puts the final results back that the reference lost, as the
// trace lists them.
func withLostFinals(tr *trace) {
	for _, m := range lostFinal.FindAllStringSubmatch(tr.Defect.Why, -1) {
		step, start, end := num(m[1]), num(m[3]), num(m[4])
		o := goldenRecord{Topic: "out", Key: goldenWindow{m[2], start, end, false}, Value: json.Number(m[5]), Ts: -1}
		for _, s := range tr.Steps[:step] {
			if in := s.In; in != nil && in.Key == m[2] && start <= in.Ts && in.Ts < end {
				o.Ts = max(o.Ts, in.Ts)
			}
		}
		tr.Steps[step].Out = append(tr.Steps[step].Out, o)
	}
}

func TestLostFinalsArePutBackWithTheTimeOfTheirNewestRecord(t *testing.T) {
	tr := &trace{
		Defect: &struct{ ID, Why string }{"no-id-lost-final", "lost (steps from 0: 2: k[0,10)=2)"},
		Steps: []goldenStep{
			{In: &goldenRecord{Key: "k", Value: "v", Ts: 7}},
			{In: &goldenRecord{Key: "k", Value: "v", Ts: 3}},
			{In: &goldenRecord{Key: "k", Value: "v", Ts: 100}},
		},
	}
	withLostFinals(tr)
	want := goldenRecord{Topic: "out", Key: goldenWindow{"k", 0, 10, false}, Value: json.Number("2"), Ts: 7}
	if got := fmt.Sprint(tr.Steps[2].Out); got != fmt.Sprint([]goldenRecord{want}) {
		t.Errorf("got %s", got)
	}
}

var closesLater = regexp.MustCompile(`(?s)windowedBy\((Sliding|Session)Windows\..*(?:AndGrace\((\d+) ms, (\d+) ms\)|WithNoGrace\((\d+) ms\)).*suppress\(Suppressed\.untilWindowCloses`)

// laterFinals moves the final results of sliding windows and of sessions that
// the reference's suppress sent in the very moment of their close. A record
// that comes in that moment still counts, there as here; so the final result
// comes with the first record that is later. The reference sends a second one
// instead.
func laterFinals(tr *trace) {
	m := closesLater.FindStringSubmatch(tr.Topology)
	if m == nil {
		return
	}
	wait := num(m[3]) // grace
	if m[1] == "Session" {
		wait += num(m[2] + m[4]) // gap
	}
	latest := int64(-1)
	early := []goldenRecord{}
	for i := range tr.Steps {
		s := &tr.Steps[i]
		if s.In != nil && s.In.Key != nil && s.Dropped == 0 {
			latest = max(latest, s.In.Ts)
		}
		due := slices.Concat(early, s.Out)
		early, s.Out = nil, nil
		for _, o := range due {
			if o.Key.(goldenWindow).end+wait < latest {
				s.Out = append(s.Out, o)
				continue
			}
			early = append(slices.DeleteFunc(early, func(e goldenRecord) bool { return e.Key == o.Key }), o)
		}
	}
}

// num is a number in a text, 0 if there is none.
func num(s string) int64 { n, _ := strconv.ParseInt(s, 10, 64); return n }

func TestLaterFinalsKeepsTheLastOfTwoFinals(t *testing.T) {
	final := func(n string) goldenRecord {
		return goldenRecord{Key: goldenWindow{"k", 10, 20, false}, Value: json.Number(n)}
	}
	in := func(ms int64) *goldenRecord { return &goldenRecord{Key: "k", Value: "v", Ts: ms} }
	tr := &trace{
		Topology: "in.windowedBy(SlidingWindows.ofTimeDifferenceAndGrace(10 ms, 5 ms)).count().suppress(Suppressed.untilWindowCloses(unbounded()))",
		Steps: []goldenStep{
			{In: in(20)},
			{In: in(25), Out: []goldenRecord{final("1")}},
			{In: in(20), Out: []goldenRecord{final("2")}},
			{In: in(26)},
		},
	}
	laterFinals(tr)
	for i, want := range []string{"[]", "[]", "[]", fmt.Sprint([]goldenRecord{final("2")})} {
		if got := fmt.Sprint(tr.Steps[i].Out); got != want {
			t.Errorf("step %d: got %s, want %s", i, got, want)
		}
	}
}
