package seamtest

import (
	"context"

	"github.com/semelstream/semel/internal/seam"
)

var offsets = suite{
	{"offsets come back with metadata and leader epoch", func(c *kase) {
		m := c.join()
		in := c.topic(3)
		a, b, none := seam.TP{Topic: in}, seam.TP{Topic: in, Partition: 1}, seam.TP{Topic: in, Partition: 2}
		x := c.txn(m.txnID())
		c.begin(x, c.tp(), "1")
		want := seam.Offsets{a: {At: 5, Epoch: 0, Metadata: "times 1"}, b: {At: 6, Epoch: -1}}
		c.ok(x.Prepare(c.ctx, m.Member(), want))
		c.ok(x.End(c.ctx, true))
		got := must[seam.Offsets](c)(c.Broker.Committed(c.ctx, m.group, m.prefix(), []seam.TP{a, b, none}))
		if len(got) != 2 || got[a] != want[a] || got[b] != want[b] {
			c.Fatalf("committed %v, want %v", got, want)
		}
	}},
	{"a group that never was has no offsets", func(c *kase) {
		group := c.name("group")
		got := must[seam.Offsets](c)(c.Broker.Committed(c.ctx, group, group, []seam.TP{c.tp()}))
		if len(got) != 0 {
			c.Fatalf("committed %v", got)
		}
	}},
	{"Committed waits for a transaction of a living member", func(c *kase) {
		m, in := c.join(), c.tp()
		c.ok(c.Broker.Commit(c.ctx, m.Member(), seam.Offsets{in: {At: 1, Epoch: -1}}))
		x := c.txn(m.txnID())
		c.begin(x, c.tp(), "1")
		c.ok(x.Prepare(c.ctx, m.Member(), seam.Offsets{in: {At: 2, Epoch: -1}}))
		w := c.waiter(m, in)
		c.linger()
		if w.came() {
			c.Fatalf("Committed returned %v with a transaction under way, %v", w.offs, w.err)
		}
		c.ok(x.End(c.ctx, true))
		c.await("Committed returns", w.came)
		c.ok(w.err)
		if w.offs[in].At != 2 {
			c.Fatalf("committed %v, want 2", w.offs)
		}
	}},
	{"Committed fences the transaction of a dead instance", func(c *kase) {
		m, in, out := c.join(), c.tp(), c.tp()
		c.ok(c.Broker.Commit(c.ctx, m.Member(), seam.Offsets{in: {At: 1, Epoch: -1}}))
		x := c.txn(m.txnID())
		c.begin(x, out, "gone")
		c.ok(x.Prepare(c.ctx, m.Member(), seam.Offsets{in: {At: 2, Epoch: -1}}))
		m.Close(true)
		begin := c.Clock.Now()
		if o := c.committed(m.group, in); o.At != 1 {
			c.Fatalf("committed %d, want 1: nobody ended the transaction", o.At)
		}
		if took := c.Clock.Now().Sub(begin); took > patience/12 { // the broker ends it some day, too
			c.Fatalf("fenced after %v", took)
		}
		c.fails("End of the fenced one", x.End(c.ctx, true))
		c.put(out, "stays")
		c.equal(c.read(out, 0), []string{"stays"})
	}},
	{"Prepare as a member of an older generation fails, and nothing is visible", func(c *kase) {
		m := c.join()
		c.refused(m, func(m *seam.Member) { m.Generation-- })
	}},
	{"Prepare as nobody's member fails, and nothing is visible", func(c *kase) {
		m := c.join()
		c.refused(m, func(m *seam.Member) { m.ID = "nobody" })
	}},
	{"Prepare as a replaced instance fails, and nothing is visible", func(c *kase) {
		m := c.join()
		was := m.Member()
		c.joinGroup(m.group, "a")
		c.refused(m, func(m *seam.Member) { *m = was })
	}},
	{"a plain commit is fenced by generation", func(c *kase) {
		m, in := c.join(), c.tp()
		c.ok(c.Broker.Commit(c.ctx, m.Member(), seam.Offsets{in: {At: 3, Epoch: -1, Metadata: "m"}}))
		for _, change := range []func(*seam.Member){
			func(m *seam.Member) { m.Generation-- },
			func(m *seam.Member) { m.Generation++ },
			func(m *seam.Member) { m.ID, m.Instance = "nobody", "" },
		} {
			who := m.Member()
			change(&who)
			err := c.Broker.Commit(c.ctx, who, seam.Offsets{in: {At: 9, Epoch: -1}})
			if err == nil || !c.world.Rejoin(err) {
				c.Fatalf("a commit as %+v: %v", who, err)
			}
		}
		if o := c.committed(m.group, in); o.At != 3 || o.Metadata != "m" {
			c.Fatalf("committed %+v", o)
		}
	}},
	{"an aborted transaction leaves the offsets of the last one", func(c *kase) {
		m, in, out := c.join(), c.tp(), c.tp()
		x := c.txn(m.txnID())
		for at := int64(1); at <= 4; at++ {
			c.begin(x, out, "1")
			c.ok(x.Prepare(c.ctx, m.Member(), seam.Offsets{in: {At: at, Epoch: -1}}))
			c.ok(x.End(c.ctx, at%2 == 1))
			want := at - (at+1)%2
			if o := c.committed(m.group, in); o.At != want {
				c.Fatalf("after transaction %d: committed %d, want %d", at, o.At, want)
			}
		}
	}},
}

