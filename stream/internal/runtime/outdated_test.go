package runtime_test

import (
	"strings"
	"testing"
	"time"

	"github.com/semelstream/semel/stream/internal/model"
)

// Tombstones are gone from a changelog after a day; a disk that missed them
// must not be gone on from.
func TestStateThatWasAwayForLongIsRestoredFromTheBeginning(t *testing.T) {
	for _, c := range []struct {
		away time.Duration
		anew bool
	}{{17 * time.Hour, false}, {19 * time.Hour, true}} {
		s := &simRun{w: model.New(model.Config{Seed: 1, Trace: true}), workers: 1}
		for _, name := range []string{"in", "each", "sums"} {
			s.w.CreateTopic(name, simParts, nil)
		}
		s.start(t, "a")
		s.feed(50, 5*time.Second)
		if !s.w.RunUntil(s.done, time.Minute) {
			t.Fatal(s.why)
		}
		s.w.Advance(2 * time.Second) // it is on disk
		s.w.Kill(s.procs[0])
		s.w.Advance(c.away)
		before := len(s.w.Trace())
		s.procs[0].Restart()
		s.feed(50, 5*time.Second)
		if !s.w.RunUntil(s.done, time.Minute) {
			t.Fatal(s.why)
		}
		trace := strings.Join(s.w.Trace()[before:], "\n")
		if anew := strings.Contains(trace, "restoring from the beginning"); anew != c.anew {
			t.Errorf("away for %v: restored from the beginning is %v, want %v", c.away, anew, c.anew)
		}
		report(t, "after the restart", s, s.check())
		s.w.Stop()
	}
}
