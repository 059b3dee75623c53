package stream

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/state"
)

// What windows cost per record, to compare with BenchmarkKeyCount: 100,000
// keys, and a second of records per transaction.

func hotWindows(w Windows, final bool, opts ...WindowOption) func(*Builder) {
	return func(b *Builder) {
		n := b.Stream(NewTopic("in", codec.Bytes, codec.Bytes)).GroupByKey().Windowed(w).Count("counts", opts...)
		if final {
			n = n.Final()
		}
		n.To(NewTopic("out", WindowKey(codec.Bytes, time.Minute), codec.Int64))
	}
}

func benchmarkWindows(b *testing.B, w Windows, opts ...WindowOption) {
	h := newHot(b, hotWindows(w, true, opts...))
	recs := hotRecords(1<<18, 100_000)
	for _, r := range recs {
		r.Timestamp = time.UnixMilli(1e9 + r.Offset/100) // 100,000 records a second
		h.push(b, r)
	}
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		if i&63 == 0 {
			h.in.Touch(0, recs[i&(len(recs)-1):][:64])
		}
		h.push(b, recs[i&(len(recs)-1)])
		if i&0xffff == 0xffff {
			b.StopTimer()
			h.db.Committed(func(*state.Part) (int64, bool) { return 0, false })
			h.task.Reset()
			b.StartTimer()
		}
	}
}

func BenchmarkTumblingCount(b *testing.B) { benchmarkWindows(b, Tumbling(time.Minute, 0)) }

func BenchmarkHoppingCount10(b *testing.B) {
	benchmarkWindows(b, Hopping(time.Minute, 6*time.Second, 0))
}

func BenchmarkHoppingCount10ByPanes(b *testing.B) {
	benchmarkWindows(b, Hopping(time.Minute, 6*time.Second, 0), Panes())
}

func BenchmarkHoppingCount100ByPanes(b *testing.B) {
	benchmarkWindows(b, Hopping(time.Minute, 600*time.Millisecond, 0), Panes())
}

func TestTumblingCountAllocatesNothingPerRecord(t *testing.T) {
	for name, define := range map[string]func(*Builder){
		"tumbling": hotWindows(Tumbling(time.Minute, 0), false),
		"final":    hotWindows(Tumbling(time.Minute, 0), true),
		"hopping":  hotWindows(Hopping(time.Minute, 6*time.Second, 0), false),
		"panes":    hotWindows(Hopping(time.Minute, 6*time.Second, 0), false, Panes()),
	} {
		h := newHot(t, define)
		var recs []*kgo.Record
		for _, r := range hotRecords(1000, 100) {
			r.Timestamp = time.UnixMilli(1e6 + r.Offset) // all in one window
			recs = append(recs, r)
			h.push(t, r)
		}
		i := 0
		if n := testing.AllocsPerRun(5000, func() { h.push(t, recs[i%len(recs)]); i++ }); n != 0 {
			t.Errorf("%s: %v allocations per record", name, n)
		}
	}
}
