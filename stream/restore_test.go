package stream_test

import (
	"maps"
	"testing"
	"time"

	"github.com/semelstream/semel/internal/seam"
	"github.com/semelstream/semel/stream"
)

// totals adds up the rows of a table, whose changelog is its input: a row that
// changes takes back what it was.
func totals(b *stream.Builder) {
	b.Table(failIn, "rows").
		GroupBy(func(_ string, v int64) (string, int64) { return "all", v }).
		Reduce("totals", func(a, b int64) int64 { return a + b }, func(a, b int64) int64 { return a - b }).
		To(failSums)
}

// The table's changelog goes on behind the committed offset. What is there was
// not processed yet: a table that had it already would take back the new value.
func TestATableIsRestoredToItsCommittedOffsetAndNoFurther(t *testing.T) {
	f := newFailing(t)
	f.w.CreateTopic("in", 1, map[string]string{"cleanup.policy": "compact"})
	total := func(n int64) { f.until("the total", func() bool { return f.sums()["all"] == n }) }
	f.topics(1, "sums").start(totals).add("a", 1)
	total(1)
	f.w.Kill(f.p)
	f.p.Disk().Wipe()
	f.add("a", 5)
	f.restart()
	total(5)
}

// A changelog whose beginning was deleted behind the position of the store is
// restored from what is left, into an empty store, and the log says why.
func TestAStoreBeforeTheStartOfItsChangelogIsEmptiedAndTheLogSaysWhy(t *testing.T) {
	f := newFailing(t).topics(1, "in", "sums").start(sums).add("a", 1).processed()
	f.w.Advance(time.Second) // it is stored
	f.add("b", 1).processed()
	f.w.Kill(f.p)
	f.w.DeleteRecords(seam.TP{Topic: failApp + "-sums-changelog"}, 4)
	f.restart().add("a", 1).add("b", 1).processed()
	if got, want := f.sums(), map[string]int64{"a": 1, "b": 1}; !maps.Equal(got, want) { // of what was deleted nothing is left
		t.Errorf("results are %v, want %v", got, want)
	}
	if !f.logs.has("is before the changelog's start") {
		t.Error("the log does not say why")
	}
}
