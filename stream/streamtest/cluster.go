package streamtest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semelstream/semel/stream"
)

// patience is how long a Cluster waits for anything. Only a test that fails
// waits that long.
const patience = time.Minute

// A Cluster is an embedded Kafka broker that listens on the loopback interface
// and lives as long as its test. It is for tests of a whole program: real
// clients, transactions, groups and time; see [Driver] for tests of a topology.
//
// It keeps everything in memory and has one broker. It is a stand-in all the
// same: what depends on a real broker's timing, disks or elections needs one.
//
// The methods are for the test's goroutine; they fail the test.
type Cluster struct {
	tb     testing.TB
	fake   *kfake.Cluster
	client *kgo.Client
	ctx    context.Context // ends when the test does, or when an app fails
	fail   context.CancelCauseFunc
	unread map[string][]*kgo.Record // of topics that are consumed, in order
}

// NewCluster starts a cluster without topics.
func NewCluster(tb testing.TB) *Cluster {
	tb.Helper()
	fake, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.BrokerConfigs(map[string]string{
		"log.segment.bytes":                "1048576", // it would reserve 1 GiB for each partition
		"group.initial.rebalance.delay.ms": "0",
	}))
	if err != nil {
		tb.Fatalf("starting the embedded broker: %v", err)
	}
	tb.Cleanup(fake.Close)
	client, err := kgo.NewClient(
		kgo.SeedBrokers(fake.ListenAddrs()...),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerLinger(0),
		kgo.MetadataMinAge(50*time.Millisecond),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.FetchMaxWait(50*time.Millisecond), // a new topic waits for the fetch in flight
	)
	if err != nil {
		tb.Fatalf("connecting to the embedded broker: %v", err)
	}
	tb.Cleanup(client.Close)
	ctx, fail := context.WithCancelCause(context.Background())
	tb.Cleanup(func() { fail(nil) })
	return &Cluster{tb: tb, fake: fake, client: client, ctx: ctx, fail: fail, unread: map[string][]*kgo.Record{}}
}

// Brokers are the addresses, for [stream.Config].Brokers.
func (c *Cluster) Brokers() []string { return c.fake.ListenAddrs() }

// Fake is the broker itself, whose control functions can make requests fail.
func (c *Cluster) Fake() *kfake.Cluster { return c.fake }

// CreateTopics makes topics of n partitions each.
func (c *Cluster) CreateTopics(n int, names ...string) {
	c.tb.Helper()
	for _, name := range names {
		if err := c.fake.CreateTopic(name, int32(n), nil); err != nil {
			c.tb.Fatalf("making topic %s: %v", name, err)
		}
	}
}

// Start runs the topology until the test ends or [stream.App.Close] is called.
// Brokers is filled in, and, where they are empty, AppID is "app" and StateDir
// a new directory: to start again on the same state, give one. An error of
// [stream.App.Run] fails the test.
func (c *Cluster) Start(define func(*stream.Builder), cfg stream.Config) *stream.App {
	c.tb.Helper()
	cfg.Brokers = c.Brokers()
	if cfg.AppID == "" {
		cfg.AppID = "app"
	}
	if cfg.StateDir == "" {
		cfg.StateDir = c.tb.TempDir()
	}
	topology, err := stream.Build(define)
	if err != nil {
		c.tb.Fatalf("the topology has problems:\n%v", err)
	}
	app, err := stream.New(topology, cfg)
	if err != nil {
		c.tb.Fatal(err)
	}
	c.run(app)
	return app
}

// run runs app in the background, at most until the test ends.
func (c *Cluster) run(app *stream.App) {
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		err := app.Run(ctx)
		if err != nil {
			c.fail(fmt.Errorf("the application stopped: %w", err)) // whoever waits for its output
		}
		ended <- err
	}()
	c.tb.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			c.tb.Errorf("the application stopped: %v", err)
		}
	})
}

// Put sends key and value, at the time of day.
func (c *Cluster) Put[K, V any](t stream.Topic[K, V], key K, value V) {
	c.tb.Helper()
	c.PutRecord(t, stream.Record[K, V]{Key: key, Value: value, Time: time.Now()})
}

// PutRecord sends r as it is.
func (c *Cluster) PutRecord[K, V any](t stream.Topic[K, V], r stream.Record[K, V]) {
	c.tb.Helper()
	recs, err := t.Encode(r, c.partitions(t.Name))
	if err != nil {
		c.tb.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(c.ctx, patience)
	defer cancel()
	if err := c.client.ProduceSync(ctx, recs...).FirstErr(); err != nil {
		c.tb.Fatalf("sending to %s: %v", t.Name, err)
	}
}

func (c *Cluster) partitions(topic string) int {
	c.tb.Helper()
	n := len(c.fake.PartitionInfos(topic))
	if n == 0 {
		c.tb.Fatalf("there is no topic %q; make it with CreateTopics", topic)
	}
	return n
}

// Await waits until n records more than those already returned are committed
// to t, and returns these: in order within a partition, in any order otherwise.
func (c *Cluster) Await[K, V any](t stream.Topic[K, V], n int) []stream.Record[K, V] {
	c.tb.Helper()
	var out []stream.Record[K, V]
	for _, k := range c.await(t.Name, n) {
		r, err := t.Decode(k)
		if err != nil {
			c.tb.Fatal(err)
		}
		out = append(out, r)
	}
	return out
}

func (c *Cluster) await(topic string, n int) []*kgo.Record {
	c.tb.Helper()
	if _, known := c.unread[topic]; !known {
		c.unread[topic] = nil
		from := map[int32]kgo.Offset{}
		for p := range c.partitions(topic) {
			from[int32(p)] = kgo.NewOffset().At(0)
		}
		c.client.AddConsumePartitions(map[string]map[int32]kgo.Offset{topic: from})
	}
	ctx, cancel := context.WithTimeout(c.ctx, patience)
	defer cancel()
	for len(c.unread[topic]) < n {
		c.client.PollFetches(ctx).EachRecord(func(r *kgo.Record) {
			c.unread[r.Topic] = append(c.unread[r.Topic], r)
		})
		if ctx.Err() != nil {
			c.tb.Fatalf("waiting for %d records of %s: %d came: %v", n, topic, len(c.unread[topic]), context.Cause(ctx))
		}
	}
	got := c.unread[topic][:n:n]
	c.unread[topic] = c.unread[topic][n:]
	return got
}
