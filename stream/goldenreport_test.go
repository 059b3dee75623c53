package stream_test

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

var reportTo = flag.String("golden-report", "", "file for a table of the golden traces by area")

// A goldenReport says by area how the traces went, and why one was not run.
type goldenReport struct {
	areas map[string]*areaReport
	notes []string
}

type areaReport struct{ passed, failed, skipped int }

func (r *goldenReport) area(name string) *areaReport {
	if r.areas == nil {
		r.areas = map[string]*areaReport{}
	}
	if r.areas[name] == nil {
		r.areas[name] = &areaReport{}
	}
	return r.areas[name]
}

func (r *goldenReport) note(tr trace, format string, args ...any) {
	r.notes = append(r.notes, tr.Area+"/"+tr.Name+": "+fmt.Sprintf(format, args...))
}

func (r *goldenReport) String() string {
	var b strings.Builder
	line := func(area string, a areaReport) {
		fmt.Fprintf(&b, "%-22s %6d %6d %7d\n", area, a.passed, a.failed, a.skipped)
	}
	fmt.Fprintf(&b, "%-22s %6s %6s %7s\n", "area", "passed", "failed", "skipped")
	var all areaReport
	for _, area := range slices.Sorted(maps.Keys(r.areas)) {
		a := r.areas[area]
		line(area, *a)
		all = areaReport{all.passed + a.passed, all.failed + a.failed, all.skipped + a.skipped}
	}
	line("all", all)
	slices.SortFunc(r.notes, cmp.Compare)
	for _, n := range r.notes {
		fmt.Fprintln(&b, n)
	}
	return b.String()
}

func (r *goldenReport) write(t *testing.T) {
	t.Helper()
	t.Log("\n" + r.String())
	if *reportTo == "" {
		return
	}
	if err := os.WriteFile(*reportTo, []byte(r.String()), 0o644); err != nil {
		t.Error(err)
	}
}

func TestAGoldenReportCountsByAreaAndSaysWhatWasNotRun(t *testing.T) {
	r := &goldenReport{}
	r.area("window").passed++
	r.area("store").skipped++
	r.area("window").failed++
	r.note(trace{Name: "kv--r1", Area: "store"}, "not run: %s", "no shape")
	want := "area                   passed failed skipped\n" +
		"store                       0      0       1\n" +
		"window                      1      1       0\n" +
		"all                         1      1       1\n" +
		"store/kv--r1: not run: no shape\n"
	if got := r.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
