package kafka

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/semelstream/semel/internal/seam"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

func (w world) consumer(t testing.TB, b *broker) *consumer {
	c := must[seam.Consumer](t)(b.Consumer(ctx(t)))
	t.Cleanup(c.Close)
	return c.(*consumer)
}

func TestPollLeavesOutMarkersAndAbortedRecordsButMovesPastThem(t *testing.T) {
	everywhere(t, func(t *testing.T, w world) {
		b := w.broker(t)
		p := tp(w.topic(t, b, 1), 0)
		x := w.txn(t, b, uid("id"))
		transact(t, x, true, rec(p.Topic, 0, "a"), rec(p.Topic, 0, "b"))
		transact(t, x, false, rec(p.Topic, 0, "never"))
		transact(t, x, true, rec(p.Topic, 0, "c"))
		transact(t, x, false, rec(p.Topic, 0, "never either"))
		end := must[map[seam.TP]int64](t)(b.Ends(ctx(t), []seam.TP{p}))[p]
		c := w.consumer(t, b)
		c.Assign(p, 0)
		if got, want := read(t, c, p, 9), []string{"a", "b", "c"}; !slices.Equal(got, want) {
			t.Fatalf("read %q, want %q", got, want)
		}
		if end > 9 {
			t.Fatalf("the end is %d", end)
		}
	})
}

func TestPollWaitsAtAnOpenTransactionAndSaysWhereItIsStable(t *testing.T) {
	everywhere(t, func(t *testing.T, w world) {
		b := w.broker(t)
		p := tp(w.topic(t, b, 1), 0)
		x := w.txn(t, b, uid("id"))
		transact(t, x, true, rec(p.Topic, 0, "a"))
		y := w.txn(t, b, uid("id"))
		open(t, y, rec(p.Topic, 0, "b"))
		ok(t, y.Prepare(ctx(t), seam.Member{}, nil))
		w.produce(t, rec(p.Topic, 0, "c")) // plain, but behind the open one
		c := w.consumer(t, b)
		c.Assign(p, 0)
		var got []seam.Batch
		for at := int64(0); at < 2; {
			bs, err := c.Poll(ctx(t), 10, 10*time.Second)
			ok(t, err)
			got = append(got, slices.Clone(bs)...)
			at = bs[len(bs)-1].Next
		}
		if last := got[len(got)-1]; last.Next != 2 || last.Stable != 2 {
			t.Fatalf("next %d, stable %d; want 2, 2", last.Next, last.Stable)
		}
		stable := must[map[seam.TP]int64](t)(b.Stable(ctx(t), []seam.TP{p}))[p]
		end := must[map[seam.TP]int64](t)(b.Ends(ctx(t), []seam.TP{p}))[p]
		if stable != 2 || end != 4 {
			t.Fatalf("stable %d, end %d; want 2, 4", stable, end)
		}
		bs, err := c.Poll(ctx(t), 10, 150*time.Millisecond)
		if bs != nil || err != nil {
			t.Fatalf("read on: %v, %v", bs, err)
		}
		ok(t, y.End(ctx(t), true))
		if got := read(t, c, p, 5); !slices.Equal(got, []string{"b", "c"}) {
			t.Fatalf("read %q", got)
		}
	})
}

