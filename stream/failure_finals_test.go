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

// A Final that was taken out and put back is a new one, with its disk and without:
// what closed in between is not sent.
func TestFinalThatIsPutBackBeginsAnew(t *testing.T) {
	counted := func(b *stream.Builder) stream.WindowedTable[string, int64] {
		return b.Stream(failIn).GroupByKey().Windowed(stream.Tumbling(10*ms, 5*ms)).Count("counts", stream.Retain(time.Hour))
	}
	without := func(b *stream.Builder) { counted(b) }
	with := func(b *stream.Builder) {
		counted(b).Final().ToStream(func(w stream.Windowed[string]) string { return w.Key }).To(failSums)
	}
	for _, lost := range []bool{false, true} {
		name := "kept disk"
		if lost {
			name = "lost disk"
		}
		t.Run(name, func(t *testing.T) {
			f := newFailing(t).topics(1, "in", "sums").start(with)
			f.at("in", 0, "first", 0, 1).at("in", 0, "open", 0, 17).processed()
			f.w.Advance(10 * time.Second) // the times are on disk
			f.w.Kill(f.p)
			f.instead(without).at("in", 0, "between", 0, 30).at("in", 0, "later", 0, 60).processed()
			f.w.Advance(10 * time.Second)
			f.w.Kill(f.p)
			if lost {
				f.p.Disk().Wipe()
			}
			f.instead(with).at("in", 0, "end", 0, 61).processed()
			f.at("in", 0, "last", 0, 90).processed()
			if got, want := f.sent(), []string{"end=1", "first=1", "later=1"}; !slices.Equal(got, want) {
				t.Errorf("sent: %v, want %v", got, want)
			}
		})
	}
}
