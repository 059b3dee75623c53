package seamtest

import (
	"errors"
	"fmt"
	"time"

	"github.com/semelstream/semel/internal/seam"
)

var reading = suite{
	{"positions pass trailing markers and aborted tails", func(c *kase) {
		out := c.tp()
		x := c.txn(c.name("txn"))
		c.transact(x, true, out, "1")
		c.equal(c.read(out, 0), []string{"1"}) // read waits until Next is at the end
		c.transact(x, false, out, "gone", "gone")
		c.transact(x, false, out, "gone")
		c.equal(c.read(out, 0), []string{"1"})
		c.equal(c.read(out, 2), nil)
	}},
	{"Ends count open transactions, Stable does not", func(c *kase) {
		out := c.tp()
		c.put(out, "1")
		const was = 2
		c.settle(out, was)
		x := c.txn(c.name("txn"))
		c.begin(x, out, "2", "3")
		c.ok(x.Prepare(c.ctx, seam.Member{}, nil))
		if end, stable := c.ending(out), c.stable(out); end != was+2 || stable != was {
			c.Fatalf("end %d, stable %d, want %d and %d", end, stable, was+2, was)
		}
		c.ok(x.End(c.ctx, true))
		c.settle(out, was+3)
	}},
	{"a restore waits for the open transaction at the tail", func(c *kase) {
		for _, commit := range []bool{true, false} {
			out := c.tp()
			c.put(out, "1")
			c.settle(out, 2)
			x := c.txn(c.name("txn"))
			c.begin(x, out, "2")
			c.ok(x.Prepare(c.ctx, seam.Member{}, nil))
			end := c.ending(out)
			r := c.consumer()
			r.Assign(out, 0)
			at, got := int64(0), []string(nil)
			poll := func(wait time.Duration) {
				batches, err := r.Poll(c.ctx, 100, wait)
				c.ok(err)
				for _, b := range batches {
					at = b.Next
					for _, rec := range b.Records {
						got = append(got, string(rec.Value))
					}
				}
			}
			c.await("what is stable was read", func() bool { poll(time.Second); return at == end-1 })
			poll(200 * time.Millisecond)
			if at != end-1 {
				c.Fatalf("position %d with an open transaction at %d", at, end-1)
			}
			c.ok(x.End(c.ctx, commit))
			c.await("the position is at the end", func() bool { poll(time.Second); return at >= end })
			want := []string{"1"}
			if commit {
				want = append(want, "2")
			}
			c.equal(got, want)
		}
	}},
	{"a batch knows what is stable", func(c *kase) {
		out := c.tp()
		c.put(out, "1", "2", "3")
		const end = 4
		c.settle(out, end)
		r := c.consumer()
		r.Assign(out, 0)
		for at := int64(0); at < end; {
			batches, err := r.Poll(c.ctx, 1, time.Second)
			c.ok(err)
			for _, b := range batches {
				if b.Stable != -1 && (b.Stable < b.Next || b.Stable > end) {
					c.Fatalf("stable %d at position %d of %d", b.Stable, b.Next, end)
				}
				if b.Next <= at || len(b.Records) > 1 {
					c.Fatalf("%d records, position %d after %d", len(b.Records), b.Next, at)
				}
				at = b.Next
			}
		}
	}},
	{"records come in order from many partitions, each once", func(c *kase) {
		topic := c.topic(4)
		r := c.consumer()
		x := c.txn(c.name("txn"))
		ends := map[seam.TP]int64{}
		for p := range int32(4) {
			tp := seam.TP{Topic: topic, Partition: p}
			for i := range 5 {
				c.transact(x, i != 2, tp, fmt.Sprint(2*i), fmt.Sprint(2*i+1))
			}
			ends[tp] = 15
			c.settle(tp, ends[tp])
			r.Assign(tp, 0)
		}
		at, got := map[seam.TP]int64{}, map[seam.TP][]string{}
		c.await("all is read", func() bool {
			batches, err := r.Poll(c.ctx, 7, time.Second)
			c.ok(err)
			n := 0
			for _, b := range batches {
				n += len(b.Records)
				for _, rec := range b.Records {
					if rec.Offset < at[b.TP] || rec.Offset >= b.Next {
						c.Fatalf("offset %d in a batch from %d to %d", rec.Offset, at[b.TP], b.Next)
					}
					got[b.TP] = append(got[b.TP], string(rec.Value))
				}
				at[b.TP] = b.Next
			}
			if n > 7 {
				c.Fatalf("%d records, at most 7 were asked for", n)
			}
			for tp, end := range ends {
				if at[tp] < end {
					return false
				}
			}
			return true
		})
		for tp := range ends {
			c.equal(got[tp], []string{"0", "1", "2", "3", "6", "7", "8", "9"})
		}
	}},
	{"nothing leaks after Unassign, or Assign elsewhere", func(c *kase) {
		a, b := c.tp(), c.tp()
		c.put(a, "1", "2", "3", "4")
		c.put(b, "5", "6")
		r := c.consumer()
		r.Assign(a, 0)
		r.Assign(b, 0)
		c.await("something is read, and the rest is buffered", func() bool {
			batches, err := r.Poll(c.ctx, 1, time.Second)
			c.ok(err)
			return len(batches) > 0
		})
		r.Unassign(b)
		r.Assign(a, 2)
		got, _ := c.readTo(r, a, c.ending(a)) // complains about any other partition
		c.equal(got, []string{"3", "4"})
		r.Unassign(a)
		r.Assign(b, 1)
		got, _ = c.readTo(r, b, c.ending(b))
		c.equal(got, []string{"6"})
	}},
	{"what is produced later wakes a Poll that waits", func(c *kase) {
		out := c.tp()
		r := c.consumer()
		r.Assign(out, 0)
		c.Go("producer", func() {
			x, err := c.Broker.Txn(c.ctx, c.name("txn"))
			if err == nil {
				err = x.Add(c.ctx, []seam.TP{out})
			}
			if err == nil {
				x.Produce(records(out, "1"))
				err = x.Prepare(c.ctx, seam.Member{}, nil)
			}
			if err == nil {
				err = x.End(c.ctx, true)
			}
			if err != nil {
				c.Error(err)
				return
			}
			x.Close()
		})
		batches, err := r.Poll(c.ctx, 10, patience)
		c.ok(err)
		if len(batches) != 1 || len(batches[0].Records) != 1 {
			c.Fatalf("read %v", batches)
		}
	}},
	{"Wake wakes a Poll that waits, or the next one", func(c *kase) {
		r := c.consumer()
		r.Assign(c.tp(), 0)
		for _, first := range []bool{true, false} {
			begin := c.Clock.Now()
			if first {
				r.Wake()
			} else {
				c.Go("waker", func() { r.Wake() })
			}
			batches, err := r.Poll(c.ctx, 10, patience)
			c.ok(err)
			if took := c.Clock.Now().Sub(begin); batches != nil || took > patience/2 {
				c.Fatalf("read %v after %v", batches, took)
			}
		}
	}},
	{"Poll ends with its context", func(c *kase) {
		r := c.consumer()
		r.Assign(c.tp(), 0)
		ctx, cancel := withCancel(c)
		c.Go("canceler", cancel)
		begin := c.Clock.Now()
		batches, _ := r.Poll(ctx, 10, patience)
		if took := c.Clock.Now().Sub(begin); batches != nil || took > patience/2 {
			c.Fatalf("read %v after %v", batches, took)
		}
	}},
	{"a position out of range is an error about its partition", func(c *kase) {
		out, other := c.tp(), c.tp()
		c.put(out, "1", "2", "3")
		c.put(other, "4")
		c.ok(c.Broker.Purge(c.ctx, map[seam.TP]int64{out: 2}))
		for _, at := range []int64{0, 1_000_000} {
			r := c.consumer()
			r.Assign(out, at)
			var pe *seam.PartitionError
			c.await(fmt.Sprintf("an error for position %d", at), func() bool {
				batches, err := r.Poll(c.ctx, 10, time.Second)
				if len(batches) > 0 {
					c.Fatalf("read %v", batches)
				}
				if err != nil && !errors.As(err, &pe) {
					c.Fatal(err)
				}
				return err != nil
			})
			if pe.TP != out {
				c.Fatalf("the error is about %v", pe.TP)
			}
			r.Unassign(out)
			r.Assign(other, 0)
			got, _ := c.readTo(r, other, c.ending(other))
			c.equal(got, []string{"4"})
		}
	}},
}
