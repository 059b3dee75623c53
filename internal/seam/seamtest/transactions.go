package seamtest

import (
	"fmt"
	"time"

	"github.com/semelstream/semel/internal/seam"
	"github.com/twmb/franz-go/pkg/kgo"
)

var transactions = suite{
	{"committed records and offsets become visible together", func(c *kase) {
		m, in := c.join(), c.tp()
		out := c.topic(2)
		a, b := seam.TP{Topic: out}, seam.TP{Topic: out, Partition: 1}
		x := c.txn(m.txnID())
		c.ok(x.Add(c.ctx, []seam.TP{a, b}))
		x.Produce(append(records(a, "1", "2"), records(b, "3")...))
		c.ok(x.Prepare(c.ctx, m.Member(), seam.Offsets{in: {At: 7, Epoch: -1}}))
		for _, tp := range []seam.TP{a, b} {
			if end, stable := c.ending(tp), c.stable(tp); end == 0 || stable != 0 {
				c.Fatalf("before End: %v ends at %d and is stable up to %d", tp, end, stable)
			}
		}
		r := c.consumer()
		r.Assign(a, 0)
		if batches, err := r.Poll(c.ctx, 10, 200*time.Millisecond); batches != nil || err != nil {
			c.Fatalf("before End: read %v, %v", batches, err)
		}
		c.ok(x.End(c.ctx, true))
		c.equal(c.read(a, 0), []string{"1", "2"})
		c.equal(c.read(b, 0), []string{"3"})
		if o := c.committed(m.group, in); o.At != 7 {
			c.Fatalf("committed offset is %d, want 7", o.At)
		}
	}},
	{"aborted records and offsets are never visible", func(c *kase) {
		m, in, out := c.join(), c.tp(), c.tp()
		x := c.txn(m.txnID())
		c.begin(x, out, "gone")
		c.ok(x.Prepare(c.ctx, m.Member(), seam.Offsets{in: {At: 7, Epoch: -1}}))
		c.ok(x.End(c.ctx, false))
		c.transact(x, true, out, "stays")
		c.equal(c.read(out, 0), []string{"stays"})
		c.notCommitted(m.group, in)
	}},
	{"an abort without Prepare leaves nothing behind", func(c *kase) {
		out := c.tp()
		x := c.txn(c.name("txn"))
		c.begin(x, out, "gone")
		c.ok(x.End(c.ctx, false))
		c.transact(x, true, out, "stays")
		c.equal(c.read(out, 0), []string{"stays"})
	}},
	{"End without a transaction does nothing", func(c *kase) {
		out := c.tp()
		x := c.txn(c.name("txn"))
		c.ok(x.End(c.ctx, false))
		c.transact(x, true, out, "1")
		c.ok(x.End(c.ctx, true))
		c.equal(c.read(out, 0), []string{"1"})
	}},
	{"partitions can be added to a transaction that has begun", func(c *kase) {
		out := c.topic(3)
		x := c.txn(c.name("txn"))
		for p := range int32(3) {
			tp := seam.TP{Topic: out, Partition: p}
			c.ok(x.Add(c.ctx, []seam.TP{{Topic: out}, tp}))
			x.Produce(records(tp, fmt.Sprint(p)))
		}
		c.ok(x.Prepare(c.ctx, seam.Member{}, nil))
		c.ok(x.End(c.ctx, true))
		for p := range int32(3) {
			c.equal(c.read(seam.TP{Topic: out, Partition: p}, 0), []string{fmt.Sprint(p)})
		}
	}},
	{"a transaction can begin straight after the last one", func(c *kase) {
		out := c.tp()
		x := c.txn(c.name("txn"))
		var want []string
		for i := range 20 {
			v := fmt.Sprint(i)
			c.transact(x, i%3 != 2, out, v)
			if i%3 != 2 {
				want = append(want, v)
			}
		}
		c.equal(c.read(out, 0), want)
	}},
	{"the next transaction is filled while the last one ends", func(c *kase) {
		m, in, out := c.join(), c.tp(), c.tp()
		x := c.txn(m.txnID())
		var want []string
		for i := range 6 {
			last := fmt.Sprint(i)
			c.begin(x, out, last)
			want = append(want, last)
			e := x.Open()
			x.Turn()
			c.ok(x.Add(c.ctx, []seam.TP{out})) // nothing of the next one is written yet
			c.ok(e.Prepare(c.ctx, m.Member(), seam.Offsets{in: {At: int64(2*i + 1), Epoch: -1}}))
			next := fmt.Sprint(i, " and more")
			x.Produce(records(out, next))
			c.ok(e.End(c.ctx, true))
			c.committedAt(m.group, in, int64(2*i+1))
			want = append(want, next)
			e = x.Open()
			x.Turn()
			c.ok(e.Prepare(c.ctx, m.Member(), seam.Offsets{in: {At: int64(2*i + 2), Epoch: -1}}))
			c.ok(e.End(c.ctx, true))
		}
		c.committedAt(m.group, in, 12)
		c.equal(c.read(out, 0), want)
	}},
	{"what was produced while a transaction ended goes with the Txn", func(c *kase) {
		m, in, out := c.join(), c.tp(), c.tp()
		id := m.txnID()
		x := c.txn(id)
		c.begin(x, out, "1")
		e := x.Open()
		x.Turn()
		c.ok(e.Prepare(c.ctx, m.Member(), seam.Offsets{in: {At: 1, Epoch: -1}}))
		c.begin(x, out, "never")
		c.ok(e.End(c.ctx, true))
		x.Close()
		x = c.txn(id)
		c.transact(x, true, out, "2")
		c.equal(c.read(out, 0), []string{"1", "2"})
		c.committedAt(m.group, in, 1)
	}},
	{"offsets alone are committed beside an open transaction", func(c *kase) {
		m, in, out := c.join(), c.tp(), c.tp()
		x := c.txn(m.txnID())
		for i := range int64(4) {
			e := x.Open()
			x.Turn()
			c.begin(x, out, fmt.Sprint(i))
			c.ok(e.CommitOffsets(c.ctx, m.Member(), seam.Offsets{in: {At: 2*i + 1, Epoch: -1}}))
			e = x.Open()
			x.Turn()
			c.ok(e.Prepare(c.ctx, m.Member(), seam.Offsets{in: {At: 2*i + 2, Epoch: -1}}))
			c.ok(e.End(c.ctx, true))
		}
		c.committedAt(m.group, in, 8)
		c.equal(c.read(out, 0), []string{"0", "1", "2", "3"})
	}},
	{"first records are written when ProduceFirst returns, and the others follow them", func(c *kase) {
		out := c.topic(2)
		a, b := seam.TP{Topic: out}, seam.TP{Topic: out, Partition: 1}
		x := c.txn(c.name("txn"))
		c.ok(x.Add(c.ctx, []seam.TP{a, b}))
		c.ok(x.ProduceFirst(c.ctx, append(records(a, "1"), records(b, "2")...)))
		for _, tp := range []seam.TP{a, b} {
			if end := c.ending(tp); end != 1 {
				c.Fatalf("%v ends at %d", tp, end)
			}
		}
		x.Produce(append(records(a, "3"), records(b, "4")...))
		c.ok(x.Prepare(c.ctx, seam.Member{}, nil))
		c.ok(x.End(c.ctx, true))
		c.equal(c.read(a, 0), []string{"1", "3"})
		c.equal(c.read(b, 0), []string{"2", "4"})
	}},
	{"partitions of a transaction without records stay for the next one of its producer", func(c *kase) {
		m, in, out, never := c.join(), c.tp(), c.tp(), c.tp()
		x := c.txn(m.txnID())
		c.ok(x.Add(c.ctx, []seam.TP{out, never}))
		e := x.Open()
		x.Turn()
		c.ok(e.CommitOffsets(c.ctx, m.Member(), seam.Offsets{in: {At: 7, Epoch: -1}}))
		c.committedAt(m.group, in, 7)
		for _, v := range []string{"1", "2", "3"} {
			c.transact(x, true, out, v)
		}
		c.equal(c.read(out, 0), []string{"1", "2", "3"})
		c.equal(c.read(never, 0), nil)
	}},
	{"a record's offset is known after Prepare", func(c *kase) {
		out := c.tp()
		x := c.txn(c.name("txn"))
		c.transact(x, false, out, "gone")
		recs := records(out, "1", "2", "3")
		c.ok(x.Add(c.ctx, []seam.TP{out}))
		x.Produce(recs[:2])
		x.Produce(recs[2:])
		c.ok(x.Prepare(c.ctx, seam.Member{}, nil))
		offsets := []int64{recs[0].Offset, recs[1].Offset, recs[2].Offset}
		c.ok(x.End(c.ctx, true))
		r := c.consumer()
		r.Assign(out, 0)
		_, got := c.readTo(r, out, c.ending(out))
		for i := range got {
			if got[i].Offset != offsets[i] {
				c.Fatalf("record %d has offset %d, it was said to be %d", i, got[i].Offset, offsets[i])
			}
		}
	}},
	{"keys, nulls, headers and timestamps travel", func(c *kase) {
		out := c.tp()
		at := time.UnixMilli(1_700_000_000_123)
		x := c.txn(c.name("txn"))
		c.ok(x.Add(c.ctx, []seam.TP{out}))
		x.Produce([]*kgo.Record{
			{Topic: out.Topic, Key: []byte("k"), Value: []byte("v"), Timestamp: at, Headers: []kgo.RecordHeader{{Key: "h", Value: []byte("1")}, {Key: "h", Value: nil}}},
			{Topic: out.Topic, Key: nil, Value: []byte{}, Timestamp: at},
			{Topic: out.Topic, Key: []byte{}, Value: nil, Timestamp: at},
		})
		c.ok(x.Prepare(c.ctx, seam.Member{}, nil))
		c.ok(x.End(c.ctx, true))
		r := c.consumer()
		r.Assign(out, 0)
		_, got := c.readTo(r, out, c.ending(out))
		if len(got) != 3 {
			c.Fatalf("%d records", len(got))
		}
		if string(got[0].Key) != "k" || string(got[0].Value) != "v" || got[1].Key != nil || got[1].Value == nil || got[2].Key == nil || got[2].Value != nil {
			c.Fatalf("keys or values are not what was written: %v", got)
		}
		if h := got[0].Headers; len(h) != 2 || h[0].Key != "h" || string(h[0].Value) != "1" || h[1].Value != nil {
			c.Fatalf("headers %v", h)
		}
		for _, r := range got {
			if !r.Timestamp.Equal(at) || r.Topic != out.Topic || r.Partition != 0 {
				c.Fatalf("%s/%d at %v", r.Topic, r.Partition, r.Timestamp)
			}
		}
	}},
	{"a read-process-write chain goes through one client", func(c *kase) {
		m, in, out := c.join(), c.tp(), c.tp()
		c.put(in, "1", "2", "3")
		const end = 4
		c.settle(in, end)
		x := c.txn(m.txnID())
		x.Assign(in, 0)
		for at := int64(0); at < end; {
			batches, err := x.Poll(c.ctx, 2, time.Second)
			c.ok(err)
			for _, b := range batches {
				if len(b.Records) > 2 {
					c.Fatalf("%d records, at most 2 were asked for", len(b.Records))
				}
				for _, r := range b.Records {
					c.begin(x, out, string(r.Value)+"!")
				}
				at = b.Next
				if len(b.Records) > 0 {
					c.ok(x.Prepare(c.ctx, m.Member(), seam.Offsets{in: {At: at, Epoch: b.Epoch}}))
					c.ok(x.End(c.ctx, true))
				}
			}
		}
		c.equal(c.read(out, 0), []string{"1!", "2!", "3!"})
		// The markers behind the last record need not be in a commit.
		if o := c.committed(m.group, in); o.At < 3 || o.At > end {
			c.Fatalf("committed %d, want 3 to %d", o.At, end)
		}
	}},
	{"a new Txn fences the former one with its transaction prepared", func(c *kase) {
		out, id := c.tp(), c.name("txn")
		old := c.txn(id)
		c.begin(old, out, "old")
		c.ok(old.Prepare(c.ctx, seam.Member{}, nil))
		c.txn(id)
		c.fails("End of the fenced one", old.End(c.ctx, true))
		c.fails("the second End of the fenced one", old.End(c.ctx, true))
		c.put(out, "new")
		c.equal(c.read(out, 0), []string{"new"})
	}},
	{"a new Txn fences the former one with its transaction begun", func(c *kase) {
		out, id := c.tp(), c.name("txn")
		old := c.txn(id)
		c.begin(old, out, "old")
		c.txn(id)
		// What was produced may have been written before the fence.
		if err := old.Prepare(c.ctx, seam.Member{}, nil); err == nil {
			c.fails("End of the fenced one", old.End(c.ctx, true))
		}
		c.put(out, "new")
		c.equal(c.read(out, 0), []string{"new"})
	}},
	{"a new Txn fences the former one before its transaction", func(c *kase) {
		out, id := c.tp(), c.name("txn")
		old := c.txn(id)
		c.transact(old, true, out, "before")
		now := c.txn(id)
		err := old.Add(c.ctx, []seam.TP{out})
		if err == nil {
			old.Produce(records(out, "old"))
			err = old.Prepare(c.ctx, seam.Member{}, nil)
		}
		if err == nil {
			err = old.End(c.ctx, true)
		}
		c.fails("a transaction of the fenced one", err)
		c.transact(now, true, out, "after")
		c.equal(c.read(out, 0), []string{"before", "after"})
	}},
	{"the end of a context ends a call", func(c *kase) {
		ctx, cancel := withCancel(c)
		cancel()
		if _, err := c.Broker.Txn(ctx, c.name("txn")); err == nil {
			c.Error("Txn")
		}
		if _, err := c.Broker.Ends(ctx, []seam.TP{c.tp()}); err == nil {
			c.Error("Ends")
		}
		x := c.txn(c.name("txn"))
		if err := x.Add(ctx, []seam.TP{c.tp()}); err == nil {
			c.Error("Add")
		}
	}},
}

func (c *kase) fails(what string, err error) {
	c.Helper()
	if err == nil {
		c.Fatalf("%s: no error", what)
	}
}
