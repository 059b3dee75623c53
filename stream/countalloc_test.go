package stream

import (
	"context"
	"encoding/binary"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/state"
	"github.com/semelstream/semel/stream/internal/runtime"
)

// A counting is a count by key through its store, with the steps of a
// transaction that are not Kafka's.
type counting struct {
	tb   testing.TB
	in   runtime.Instance
	task *runtime.Task
	db   *state.DB
	recs []*kgo.Record
	next int64 // position in the changelog
}

func newCounting(tb testing.TB, keys int) *counting {
	tb.Helper()
	top, err := Build(func(b *Builder) {
		b.Stream(texts).GroupByKey().Count("counts").To(NewTopic("counts", codec.String, codec.Int64))
	})
	if err != nil {
		tb.Fatal(err)
	}
	db, err := state.Open(state.NewMemory(), state.Options{Stores: []state.Spec{{Name: "counts"}}})
	if err != nil {
		tb.Fatal(err)
	}
	c := &counting{tb: tb, db: db}
	c.task = runtime.NewTask(runtime.TaskConfig{
		Sub: top.graph.Subs[0], Context: context.Background(), App: rigApp, DB: db,
		Partitions: func(string) int32 { return 4 },
	})
	if c.in, err = top.withApp(rigApp).Open(c.task); err != nil {
		tb.Fatal(err)
	}
	for i := range keys {
		key := binary.BigEndian.AppendUint64(make([]byte, 8), uint64(i))
		c.recs = append(c.recs, &kgo.Record{Topic: "texts", Key: key, Value: make([]byte, 100), Timestamp: time.UnixMilli(1)})
	}
	return c
}

// push counts every key once.
func (c *counting) push() {
	for _, r := range c.recs {
		if err := c.in.Push(0, r); err != nil {
			c.tb.Fatal(err)
		}
	}
}

// commit sends the results and the changelog nowhere.
func (c *counting) commit() {
	if err := c.in.Flush(); err != nil {
		c.tb.Fatal(err)
	}
	if err := c.db.Changes(func(*state.Part, []byte, []byte, int64) error { c.next++; return nil }); err != nil {
		c.tb.Fatal(err)
	}
	c.task.Take()
	c.db.Committed(func(*state.Part) (int64, bool) { return c.next, true })
}

func TestACountByKeyAllocatesNothing(t *testing.T) {
	c := newCounting(t, 1000)
	c.push() // the keys become rows
	c.commit()
	c.push() // the transaction's lists grow
	if n := testing.AllocsPerRun(100, c.push); n != 0 {
		t.Errorf("%v allocations per %d records, want 0", n, len(c.recs))
	}
	c.commit()
	n := c.next
	c.push()
	c.commit()
	if c.next != n+1000 {
		t.Errorf("%d changes of 1000 keys", c.next-n)
	}
}

func BenchmarkCountByKey(b *testing.B) {
	c := newCounting(b, 1000)
	c.push()
	c.commit()
	b.ReportAllocs()
	for b.Loop() { // 100 records of a key per transaction
		for range 100 {
			c.push()
		}
		c.commit()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*100*len(c.recs)), "ns/record")
}
