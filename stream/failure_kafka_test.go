package stream_test

import (
	"context"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/stream"
)

// A live is a cluster with names of the test's own in it.
type live struct {
	t     *testing.T
	addrs []string // for applications
	cl    *kgo.Client
	adm   *kadm.Client
	name  string // begins all names
}

// everywhere runs f on an embedded broker and, if KAFKA_ADDR names one, on a
// real Kafka.
func everywhere(t *testing.T, f func(*live)) {
	t.Run("kfake", func(t *testing.T) { f(fake(t)) })
	t.Run("kafka", func(t *testing.T) { f(realKafka(t)) })
}

var fakeConfig = kfake.BrokerConfigs(map[string]string{"log.segment.bytes": "1048576", "group.initial.rebalance.delay.ms": "0"})

func fake(t *testing.T, opts ...kfake.Opt) *live {
	t.Helper()
	c, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(1), fakeConfig}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return liveAt(t, c.ListenAddrs())
}

func realKafka(t *testing.T) *live {
	t.Helper()
	addr := os.Getenv("KAFKA_ADDR")
	if addr == "" {
		t.Skip("KAFKA_ADDR is not set")
	}
	return liveAt(t, strings.Split(addr, ","))
}

// liveAt is the cluster at addrs; opts are the test's own client's.
func liveAt(t *testing.T, addrs []string, opts ...kgo.Opt) *live {
	t.Helper()
	opts = append(opts, kgo.SeedBrokers(addrs...), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchMaxBytes(16<<20), kgo.MetadataMinAge(100*time.Millisecond))
	cl, err := kgo.NewClient(opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	return &live{t: t, addrs: addrs, cl: cl, adm: kadm.NewClient(cl), name: fmt.Sprintf("failure-%08x", rand.Uint32())}
}

func (l *live) ctx() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 90*time.Second)
	l.t.Cleanup(cancel)
	return ctx
}

func (l *live) ok(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

// topic makes a topic and returns its name.
func (l *live) topic(what string, partitions int32, config ...string) string {
	l.t.Helper()
	c := map[string]*string{}
	for i := 0; i+1 < len(config); i += 2 {
		c[config[i]] = &config[i+1]
	}
	_, err := l.adm.CreateTopic(l.ctx(), partitions, 1, c, l.name+"-"+what)
	l.ok(err)
	return l.name + "-" + what
}

// produce writes values of failIn to partition 0.
func (l *live) produce(topic, key string, values ...int64) {
	l.t.Helper()
	for _, v := range values {
		b, _ := codec.Int64.Append(nil, v)
		l.ok(l.cl.ProduceSync(l.ctx(), &kgo.Record{Topic: topic, Key: []byte(key), Value: b}).FirstErr())
	}
}

// sums is the topology of that name on the test's topics.
func (l *live) sums(b *stream.Builder) {
	in := stream.NewTopic(l.name+"-in", codec.String, codec.Int64)
	out := stream.NewTopic(l.name+"-sums", codec.String, codec.Int64)
	b.Stream(in).GroupByKey().
		TryUpdate("sums", func(_ string, v, sum int64, _ bool) (int64, bool, error) {
			if v < 0 {
				return 0, false, fmt.Errorf("no negative values")
			}
			return sum + v, true, nil
		}).To(out)
}

// A liveApp is an application that runs.
type liveApp struct {
	l    *live
	logs *logs
	end  context.CancelFunc
	done chan struct{}
	err  error
	app  *stream.App // if it was started by viewed
}

// run starts define; change changes its configuration.
func (l *live) run(define func(*stream.Builder), change func(*stream.Config)) *liveApp {
	l.t.Helper()
	a := &liveApp{l: l, logs: newLogs(), done: make(chan struct{})}
	cfg := stream.Config{AppID: l.name, Brokers: l.addrs, StateDir: l.t.TempDir(), OnExit: stream.Leave, Logger: a.logs.logger()}
	if change != nil {
		change(&cfg)
	}
	ctx, end := context.WithCancel(context.Background())
	a.end = end
	go func() {
		defer close(a.done)
		a.err = stream.Run(ctx, define, cfg)
	}()
	l.t.Cleanup(func() {
		end()
		<-a.done
		if l.t.Failed() {
			l.t.Logf("the log:\n%s", a.logs)
		}
	})
	return a
}

// stop ends it in order.
func (a *liveApp) stop() {
	a.l.t.Helper()
	a.end()
	<-a.done
	a.l.ok(a.err)
}

// stops waits until it has stopped by itself, with an error that has all of
// the parts.
func (a *liveApp) stops(parts ...string) {
	a.l.t.Helper()
	select {
	case <-a.done:
		hasParts(a.l.t, a.err, parts...)
	case <-time.After(90 * time.Second):
		a.l.t.Fatalf("it does not stop; the error should have %q", parts)
	}
}

// wants waits until the topic's committed records fold to want, and checks
// that no sum fell or came twice on the way.
func (l *live) wants(topic string, want map[string]int64) {
	l.t.Helper()
	cl, err := kgo.NewClient(append(l.cl.Opts(), kgo.ConsumeTopics(topic), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))...)
	l.ok(err)
	defer cl.Close()
	got := map[string]int64{}
	ctx, cancel := context.WithTimeout(context.Background(), 90*time.Second)
	defer cancel()
	for !maps.Equal(got, want) {
		fs := cl.PollFetches(ctx)
		if ctx.Err() != nil {
			l.t.Fatalf("%s folds to %v, want %v", topic, got, want)
		}
		fs.EachRecord(func(r *kgo.Record) {
			v, err := codec.Int64.Decode(r.Value)
			l.ok(err)
			if v <= got[string(r.Key)] {
				l.t.Errorf("the sum of %s goes from %d to %d", r.Key, got[string(r.Key)], v)
			}
			got[string(r.Key)] = v
		})
	}
}

