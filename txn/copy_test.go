package txn

import (
	"context"
	"errors"
	"fmt"
	"runtime/pprof"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/zap/zaptest"
)

// A copying is an application under test: Sessions that copy an input to an
// output. The input's values are 0, 1, 2, ...; exactly once means that the
// output has each of them once, in the input's order for each key.
type copying struct {
	*world
	in, out string
	group   string
	fed     int
	handled atomic.Int64 // records that handlers saw, repeated ones again
	reader  *kgo.Client
	seen    int
}

const inParts = 4

func newCopying(w *world) *copying {
	c := &copying{world: w, in: w.topic("in", inParts), out: w.topic("out", 3), group: name("group")}
	from := map[int32]kgo.Offset{}
	for n := range int32(3) {
		from[n] = kgo.NewOffset().At(0)
	}
	c.reader = w.client(kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{c.out: from}), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.FetchMaxWait(20*time.Millisecond))
	w.Cleanup(c.reader.Close)
	return c
}

func (c *copying) config(id string, opts ...kgo.Opt) Config {
	return Config{Group: c.group, TransactionalID: id, Brokers: c.seeds, Topics: []string{c.in}, Interval: 20 * time.Millisecond, Logger: zaptest.NewLogger(c),
		Client: append([]kgo.Opt{kgo.Dialer(c.net.Dial), kgo.HeartbeatInterval(100 * time.Millisecond), kgo.ProducerLinger(0)}, opts...)}
}

func (c *copying) handle(tx *Tx, recs []*kgo.Record) error {
	for _, r := range recs {
		if string(r.Key) == dropped {
			continue
		}
		tx.Produce(&kgo.Record{Topic: c.out, Key: r.Key, Value: r.Value}, nil)
		c.handled.Add(1)
	}
	return nil
}

// dropped is the key of records without output.
const dropped = "dropped"

// feedDropped writes a record for which nothing is produced.
func (c *copying) feedDropped() {
	c.Helper()
	c.write(rec(c.in, 0, dropped, ""))
}

// running is a Session in a goroutine.
type running struct {
	*Session
	stop context.CancelFunc
	done chan struct{}
	err  error
}

// start opens a Session and runs it until stop or the test's end.
func (c *copying) start(id string, opts ...kgo.Opt) *running {
	c.Helper()
	s, err := Open(c.ctx, c.config(id, opts...))
	c.must(err)
	return c.run(s, c.handle)
}

func (c *copying) run(s *Session, handle func(*Tx, []*kgo.Record) error) *running {
	ctx, cancel := context.WithCancel(c.ctx)
	r := &running{Session: s, done: make(chan struct{})}
	go func() {
		defer close(r.done)
		r.err = s.Run(ctx, handle)
		s.Close()
	}()
	r.stop = sync.OnceFunc(func() { cancel(); <-r.done })
	c.Cleanup(r.stop)
	return r
}

// feed writes n more values, spread over the partitions.
func (c *copying) feed(n int) {
	c.Helper()
	var recs []*kgo.Record
	for range n {
		p := int32(c.fed % inParts)
		recs = append(recs, rec(c.in, p, fmt.Sprint("key", p), strconv.Itoa(c.fed)))
		c.fed++
	}
	c.write(recs...)
}

// copied waits until as many records are visible as were fed; alive says when
// waiting makes no sense any more.
func (c *copying) copied(rs ...*running) {
	c.Helper()
	ctx, cancel := context.WithCancelCause(c.ctx)
	defer cancel(nil)
	for _, r := range rs {
		go func() {
			select {
			case <-r.done:
				cancel(fmt.Errorf("Run ended: %w", errors.Join(r.err, errEnded)))
			case <-ctx.Done():
			}
		}()
	}
	for c.seen < c.fed {
		c.seen += c.reader.PollFetches(ctx).NumRecords()
		if ctx.Err() != nil {
			c.Fatalf("%d of %d records copied: %v\n%s", c.seen, c.fed, context.Cause(ctx), c.whereabouts())
		}
	}
}

// whereabouts says how far the input and the output came, what holds them up,
// and where every goroutine is.
func (c *copying) whereabouts() string {
	var b strings.Builder
	ctx, cancel := context.WithTimeout(context.Background(), farewell)
	defer cancel()
	for _, topic := range []string{c.in, c.out} {
		end, err := c.adm.ListEndOffsets(ctx, topic)
		stable, err2 := c.adm.ListCommittedOffsets(ctx, topic)
		end.Each(func(o kadm.ListedOffset) {
			s, _ := stable.Lookup(topic, o.Partition)
			fmt.Fprintf(&b, "%s[%d]: end %d, stable %d\n", topic, o.Partition, o.Offset, s.Offset)
		})
		if err := errors.Join(err, err2); err != nil {
			fmt.Fprintf(&b, "%s: %v\n", topic, err)
		}
	}
	offs, err := c.adm.FetchOffsets(ctx, c.group)
	offs.Each(func(o kadm.OffsetResponse) {
		fmt.Fprintf(&b, "group: %s[%d] at %d\n", o.Topic, o.Partition, o.At)
	})
	txns, err2 := c.adm.ListTransactions(ctx, nil, nil)
	for _, t := range txns.Sorted() {
		fmt.Fprintf(&b, "transaction %s of producer %d: %s\n", t.TxnID, t.ProducerID, t.State)
	}
	if err := errors.Join(err, err2); err != nil {
		fmt.Fprintln(&b, err)
	}
	fmt.Fprintln(&b, c.handled.Load(), "records handled")
	_ = pprof.Lookup("goroutine").WriteTo(&b, 1)
	return b.String()
}

// check is the proof: the output, and the input's positions at its very end.
func (c *copying) check() {
	c.Helper()
	count := make([]int, c.fed)
	last := map[string]int{}
	for _, r := range c.committed(c.out) {
		v, err := strconv.Atoi(string(r.Value))
		c.must(err)
		if v >= c.fed {
			c.Fatalf("value %d was never fed", v)
		}
		count[v]++
		key := string(r.Key)
		if before, ok := last[key]; ok && before >= v {
			c.Errorf("%s: %d comes after %d", key, v, before)
		}
		last[key] = v
	}
	for v, n := range count {
		if n != 1 {
			c.Errorf("value %d is in the output %d times", v, n)
		}
	}
	for tp, end := range c.ends(c.in) {
		if end > 0 {
			c.until(fmt.Sprintf("offset %d of %s", end, tp), func() bool { return c.stable(c.group, tp.Topic, tp.Partition) == end })
		}
	}
}

func TestSessionCopiesExactlyOnce(t *testing.T) {
	both(t, func(t *testing.T, w *world) {
		c := newCopying(w)
		r := c.start(name("tx"))
		for range 5 {
			c.feed(7)
			c.copied(r)
		}
		c.check()
		if h := c.handled.Load(); h != int64(c.fed) {
			t.Errorf("nothing went wrong, but %d records were handled instead of %d", h, c.fed)
		}
		r.stop()
		if r.err != nil {
			t.Error("Run:", r.err)
		}
	})
}
