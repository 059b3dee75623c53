package kafka

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/semelstream/semel/internal/seam"
	"github.com/semelstream/semel/txn"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest"
)

// world is a cluster that a test runs against.
type world struct {
	addrs []string
	real  bool
}

// everywhere runs f on an embedded broker and, if KAFKA_ADDR names one, on a
// real Kafka.
func everywhere(t *testing.T, f func(t *testing.T, w world)) {
	t.Run("kfake", func(t *testing.T) { f(t, fake(t)) })
	t.Run("kafka", func(t *testing.T) { f(t, realKafka(t)) })
}

func fake(t testing.TB) world {
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.BrokerConfigs(map[string]string{
		"log.segment.bytes":                "1048576",
		"group.initial.rebalance.delay.ms": "0",
		"group.min.session.timeout.ms":     "1000",
	}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return world{addrs: c.ListenAddrs()}
}

func realKafka(t testing.TB) world {
	addr := os.Getenv("KAFKA_ADDR")
	if addr == "" {
		t.Skip("KAFKA_ADDR is not set")
	}
	return world{addrs: strings.Split(addr, ","), real: true}
}

// session is the shortest that the broker allows.
func (w world) session() time.Duration { return 6 * time.Second }

func (w world) config(t testing.TB) Config {
	log := zap.NewNop()
	if os.Getenv("KLOG") != "" {
		log = zaptest.NewLogger(t)
	}
	return Config{AppID: "app", Brokers: w.addrs, Logger: log}
}

// broker is one process's.
func (w world) broker(t testing.TB, change ...func(*Config)) *broker {
	cfg := w.config(t)
	for _, f := range change {
		f(&cfg)
	}
	env, closeEnv, err := NewEnv(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(closeEnv)
	return env.Broker.(*broker)
}

func uid(what string) string { return fmt.Sprintf("kafkatest-%s-%08x", what, rand.Uint32()) }

func (w world) topic(t testing.TB, b *broker, partitions int32) string {
	name := uid("topic")
	if err := b.Create(ctx(t), []seam.TopicSpec{{Name: name, Partitions: partitions, Replication: 1}}); err != nil {
		t.Fatal(err)
	}
	if w.real {
		t.Cleanup(func() {
			if _, err := kadm.NewClient(b.cl).DeleteTopics(context.Background(), name); err != nil {
				t.Log(err)
			}
		})
	}
	return name
}

// ctx bounds whatever hangs.
func ctx(t testing.TB) context.Context {
	c, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	t.Cleanup(cancel)
	return c
}

func must[T any](t testing.TB) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func tp(topic string, p int32) seam.TP { return seam.TP{Topic: topic, Partition: p} }

func rec(topic string, p int32, v string) *kgo.Record {
	return &kgo.Record{Topic: topic, Partition: p, Value: []byte(v)}
}

func recs(topic string, p int32, n int) (out []*kgo.Record) {
	for i := range n {
		out = append(out, rec(topic, p, fmt.Sprint("v", i)))
	}
	return out
}

// produce writes without a transaction.
func (w world) produce(t testing.TB, rs ...*kgo.Record) {
	cl, err := kgo.NewClient(append(txn.ClientOptions(), kgo.SeedBrokers(w.addrs...), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerLinger(0))...)
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	ok(t, cl.ProduceSync(ctx(t), rs...).FirstErr())
}

func (w world) txn(t testing.TB, b *broker, id string) seam.Txn {
	x := must[seam.Txn](t)(b.Txn(ctx(t), id))
	t.Cleanup(x.Close)
	return x
}

// transact writes records in a transaction of its own, without offsets.
func transact(t testing.TB, x seam.Txn, commit bool, rs ...*kgo.Record) {
	t.Helper()
	open(t, x, rs...)
	ok(t, x.Prepare(ctx(t), seam.Member{}, nil))
	ok(t, x.End(ctx(t), commit))
}

func open(t testing.TB, x seam.Txn, rs ...*kgo.Record) {
	t.Helper()
	tps := map[seam.TP]bool{}
	for _, r := range rs {
		tps[tp(r.Topic, r.Partition)] = true
	}
	ok(t, x.Add(ctx(t), seam.SortedTPs(tps)))
	x.Produce(rs)
}

// read polls a partition until its position is at end.
func read(t testing.TB, c seam.Consumer, p seam.TP, end int64) (values []string) {
	t.Helper()
	for at := int64(0); at < end; {
		bs, err := c.Poll(ctx(t), 1000, 30*time.Second)
		ok(t, err)
		if bs == nil {
			t.Fatalf("%v stays at %d, wants %d", p, at, end)
		}
		for _, b := range bs {
			if b.TP != p {
				t.Fatalf("read %v, wanted %v", b.TP, p)
			}
			for _, r := range b.Records {
				values = append(values, string(r.Value))
			}
			at = b.Next
		}
	}
	return values
}

// member is a group member whose changes are taken as they come.
type member struct {
	*group
	name string

	mu      sync.Mutex
	tasks   map[seam.Task]bool
	history []seam.Change
	err     error
	changed chan struct{} // closed and replaced at each change
	hold    chan struct{} // if not nil, Done of a revocation waits for it
	over    chan struct{} // the test is
}

func (w world) join(t testing.TB, b *broker, cfg seam.GroupConfig, hold chan struct{}) *member {
	return w.joinPatient(t, b, cfg, hold, rebalanceTimeout)
}

func (w world) joinPatient(t testing.TB, b *broker, cfg seam.GroupConfig, hold chan struct{}, patience time.Duration) *member {
	if cfg.Session == 0 {
		cfg.Session = w.session()
	}
	g := must[*group](t)(b.join(cfg, patience))
	m := &member{group: g, name: cfg.Instance, tasks: map[seam.Task]bool{}, changed: make(chan struct{}), over: make(chan struct{}), hold: hold}
	done := make(chan struct{})
	go func() { defer close(done); m.run() }()
	t.Cleanup(func() { close(m.over); g.Close(true); <-done })
	return m
}

func (m *member) run() {
	for {
		c, err := m.Next(context.Background())
		if err == nil && len(c.Revoked) > 0 && !c.Lost && m.hold != nil {
			m.note(func() { m.history = append(m.history, c) })
			select {
			case <-m.hold:
			case <-m.over:
			}
		} else if err == nil {
			m.note(func() { m.history = append(m.history, c) })
		}
		m.note(func() {
			for _, task := range c.Assigned {
				m.tasks[task] = true
			}
			for _, task := range c.Revoked {
				delete(m.tasks, task)
			}
			m.err = err
		})
		if err != nil {
			return
		}
		c.Done()
	}
}

func (m *member) note(f func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f()
	close(m.changed)
	m.changed = make(chan struct{})
}

// await waits for a state of the member and returns how long that took.
func (m *member) await(t testing.TB, what string, cond func() bool) time.Duration {
	t.Helper()
	start, limit := time.Now(), time.After(40*time.Second)
	for {
		m.mu.Lock()
		is, changed, err, n := cond(), m.changed, m.err, len(m.tasks)
		m.mu.Unlock()
		if is {
			return time.Since(start)
		}
		if err != nil {
			t.Fatalf("%s: waiting for %s: %v", m.name, what, err)
		}
		select {
		case <-changed:
		case <-limit:
			t.Fatalf("%s: never: %s; it has %d tasks", m.name, what, n)
		}
	}
}

func (m *member) awaitTasks(t testing.TB, n int) time.Duration {
	t.Helper()
	return m.await(t, fmt.Sprint(n, " tasks"), func() bool { return len(m.tasks) == n })
}

func (m *member) changes() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.history)
}