// A gate is a network in front of a broker that can be shut: connections
// break, and new ones are refused as by a dead process.
type gate struct {
	addr, to string
	mu       sync.Mutex
	ln       net.Listener
	conns    []net.Conn
}

// gated is an embedded broker that is reached through a gate only, which is
// shut at first.
func gated(t *testing.T) (*live, *gate) {
	t.Helper()
	front, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	back, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := &gate{addr: front.Addr().String(), to: back.Addr().String()}
	front.Close()
	fake(t, kfake.Ports(front.Addr().(*net.TCPAddr).Port), kfake.ListenFn(func(string, string) (net.Listener, error) { return back, nil }))
	t.Cleanup(g.shut)
	return liveAt(t, []string{g.addr}), g
}

func (g *gate) open(t *testing.T) {
	t.Helper()
	ln, err := net.Listen("tcp", g.addr)
	if err != nil {
		t.Fatal(err)
	}
	g.mu.Lock()
	g.ln = ln
	g.mu.Unlock()
	go func() {
		for {
			a, err := ln.Accept()
			if err != nil {
				return
			}
			b, err := net.Dial("tcp", g.to)
			if err != nil {
				a.Close()
				continue
			}
			g.mu.Lock()
			g.conns = append(g.conns, a, b)
			g.mu.Unlock()
			go func() { _, _ = io.Copy(a, b); a.Close() }()
			go func() { _, _ = io.Copy(b, a); b.Close() }()
		}
	}()
}

func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ln != nil {
		g.ln.Close()
	}
	for _, c := range g.conns {
		c.Close()
	}
	g.conns = nil
}

func TestABrokerThatIsDownAtTheStartIsSaidAndWaitedFor(t *testing.T) {
	l, g := gated(t)
	a := l.run(l.sums, nil)
	a.logs.await(t, "still trying", 30*time.Second)
	if !a.logs.has(g.addr) {
		t.Error("the log does not name the address")
	}
	g.open(t)
	in, out := l.topic("in", 1), l.topic("sums", 1)
	// The topics came too late for the first look, which is an error with a name.
	select {
	case <-a.done:
		hasParts(t, a.err, "SEMEL-NO-TOPIC", l.name)
		a = l.run(l.sums, nil)
	case <-time.After(time.Second):
	}
	l.produce(in, "a", 1, 2)
	l.wants(out, map[string]int64{"a": 3})
	a.stop()
}

func TestAnAppEndsWhenItIsToldToWhileTheBrokerIsDown(t *testing.T) {
	l, _ := gated(t)
	a := l.run(l.sums, nil)
	a.logs.await(t, "still trying", 30*time.Second)
	a.stop()
}

func TestAnOutageInTheMiddleCostsNothingButTime(t *testing.T) {
	l, g := gated(t)
	g.open(t)
	in, out := l.topic("in", 1), l.topic("sums", 1)
	a := l.run(l.sums, nil)
	l.produce(in, "a", 1)
	l.wants(out, map[string]int64{"a": 1})
	for i := range 3 {
		sent := make(chan error)
		b, _ := codec.Int64.Append(nil, int64(10<<i))
		g.shut()
		go func() {
			sent <- l.cl.ProduceSync(l.ctx(), &kgo.Record{Topic: in, Key: []byte("a"), Value: b}).FirstErr()
		}()
		a.logs.await(t, "unable to", 30*time.Second) // the client has noticed
		g.open(t)
		l.ok(<-sent)
	}
	l.wants(out, map[string]int64{"a": 71})
	a.stop()
}

func TestTwoProcessesWithOneInstanceIDEndWithOneOfThemAndNothingTwice(t *testing.T) {
	everywhere(t, func(l *live) {
		in, out := l.topic("in", 1), l.topic("sums", 1)
		same := func(c *stream.Config) { c.InstanceID = "twin" }
		first := l.run(l.sums, same)
		l.produce(in, "a", 1)
		l.wants(out, map[string]int64{"a": 1})
		second := l.run(l.sums, same)
		first.stops("SEMEL-INSTANCE", "group "+l.name, "instance twin", "stop one of the two")
		l.produce(in, "a", 2, 4)
		l.wants(out, map[string]int64{"a": 7})
		second.stop()
	})
}

