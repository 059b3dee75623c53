package txn

import (
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semelstream/semel/txn/internal/proxy"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Members come and go while records flow.
func TestExactlyOnceThroughRebalances(t *testing.T) {
	both(t, func(t *testing.T, w *world) {
		c := newCopying(w)
		a := c.start("a" + name("tx"))
		c.feed(20)
		c.copied(a)
		b := c.start("b" + name("tx"))
		for range 10 {
			c.feed(10)
			c.copied(a, b)
		}
		c.until("both to have partitions", func() bool {
			na, _ := a.group.now()
			nb, _ := b.group.now()
			return len(na) == 2 && len(nb) == 2
		})
		c.feed(20)
		c.copied(a, b)
		a.stop()
		c.feed(20)
		c.copied(b)
		c.check()
	})
}

// A batch in hand aborts when one of its partitions is taken away, and the
// partitions that stay are read again.
func TestRevokedBatchAborts(t *testing.T) {
	both(t, func(t *testing.T, w *world) {
		c := newCopying(w)
		s, err := Open(w.ctx, c.config("a"+name("tx")))
		w.must(err)
		inHand, proceed := make(chan struct{}), make(chan struct{})
		first := true
		a := c.run(s, func(tx *Tx, recs []*kgo.Record) error {
			if first {
				first = false
				close(inHand)
				<-proceed
			}
			return c.handle(tx, recs)
		})
		c.feed(20)
		<-inHand
		b := c.start("b" + name("tx"))
		w.until("a partition to be revoked", func() bool {
			a.group.mu.Lock()
			defer a.group.mu.Unlock()
			return a.group.turn > 0
		})
		close(proceed)
		c.copied(a, b)
		c.check()
		if c.handled.Load() <= int64(c.fed) {
			t.Error("the batch did not abort")
		}
	})
}

// Two processes with one transactional id: the older one loses, whatever it
// holds, and goes on as the younger; no record is lost or doubled.
func TestSameIDTwice(t *testing.T) {
	both(t, func(t *testing.T, w *world) {
		c := newCopying(w)
		id := name("tx")
		s, err := Open(w.ctx, c.config(id))
		w.must(err)
		inHand, proceed := make(chan struct{}), make(chan struct{})
		first := true
		a := c.run(s, func(tx *Tx, recs []*kgo.Record) error {
			err := c.handle(tx, recs)
			if first {
				first = false
				tx.send(w.ctx)
				close(inHand)
				<-proceed
			}
			return err
		})
		c.feed(20)
		<-inHand
		w.must(Fence(w.ctx, w.ask, Scope{}, id))
		close(proceed)
		c.copied(a)
		c.check()
	})
}

func TestFailingHandler(t *testing.T) {
	c := newCopying(onFake(t))
	s, err := Open(c.ctx, c.config(name("tx")))
	c.must(err)
	fails := 0
	boom := errors.New("boom")
	a := c.run(s, func(tx *Tx, recs []*kgo.Record) error {
		if err := c.handle(tx, recs); err != nil {
			return err
		}
		switch fails++; {
		case fails <= 3:
			tx.send(c.ctx) // so that records are aborted, too
			return boom
		case c.fed > 10:
			return Fatal(boom)
		}
		return nil
	})
	c.feed(10)
	c.copied(a)
	c.check()
	c.feed(1)
	<-a.done
	if !errors.Is(a.err, boom) || Judge(a.err) != OutcomeFatal {
		t.Error("Run ended with", a.err)
	}
	b := c.start(name("tx"))
	c.copied(b)
	c.check()
}

// Everything at once, from a seed: faults at any request, members that come
// and go.
func TestChaos(t *testing.T) {
	both(t, func(t *testing.T, w *world) {
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		rng := rand.New(rand.NewPCG(seed, 1))
		c := newCopying(w)
		ids := []string{"a" + name("tx"), "b" + name("tx")}
		a := c.start(ids[0], kgo.RetryTimeout(500*time.Millisecond))
		c.feed(10)
		c.copied(a)
		hits := chaos(w.net, seed)
		var b *running
		for range 30 {
			c.feed(1 + rng.IntN(20))
			switch {
			case b == nil && rng.IntN(2) == 0:
				b = c.start(ids[1], kgo.RetryTimeout(500*time.Millisecond))
			case b != nil && rng.IntN(3) == 0:
				b.stop()
				b = nil
			}
			if b == nil {
				c.copied(a)
			} else {
				c.copied(a, b)
			}
		}
		w.net.Set(nil)
		w.net.Wait()
		c.feed(5)
		if b != nil {
			b.stop()
		}
		c.copied(a)
		c.check()
		t.Logf("%d faults, %d records handled for %d", hits.Load(), c.handled.Load(), c.fed)
		if hits.Load() == 0 {
			t.Error("no fault was met")
		}
	})
}

// chaos breaks one of six requests of the protocol.
func chaos(net *proxy.Proxy, seed uint64) *atomic.Int64 {
	rng := rand.New(rand.NewPCG(seed, 2))
	var mu sync.Mutex
	var hits atomic.Int64
	codes := []*kerr.Error{kerr.NotCoordinator, kerr.CoordinatorLoadInProgress, kerr.InvalidProducerEpoch, kerr.TransactionAbortable}
	net.Set(func(req kmsg.Request) proxy.Action {
		mu.Lock()
		defer mu.Unlock()
		step := false
		for _, k := range requests {
			step = step || k.Int16() == req.Key()
		}
		if !step || rng.IntN(6) > 0 {
			return proxy.Action{}
		}
		hits.Add(1)
		switch n := rng.IntN(8); n {
		case 0:
			return proxy.Action{LoseRequest: true}
		case 1, 2:
			return proxy.Action{LoseAnswer: true}
		case 3:
			return proxy.Action{Late: time.Duration(rng.IntN(300)) * time.Millisecond}
		case 4:
			return proxy.Action{Delay: time.Duration(rng.IntN(50)) * time.Millisecond}
		default:
			if req.Key() == kmsg.Produce.Int16() || req.Key() == kmsg.FindCoordinator.Int16() || req.Key() == kmsg.InitProducerID.Int16() {
				return proxy.Action{DelayAnswer: time.Duration(rng.IntN(50)) * time.Millisecond}
			}
			e := codes[rng.IntN(len(codes))]
			if req.Key() == kmsg.OffsetFetch.Int16() || req.Key() == kmsg.DescribeTransactions.Int16() {
				e = codes[rng.IntN(2)]
			}
			return proxy.Action{Answer: proxy.Code(e), Act: rng.IntN(2) == 0}
		}
	})
	return &hits
}
