package stream_test

import (
	"slices"
	"testing"
	"time"

	"github.com/semelstream/semel/stream"
)

// A version that asks for final results finds rows of one that did not. Theirs is
// the way of a suppress that Kafka Streams puts behind an aggregate with rows: what
// closes from now on is sent.
func TestFinalOfAStoreWithRowsSendsWhatClosesFromThenOn(t *testing.T) {
	keep := stream.Retain(time.Hour)
	for name, counted := range map[string]func(stream.Grouped[string, int64]) stream.WindowedTable[string, int64]{
		"time windows": func(g stream.Grouped[string, int64]) stream.WindowedTable[string, int64] {
			return g.Windowed(stream.Tumbling(10*ms, 5*ms)).Count("counts", keep)
		},
		"sliding windows": func(g stream.Grouped[string, int64]) stream.WindowedTable[string, int64] {
			return g.Windowed(stream.Sliding(4*ms, 5*ms)).Count("counts", keep)
		},
		"sessions": func(g stream.Grouped[string, int64]) stream.WindowedTable[string, int64] {
			return g.Sessions(4*ms, 1*ms).Count("counts", keep)
		},
	} {
		for _, lost := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				before := func(b *stream.Builder) { counted(b.Stream(failIn).GroupByKey()) }
				after := func(b *stream.Builder) {
					counted(b.Stream(failIn).GroupByKey()).Final().
						ToStream(func(w stream.Windowed[string]) string { return w.Key }).To(failSums)
				}
				f := newFailing(t).topics(1, "in", "sums").start(before)
				f.at("in", 0, "closed", 0, 1).at("in", 0, "open", 0, 17).processed()
				f.at("in", 0, "open", 0, 18).processed()
				f.w.Advance(10 * time.Second) // rows are on disk
				f.w.Kill(f.p)
				if lost {
					f.p.Disk().Wipe()
				}
				f.instead(after).at("in", 0, "end", 0, 19).processed()
				if got := f.sums(); len(got) != 0 {
					t.Errorf("sent by the first record: %v", got)
				}
				f.w.Kill(f.p) // once more, without a disk, now that the time is kept
				f.instead(after).at("in", 0, "end", 0, 100).processed()
				want := []string{"end=1", "open=2"}
				if name == "sliding windows" { // one ends with each record, and one begins behind the first
					want = []string{"end=1", "open=1", "open=1", "open=2"}
				}
				if got := f.sent(); !slices.Equal(got, want) {
					t.Errorf("sent: %v, want %v", got, want)
				}
			})
		}
	}
}
