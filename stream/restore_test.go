package stream_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/internal/seam"
	"github.com/semelstream/semel/state"
	"github.com/semelstream/semel/stream"
	"github.com/semelstream/semel/stream/internal/runtime"
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

// A changelog of windows holds many that have expired. None of them is read when
// a store begins empty, and all that are kept are there.
func TestRST15NoExpiredWindowIsRestored(t *testing.T) {
	f := newFailing(t).topics(1, "in", "sums")
	read, done := int64(0), false
	f.cfg.Hooks.Restore = func(r runtime.Restore) { read, done = max(read, r.Records), r.Done }
	f.start(func(b *stream.Builder) {
		b.Stream(failIn).GroupByKey().
			Windowed(stream.Tumbling(10*time.Millisecond, 0)).
			Count("counts", stream.Retain(100*time.Millisecond)).
			ToStream(func(w stream.Windowed[string]) string { return w.Key }).To(failSums)
	})
	add := func(ms int64) {
		v, _ := codec.Int64.Append(nil, 1)
		if _, err := f.w.Produce(seam.TP{Topic: "in"}, []byte("k"), v, time.UnixMilli(ms)); err != nil {
			t.Fatal(err)
		}
	}
	for ms := int64(0); ms <= 1000; ms += 10 {
		add(ms)
	}
	f.processed()
	f.w.Kill(f.p)
	f.p.Disk().Wipe()
	f.restart()
	add(1005)
	f.processed()
	if read != 10 || !done {
		t.Errorf("%d records were restored, want 10", read)
	}
	var got []int64
	for _, db := range f.app.Stores("counts") {
		v, err := state.WindowViewOf[string, int64](db, "counts")
		if err != nil {
			t.Fatal(err)
		}
		for row, err := range v.All() {
			if err != nil {
				t.Fatal(err)
			}
			if want := row.Start + row.Value/2*5; row.Time != want { // the last one has two records
				t.Errorf("the window at %d has time %d, want %d", row.Start, row.Time, want)
			}
			got = append(got, row.Start)
		}
	}
	if want := []int64{910, 920, 930, 940, 950, 960, 970, 980, 990, 1000}; !slices.Equal(got, want) {
		t.Errorf("windows %v, want %v", got, want)
	}
}

// Many ids are in one record of the changelog, and each is remembered when the
// disk is lost. Those that have expired are not even read.
func TestRST15IDsAreRestoredFromTheirBundles(t *testing.T) {
	const generations, ids, ttl, perRecord = 10, 700, 1000, 150
	f := newFailing(t).topics(1, "in", "sums")
	restored, done := int64(0), false
	f.cfg.Hooks.Restore = func(r runtime.Restore) { restored, done = max(restored, r.Records), r.Done }
	f.start(func(b *stream.Builder) {
		b.Stream(failIn).Dedup("seen", func(k string, _ int64) string { return k }, ttl*time.Millisecond).To(failSums)
	})
	add := func(generation, v int64) {
		value, _ := codec.Int64.Append(nil, v)
		for i := range int64(ids) {
			at := time.UnixMilli(generation*ttl + i%3)
			if _, err := f.w.Produce(seam.TP{Topic: "in"}, fmt.Append(nil, generation, "-", i), value, at); err != nil {
				t.Fatal(err)
			}
		}
	}
	for n := range int64(generations) {
		add(n, 1)
	}
	f.processed()
	if n := len(f.w.Read(seam.TP{Topic: failApp + "-seen-changelog"}, 0)); n < 2 || n > generations*ids/perRecord {
		t.Errorf("%d ids are in %d records", generations*ids, n)
	}
	f.w.Kill(f.p)
	f.p.Disk().Wipe()
	f.restart()
	add(generations-1, 2)
	f.processed()
	if restored < 2 || restored > 3*ids/perRecord || !done { // the stretches that a record may be compared with
		t.Errorf("%d records were restored", restored)
	}
	sums := f.sums()
	for i := range ids {
		if v := sums[fmt.Sprint(generations-1, "-", i)]; v != 1 {
			t.Fatalf("id %d passed with %d", i, v)
		}
	}
}
