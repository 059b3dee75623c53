package demo

import (
	"errors"
	"strings"
	"testing"

	"github.com/semelstream/semel/stream"
)

func TestLastReportIsWhatTheProcessDid(t *testing.T) {
	var out strings.Builder
	r := NewReporter(&out)
	r.OnTransaction(0, 10, 0, nil)
	r.OnTransaction(0, 5, 0, errors.New("fenced"))
	r.OnRestore(stream.Restore{})
	r.OnRestore(stream.Restore{Done: true})
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	got, ok := parse(lines[len(lines)-1])
	if want := (counters{commits: 1, aborts: 1, records: 10, stores: 1}); !ok || got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if len(lines) != 3 {
		t.Errorf("%d lines, want one for each change: 3", len(lines))
	}
}

func TestReportThatWasCutIsLeftOut(t *testing.T) {
	if c, ok := parse("12 3 "); ok {
		t.Errorf("got %+v", c)
	}
}