// refused lets a changed member prepare a transaction.
func (c *kase) refused(m *member, change func(*seam.Member)) {
	c.Helper()
	in, out := c.tp(), c.tp()
	who := m.Member()
	change(&who)
	x := c.txn(m.txnID())
	c.begin(x, out, "gone")
	err := x.Prepare(c.ctx, who, seam.Offsets{in: {At: 9, Epoch: -1}})
	if err == nil || !c.world.Rejoin(err) {
		c.Fatalf("Prepare as %+v: %v", who, err)
	}
	c.fails("End after a failed Prepare", x.End(c.ctx, true))
	x.Close()
	c.transact(c.txn(m.txnID()), true, out, "stays")
	c.equal(c.read(out, 0), []string{"stays"})
	c.notCommitted(m.group, in)
}

func (c *kase) committed(group string, tp seam.TP) seam.Offset {
	c.Helper()
	offs := must[seam.Offsets](c)(c.Broker.Committed(c.ctx, group, group+"-", []seam.TP{tp}))
	o, ok := offs[tp]
	if !ok {
		c.Fatalf("no committed offset of %v", tp)
	}
	return o
}

func (c *kase) committedAt(group string, tp seam.TP, at int64) {
	c.Helper()
	if o := c.committed(group, tp); o.At != at {
		c.Fatalf("committed offset of %v is %d, want %d", tp, o.At, at)
	}
}

func (c *kase) notCommitted(group string, tp seam.TP) {
	c.Helper()
	if offs := must[seam.Offsets](c)(c.Broker.Committed(c.ctx, group, group+"-", []seam.TP{tp})); len(offs) > 0 {
		c.Fatalf("committed %v, want nothing", offs)
	}
}

// A waiter calls Committed in a goroutine of its own.
type waiter struct {
	shared
	done bool
	offs seam.Offsets
	err  error
}

func (c *kase) waiter(m *member, tp seam.TP) *waiter {
	w := &waiter{}
	c.Go("waiter", func() {
		offs, err := c.Broker.Committed(c.ctx, m.group, m.prefix(), []seam.TP{tp})
		w.do(func() { w.done, w.offs, w.err = true, offs, err })
	})
	return w
}

func (w *waiter) came() (done bool) {
	w.do(func() { done = w.done })
	return done
}

func withCancel(c *kase) (context.Context, context.CancelFunc) { return context.WithCancel(c.ctx) }
