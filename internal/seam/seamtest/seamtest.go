// Package seamtest is the contract of package seam as a test suite. It runs
// on the in-memory model, on an embedded broker and on a real Kafka, so that
// what is proven on the model holds for the others.
//
// A case is ordinary blocking code that runs as a process: on a goroutine, or
// on a coroutine that somebody turns. It starts goroutines by Env.Go only and
// waits by the seams only.
package seamtest

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/semelstream/semel/internal/seam"
	"github.com/twmb/franz-go/pkg/kgo"
)

// A World is where the suite runs.
type World struct {
	// Run runs body as a process of its own and returns when body has. It is
	// called once for each case. Body may end the test in the way of
	// [testing.T.FailNow].
	Run func(t *testing.T, body func(env seam.Env))
	// Rejoin says whether an error is judged as "the group went on without
	// this member": txn.Judge(err) == txn.OutcomeRejoin.
	Rejoin func(err error) bool
	// Session is the shortest session that group members may have; default
	// 6 s.
	Session time.Duration
	// Evict puts a static member out of the group behind its back. Cases that
	// need it are skipped if it is nil.
	Evict func(env seam.Env, group, instance string)
	// Skip has the reasons not to run cases, by name.
	Skip map[string]string
}

// patience bounds each wait of a case, in the time of its world.
const patience = time.Minute

// A suite is the cases by sentence.
type suite []struct {
	name string
	f    func(c *kase)
}

// Run runs the whole contract.
func Run(t *testing.T, w World) {
	if w.Session == 0 {
		w.Session = 6 * time.Second
	}
	for _, s := range []suite{transactions, offsets, reading, admin, groups, waiting} {
		for _, k := range s {
			t.Run(k.name, func(t *testing.T) {
				if why, ok := w.Skip[k.name]; ok {
					t.Skip(why)
				}
				// The deadline is for worlds in real time; Run bounds the others.
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
				defer cancel()
				w.Run(t, func(env seam.Env) {
					c := &kase{T: t, Env: env, world: w, ctx: ctx}
					defer c.end()
					k.f(c)
				})
			})
		}
	}
}

// A kase is one case while it runs.
type kase struct {
	*testing.T
	seam.Env
	world World
	ctx   context.Context
	ends  []func()
}

func (c *kase) end() {
	for _, f := range slices.Backward(c.ends) {
		f()
	}
}

func (c *kase) ok(err error) {
	c.Helper()
	if err != nil {
		c.Fatal(err)
	}
}

func must[T any](c *kase) func(T, error) T {
	return func(v T, err error) T {
		c.Helper()
		c.ok(err)
		return v
	}
}

// name is one that nobody used before.
func (c *kase) name(what string) string { return fmt.Sprintf("seamtest-%s-%016x", what, c.Rand()) }

func (c *kase) topic(partitions int32) string {
	c.Helper()
	n := c.name("topic")
	c.ok(c.Broker.Create(c.ctx, []seam.TopicSpec{{Name: n, Partitions: partitions, Replication: -1}}))
	return n
}

// tp is the only partition of a new topic.
func (c *kase) tp() seam.TP { c.Helper(); return seam.TP{Topic: c.topic(1)} }

func (c *kase) txn(id string) seam.Txn {
	c.Helper()
	x := must[seam.Txn](c)(c.Broker.Txn(c.ctx, id))
	c.ends = append(c.ends, x.Close)
	return x
}

func (c *kase) consumer() seam.Consumer {
	c.Helper()
	x := must[seam.Consumer](c)(c.Broker.Consumer(c.ctx))
	c.ends = append(c.ends, x.Close)
	return x
}

func records(tp seam.TP, values ...string) (recs []*kgo.Record) {
	for _, v := range values {
		recs = append(recs, &kgo.Record{Topic: tp.Topic, Partition: tp.Partition, Key: []byte("key"), Value: []byte(v)})
	}
	return recs
}

// begin opens a transaction with records to one partition.
func (c *kase) begin(x seam.Txn, tp seam.TP, values ...string) {
	c.Helper()
	c.ok(x.Add(c.ctx, []seam.TP{tp}))
	x.Produce(records(tp, values...))
}

// put writes records in a transaction of its own.
func (c *kase) put(tp seam.TP, values ...string) {
	c.Helper()
	c.transact(c.txn(c.name("put")), true, tp, values...)
}

// transact is a whole transaction without input offsets.
func (c *kase) transact(x seam.Txn, commit bool, tp seam.TP, values ...string) {
	c.Helper()
	c.begin(x, tp, values...)
	c.ok(x.Prepare(c.ctx, seam.Member{}, nil))
	c.ok(x.End(c.ctx, commit))
}

// read reads tp from from until the position is at its end, and returns the
// values.
func (c *kase) read(tp seam.TP, from int64) []string {
	c.Helper()
	r := c.consumer()
	r.Assign(tp, from)
	values, _ := c.readTo(r, tp, c.ending(tp))
	return values
}

func (c *kase) readTo(r seam.Consumer, tp seam.TP, end int64) (values []string, recs []*kgo.Record) {
	c.Helper()
	at, until := int64(-1), c.Clock.Now().Add(patience)
	if end == 0 {
		return nil, nil
	}
	for at < end {
		batches, err := r.Poll(c.ctx, 1000, time.Second)
		c.ok(err)
		for _, b := range batches {
			if b.TP != tp {
				c.Fatalf("read %v, assigned was %v", b.TP, tp)
			}
			at = b.Next
			for _, rec := range b.Records {
				values = append(values, string(rec.Value))
				recs = append(recs, rec)
			}
		}
		if c.Clock.Now().After(until) {
			c.Fatalf("the position in %v stays at %d, its end is %d", tp, at, end)
		}
	}
	return values, recs
}

func (c *kase) ending(tp seam.TP) int64 {
	c.Helper()
	return must[map[seam.TP]int64](c)(c.Broker.Ends(c.ctx, []seam.TP{tp}))[tp]
}

func (c *kase) stable(tp seam.TP) int64 {
	c.Helper()
	return must[map[seam.TP]int64](c)(c.Broker.Stable(c.ctx, []seam.TP{tp}))[tp]
}

// settle waits until tp ends at end, all of it stable: markers come after End
// has returned.
func (c *kase) settle(tp seam.TP, end int64) {
	c.Helper()
	c.await("the markers are written", func() bool { return c.stable(tp) == end && c.ending(tp) == end })
}

// await looks until cond holds.
func (c *kase) await(what string, cond func() bool) {
	c.Helper()
	until := c.Clock.Now().Add(patience)
	for !cond() {
		if c.Clock.Now().After(until) {
			c.Fatalf("never: %s", what)
		}
		c.ok(c.Clock.Sleep(c.ctx, 5*time.Millisecond))
	}
}

// linger lets some time pass. It is for claims that something does not
// happen, where there is nothing to wait for.
func (c *kase) linger() {
	c.Helper()
	c.ok(c.Clock.Sleep(c.ctx, 150*time.Millisecond))
}

func (c *kase) equal(got, want []string) {
	c.Helper()
	if !slices.Equal(got, want) {
		c.Fatalf("read %q, want %q", got, want)
	}
}
