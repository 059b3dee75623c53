package stream

import (
	"context"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semelstream/semel/stream/internal/runtime"
)

// chain is a source, five operators and, if sink, a sink.
func chain(tb testing.TB, sink bool) (runtime.Instance, *runtime.Task) {
	top, err := Build(func(b *Builder) {
		s := b.Stream(texts).
			MapValues(func(v string) string { return v[1:] }).
			Filter(func(_, v string) bool { return v != "" }).
			MapValuesWithKey(func(k, v string) int64 { return int64(len(k) + len(v)) }).
			FlatMap(func(k string, n int64, emit func(string, int64)) { emit(k, n) }).
			Peek(func(string, int64) {})
		if sink {
			s.To(intOut)
		} else {
			s.ForEach(func(string, int64) error { return nil })
		}
	})
	if err != nil {
		tb.Fatal(err)
	}
	task := runtime.NewTask(runtime.TaskConfig{
		Sub: top.graph.Subs[0], Context: context.Background(), App: rigApp,
		Partitions: func(string) int32 { return 3 },
	})
	in, err := top.withApp(rigApp).Open(task)
	if err != nil {
		tb.Fatal(err)
	}
	return in, task
}

func chainRecord() *kgo.Record {
	return &kgo.Record{
		Topic: "texts", Key: []byte("some key"), Value: []byte("some value"), Timestamp: time.UnixMilli(1),
		Headers: []kgo.RecordHeader{{Key: "trace", Value: []byte("id")}},
	}
}

func TestAChainOfOperatorsAllocatesNothing(t *testing.T) {
	in, _ := chain(t, false)
	r := chainRecord()
	if n := testing.AllocsPerRun(1000, func() {
		if in.Push(0, r) != nil {
			t.Fatal("failed")
		}
	}); n != 0 {
		t.Errorf("%v allocations per record, want 0", n)
	}
}

func TestASinkAllocatesNothingButWhatIsStaged(t *testing.T) {
	in, task := chain(t, true)
	r := chainRecord()
	const runs = 1000
	for range 4 * runs { // let arena and staging area grow
		_ = in.Push(0, r)
	}
	n := testing.AllocsPerRun(runs, func() {
		if in.Push(0, r) != nil {
			t.Fatal("failed")
		}
	})
	// The staging area grows by halves and the record's header slice is its
	// first: at most one and a bit.
	if n > 1 {
		t.Errorf("%v allocations per record, want at most 1: the staged headers", n)
	}
	if len(task.Staged()) < 5*runs {
		t.Errorf("%d records were staged", len(task.Staged()))
	}
}

func BenchmarkChain(b *testing.B) {
	in, _ := chain(b, false)
	r := chainRecord()
	b.ReportAllocs()
	for b.Loop() {
		_ = in.Push(0, r)
	}
}