func TestReassignedPartitionsLeakNothing(t *testing.T) {
	everywhere(t, func(t *testing.T, w world) {
		b := w.broker(t)
		topic := w.topic(t, b, 2)
		const n = 3000
		w.produce(t, append(recs(topic, 0, n), recs(topic, 1, n)...)...)
		c := w.consumer(t, b)
		p, other := tp(topic, 0), tp(topic, 1)
		next := map[seam.TP]int64{p: 2000, other: 0}
		c.Assign(p, 2000)
		c.Assign(other, 0)
		poll := func() {
			t.Helper()
			bs, err := c.Poll(ctx(t), 7, 50*time.Millisecond)
			ok(t, err)
			for _, b := range bs {
				want, assigned := next[b.TP]
				if !assigned {
					t.Fatalf("%v is not assigned", b.TP)
				}
				for _, r := range b.Records {
					if r.Offset != want {
						t.Fatalf("%v: offset %d, want %d", b.TP, r.Offset, want)
					}
					want++
				}
				next[b.TP] = b.Next
			}
		}
		for i := range 12 { // buffers are full of what must not come
			poll()
			at := int64(i * 1237 % n)
			if i%3 == 0 {
				c.Unassign(p)
				delete(next, p)
				poll()
				c.Assign(p, at)
			} else {
				c.Assign(p, at) // while assigned
			}
			next[p] = at
			for next[p] == at { // until the new position has been read from
				poll()
			}
		}
		for next[other] < n || next[p] < n {
			poll()
		}
	})
}

func TestWakeMakesAPollReturn(t *testing.T) {
	everywhere(t, func(t *testing.T, w world) {
		b := w.broker(t)
		c := w.consumer(t, b)
		c.Assign(tp(w.topic(t, b, 1), 0), 0)
		for range 20 {
			in := make(chan time.Time)
			go func() { in <- time.Now(); c.Wake() }() // before, in or after the wait
			<-in
			start := time.Now()
			bs, err := c.Poll(ctx(t), 10, 20*time.Second)
			if d := time.Since(start); bs != nil || err != nil || d > time.Second {
				t.Fatalf("%v, %v after %v", bs, err, d)
			}
		}
		c.Wake()
		start := time.Now()
		if bs, err := c.Poll(ctx(t), 10, 20*time.Second); bs != nil || err != nil || time.Since(start) > time.Second {
			t.Fatalf("a Wake before the Poll: %v, %v after %v", bs, err, time.Since(start))
		}
		start = time.Now()
		_, err := c.Poll(ctx(t), 10, 50*time.Millisecond)
		if ok(t, err); time.Since(start) < 50*time.Millisecond {
			t.Fatal("one Wake woke two Polls")
		}
	})
}

func TestPollReturnsTheContextsError(t *testing.T) {
	w := fake(t)
	c := w.consumer(t, w.broker(t))
	cancelled, cancel := context.WithCancel(context.Background())
	go cancel()
	if _, err := c.Poll(cancelled, 10, 20*time.Second); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
}

func TestOutOfRangeIsAPartitionErrorAndOthersGoOn(t *testing.T) {
	everywhere(t, func(t *testing.T, w world) {
		b := w.broker(t)
		topic := w.topic(t, b, 2)
		w.produce(t, append(recs(topic, 0, 5), recs(topic, 1, 5)...)...)
		c := w.consumer(t, b)
		bad, good := tp(topic, 0), tp(topic, 1)
		c.Assign(bad, 99)
		c.Assign(good, 0)
		var pe *seam.PartitionError
		for n := 0; n < 5 || pe == nil; {
			bs, err := c.Poll(ctx(t), 10, 10*time.Second)
			if err != nil {
				if !errors.As(err, &pe) || pe.TP != bad || !errors.Is(err, kerr.OffsetOutOfRange) {
					t.Fatal(err)
				}
				continue
			}
			if bs == nil {
				t.Fatal("nothing more came")
			}
			for _, b := range bs {
				if b.TP != good {
					t.Fatal(b.TP)
				}
				n += len(b.Records)
			}
		}
		c.Unassign(good)
		c.Assign(bad, 3)
		if got := read(t, c, bad, 5); !slices.Equal(got, []string{"v3", "v4"}) {
			t.Fatalf("after a new Assign: %q", got)
		}
	})
}