func TestAGroupOfAnotherKindOfApplicationIsAnError(t *testing.T) {
	everywhere(t, func(l *live) {
		in := l.topic("in", 1)
		l.topic("sums", 1)
		joined := make(chan struct{}, 1)
		other, err := kgo.NewClient(append(l.cl.Opts(), kgo.ConsumerGroup(l.name), kgo.ConsumeTopics(in),
			kgo.OnPartitionsAssigned(func(context.Context, *kgo.Client, map[string][]int32) { joined <- struct{}{} }))...)
		l.ok(err)
		defer other.Close()
		<-joined
		l.run(l.sums, nil).stops("SEMEL-GROUP", "group "+l.name, "another kind of application")
	})
}

func TestAGroupThatReadOtherTopicsIsAnErrorBeforeAnythingIsMade(t *testing.T) {
	everywhere(t, func(l *live) {
		l.topic("in", 1)
		l.topic("sums", 1)
		other := l.topic("other", 1)
		offs := kadm.Offsets{}
		offs.AddOffset(other, 0, 0, -1)
		l.ok(l.adm.CommitAllOffsets(l.ctx(), l.name, offs))
		l.run(l.sums, nil).stops("SEMEL-APP-ID", "group "+l.name, other, "another AppID")
		if d, err := l.adm.ListTopics(l.ctx(), l.name+"-sums-changelog"); err == nil && d.Has(l.name+"-sums-changelog") {
			t.Error("its topics were made all the same")
		}
	})
}

func TestRecordsThatRetentionDeletedAreAnError(t *testing.T) {
	everywhere(t, func(l *live) {
		in, out := l.topic("in", 1), l.topic("sums", 1)
		a := l.run(l.sums, nil)
		l.produce(in, "a", 1)
		l.wants(out, map[string]int64{"a": 1})
		a.stop()
		l.produce(in, "a", 2, 4)
		offs := kadm.Offsets{}
		offs.AddOffset(in, 0, 2, -1)
		_, err := l.adm.DeleteRecords(l.ctx(), offs)
		l.ok(err)
		l.run(l.sums, nil).stops("SEMEL-OFFSET-GONE", in+"/0", "retention")
		l.wants(out, map[string]int64{"a": 1})
	})
}

func TestManySmallRecordsFitIntoATopicWithASmallLimit(t *testing.T) {
	everywhere(t, func(l *live) {
		in, out := l.topic("in", 1), l.topic("sums", 1, "max.message.bytes", "2000")
		var recs []*kgo.Record
		want := map[string]int64{}
		b, _ := codec.Int64.Append(nil, 1)
		for i := range 2000 {
			key := fmt.Sprintf("key-%04d", i)
			recs = append(recs, &kgo.Record{Topic: in, Key: []byte(key), Value: b})
			want[key] = 1
		}
		l.ok(l.cl.ProduceSync(l.ctx(), recs...).FirstErr())
		a := l.run(l.sums, nil)
		l.wants(out, want)
		a.stop()
	})
}

func TestALargeRecordFitsIntoATopicWithALargeLimit(t *testing.T) {
	everywhere(t, func(l *live) {
		in := l.topic("in", 1)
		out := l.topic("texts", 1, "max.message.bytes", "6000000")
		define := func(b *stream.Builder) {
			b.Stream(stream.NewTopic(in, codec.String, codec.Int64)).
				MapValues(func(n int64) string { return strings.Repeat("x", int(n)) }).
				GroupByKey().Reduce("longest", func(_, s string) string { return s },
				stream.ChangelogConfig(map[string]string{"max.message.bytes": "6000000"})).
				To(stream.NewTopic(out, codec.String, codec.String))
		}
		a := l.run(define, nil)
		l.produce(in, "a", 3_000_000)
		l.reads(out, 3_000_000)
		l.produce(in, "a", 7_000_000)
		a.stops("SEMEL-TOO-LARGE", "max.message.bytes")
		l.run(define, func(c *stream.Config) { c.OnError = stream.Skip }).stops("SEMEL-TOO-LARGE")
	})
}

// reads waits for a value of n bytes.
func (l *live) reads(topic string, n int) {
	l.t.Helper()
	cl, err := kgo.NewClient(append(l.cl.Opts(), kgo.ConsumeTopics(topic), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))...)
	l.ok(err)
	defer cl.Close()
	for found := false; !found; {
		fs := cl.PollFetches(l.ctx())
		l.ok(fs.Err0())
		fs.EachRecord(func(r *kgo.Record) { found = found || len(r.Value) == n })
	}
}
