package stream

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/internal/seam"
	"github.com/semelstream/semel/state"
	"github.com/semelstream/semel/stream/internal/runtime"
)

// hot is a topology's only task, fed by hand, without a broker: what our own
// code costs per record.
type hot struct {
	task *runtime.Task
	in   runtime.Instance
	db   *state.DB
}

func newHot(tb testing.TB, define func(*Builder)) *hot {
	topology, err := Build(define)
	if err != nil {
		tb.Fatal(err)
	}
	t := topology.withApp("hot")
	sub := t.Graph().Subs[0]
	var specs []state.Spec
	for _, s := range sub.Stores {
		specs = append(specs, runtime.StoreSpec(s))
	}
	db, err := state.Open(state.NewMemory(), state.Options{Stores: specs})
	if err != nil {
		tb.Fatal(err)
	}
	h := &hot{db: db}
	h.task = runtime.NewTask(runtime.TaskConfig{
		ID: seam.Task{}, Sub: sub, Context: context.Background(), DB: db, Wall: time.Now, App: "hot",
		Partitions: func(string) int32 { return 4 }, Dropped: func(string, string) {},
	})
	if h.in, err = t.Open(h.task); err != nil {
		tb.Fatal(err)
	}
	return h
}

// records are n records of 16 byte keys, of which there are so many, and 100
// byte values.
func hotRecords(n, keys int) []*kgo.Record {
	r := rand.New(rand.NewPCG(1, 2))
	value := make([]byte, 100)
	out := make([]*kgo.Record, n)
	for i := range out {
		k := r.Uint64N(uint64(keys))
		key := binary.BigEndian.AppendUint64(nil, k*0x9E3779B97F4A7C15)
		out[i] = &kgo.Record{Topic: "in", Key: binary.BigEndian.AppendUint64(key, k), Value: value, Timestamp: time.UnixMilli(int64(i)), Offset: int64(i)}
	}
	return out
}

func (h *hot) push(tb testing.TB, r *kgo.Record) {
	ms, ok := h.in.Time(0, r)
	if !ok {
		tb.Fatal("no time")
	}
	if err := h.task.Process(h.in, 0, r, ms); err != nil {
		tb.Fatal(err)
	}
}

func hotCount(b *Builder) {
	b.Stream(NewTopic("in", codec.Bytes, codec.Bytes)).GroupByKey().Count("counts").
		To(NewTopic("out", codec.Bytes, codec.Int64))
}

func BenchmarkKeyCount(b *testing.B) { benchHot(b, hotCount) }

// benchHot is what a topology with a store costs per record of 100 k keys.
func benchHot(b *testing.B, define func(*Builder)) {
	h := newHot(b, define)
	recs := hotRecords(1<<18, 100_000)
	for _, r := range recs {
		h.push(b, r)
	}
	h.db.Committed(func(*state.Part) (int64, bool) { return 0, false })
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
			b.StartTimer()
		}
	}
}

func BenchmarkPassThrough(b *testing.B) {
	h := newHot(b, func(b *Builder) {
		b.Stream(NewTopic("in", codec.Bytes, codec.Bytes)).To(NewTopic("out", codec.Bytes, codec.Bytes))
	})
	recs := hotRecords(1<<14, 100_000)
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		h.push(b, recs[i&(len(recs)-1)])
		if i&0x3ff == 0x3ff {
			h.task.Reset()
		}
	}
}

func TestKeyCountAllocatesNothingPerRecord(t *testing.T) {
	h := newHot(t, hotCount)
	recs := hotRecords(1000, 100)
	i := 0
	for _, r := range recs {
		h.push(t, r)
	}
	if n := testing.AllocsPerRun(5000, func() { h.push(t, recs[i%len(recs)]); i++ }); n != 0 {
		t.Errorf("%v allocations per record", n)
	}
}