func TestAddedPartitionIsReadSoon(t *testing.T) {
	w := realKafka(t)
	b := w.broker(t)
	topic := w.topic(t, b, 2)
	w.produce(t, recs(topic, 1, 1)...)
	c := w.consumer(t, b)
	c.Assign(tp(topic, 0), 0)
	var took []time.Duration
	for range 15 {
		bs, err := c.Poll(ctx(t), 10, 130*time.Millisecond) // an idle fetch is in flight
		if ok(t, err); bs != nil {
			t.Fatal(bs)
		}
		start := time.Now()
		c.Assign(tp(topic, 1), 0)
		read(t, c, tp(topic, 1), 1)
		took = append(took, time.Since(start))
		c.Unassign(tp(topic, 1))
	}
	slices.Sort(took)
	t.Logf("an added partition was read after %v (median), %v (longest)", took[len(took)/2], took[len(took)-1])
	if took[len(took)/2] > 150*time.Millisecond {
		t.Fatal("that is too long")
	}
}

// What kgo gives is turned into batches without copying and without allocating.
func TestBatchesOfDataAllocateNothing(t *testing.T) {
	c := newConsumer(nil)
	p := tp("in", 0)
	data := recs("in", 0, 100)
	for i, r := range data {
		r.Offset = int64(i)
	}
	fs := kgo.Fetches{{Topics: []kgo.FetchTopic{{Topic: "in", Partitions: []kgo.FetchPartition{{Partition: 0, LastStableOffset: 100, Records: data}}}}}}
	n := testing.AllocsPerRun(100, func() {
		c.assigned[p] = 0
		if bs := c.batches(fs); len(bs) != 1 || len(bs[0].Records) != 100 || bs[0].Next != 100 {
			t.Fatal(bs)
		}
	})
	if n != 0 {
		t.Fatalf("%v allocations", n)
	}
}

func TestRecordsThatComeAgainAreAnErrorNotABatch(t *testing.T) {
	c := newConsumer(nil)
	c.assigned[tp("in", 0)] = 10
	fetch := func(offset int64) kgo.Fetches {
		return kgo.Fetches{{Topics: []kgo.FetchTopic{{Topic: "in", Partitions: []kgo.FetchPartition{{Records: []*kgo.Record{{Topic: "in", Offset: offset}}}}}}}}
	}
	if bs := c.batches(fetch(9)); len(bs) != 0 {
		t.Fatal(bs)
	}
	var pe *seam.PartitionError
	if err := c.failure(); !errors.As(err, &pe) || pe.TP != tp("in", 0) {
		t.Fatal(err)
	}
	if bs := c.batches(fetch(12)); len(bs) != 1 || bs[0].Next != 13 { // a gap is compaction
		t.Fatal(bs)
	}
	delete(c.assigned, tp("in", 0))
	if bs := c.batches(fetch(13)); len(bs) != 0 || c.failure() != nil {
		t.Fatal(bs)
	}
}

// An error is reported once, after what came with it, and never of a
// partition that is assigned no more.
func TestErrorsOfUnassignedPartitionsAreForgotten(t *testing.T) {
	w := fake(t)
	c := w.consumer(t, w.broker(t))
	p, q := tp("in", 0), tp("in", 1)
	c.Assign(p, 5)
	c.Assign(q, 5)
	c.fail("in", 0, kerr.OffsetOutOfRange)
	c.fail("in", 1, kerr.OffsetOutOfRange)
	c.fail("in", 1, kerr.NotLeaderForPartition) // kgo finds the new one
	c.fail("in", 7, kerr.OffsetOutOfRange)      // not assigned
	c.Unassign(p)
	var pe *seam.PartitionError
	if _, err := c.Poll(ctx(t), 1, 0); !errors.As(err, &pe) || pe.TP != q {
		t.Fatal(err)
	}
	if _, err := c.Poll(ctx(t), 1, 0); err != nil {
		t.Fatal(err)
	}
	c.fail("in", -1, kerr.TopicAuthorizationFailed) // about the topic
	if _, err := c.Poll(ctx(t), 1, 0); !errors.As(err, &pe) || pe.TP != q || !errors.Is(err, kerr.TopicAuthorizationFailed) {
		t.Fatal(err)
	}
}
