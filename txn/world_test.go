package txn

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/semelstream/semel/txn/internal/proxy"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
)

// A world is a cluster for one test: kfake, or the one at KAFKA_ADDR.
type world struct {
	testing.TB
	ctx   context.Context
	seeds []string
	fake  *kfake.Cluster // nil on a real Kafka
	net   *proxy.Proxy   // between the code under test and the cluster
	ask   *kgo.Client    // the test's own client, past the proxy
	adm   *kadm.Client
}

// patience is how long a test waits for what must come.
const patience = 60 * time.Second

func newWorld(t testing.TB, seeds []string) *world {
	w := &world{TB: t, seeds: seeds, net: proxy.New()}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	w.ctx = ctx
	w.ask = w.client()
	w.adm = kadm.NewClient(w.ask)
	t.Cleanup(func() { w.ask.Close(); cancel() })
	return w
}

func onFake(t testing.TB, opts ...kfake.Opt) *world {
	t.Helper()
	c, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(3), kfake.SleepOutOfOrder(),
		kfake.BrokerConfigs(map[string]string{"log.segment.bytes": "1048576"})}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	w := newWorld(t, c.ListenAddrs())
	w.fake = c
	return w
}

func onKafka(t testing.TB) *world {
	t.Helper()
	addr := os.Getenv("KAFKA_ADDR")
	if addr == "" {
		t.Skip("KAFKA_ADDR is not set")
	}
	return newWorld(t, strings.Split(addr, ","))
}

// both runs a test on kfake, and on a real Kafka if there is one.
func both(t *testing.T, f func(t *testing.T, w *world)) {
	t.Run("kfake", func(t *testing.T) { f(t, onFake(t)) })
	t.Run("kafka", func(t *testing.T) { f(t, onKafka(t)) })
}

// name is a name that nobody else uses.
func name(s string) string { return fmt.Sprintf("txn-%s-%08x", s, rand.Uint32()) }

// must fails the test on an error.
func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// client is past the proxy, with the library's options.
func (w *world) client(opts ...kgo.Opt) *kgo.Client {
	w.Helper()
	all := append(ClientOptions(), kgo.SeedBrokers(w.seeds...), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerLinger(0))
	cl, err := kgo.NewClient(append(all, opts...)...)
	w.must(err)
	return cl
}

// topic makes one.
func (w *world) topic(s string, parts int32, configs ...string) string {
	w.Helper()
	n := name(s)
	cfg := map[string]*string{}
	for i := 0; i+1 < len(configs); i += 2 {
		cfg[configs[i]] = &configs[i+1]
	}
	r, err := w.adm.CreateTopic(w.ctx, parts, 1, cfg, n)
	if err == nil {
		err = r.Err
	}
	w.must(err)
	if w.fake == nil {
		w.Cleanup(func() { w.adm.DeleteTopics(context.Background(), n) })
	}
	return n
}

// producer is behind the proxy and initialized.
func (w *world) producer(id string, opts ...kgo.Opt) *Producer {
	w.Helper()
	p := w.bareProducer(id, opts...)
	w.must(p.Init(w.ctx))
	return p
}

func (w *world) bareProducer(id string, opts ...kgo.Opt) *Producer {
	w.Helper()
	p, err := NewProducer(id, append([]kgo.Opt{kgo.SeedBrokers(w.seeds...), kgo.Dialer(w.net.Dial), kgo.ProducerLinger(0)}, opts...)...)
	w.must(err)
	w.Cleanup(p.Close)
	return p
}

// member joins a group that reads topic and returns how to commit as it.
func (w *world) member(group, topic string, opts ...kgo.Opt) (*kgo.Client, func() Member) {
	w.Helper()
	got := make(chan struct{}, 1)
	cl := w.client(append([]kgo.Opt{kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic), kgo.DisableAutoCommit(),
		kgo.OnPartitionsAssigned(func(context.Context, *kgo.Client, map[string][]int32) {
			select {
			case got <- struct{}{}:
			default:
			}
		})}, opts...)...)
	cl.PauseFetchTopics(topic)
	w.Cleanup(cl.CloseAllowingRebalance)
	select {
	case <-got:
	case <-w.ctx.Done():
		w.Fatal("no assignment")
	}
	instance, _ := cl.OptValue(kgo.InstanceID).(string)
	return cl, func() Member {
		id, generation := cl.GroupMetadata()
		return Member{Group: group, ID: id, Instance: instance, Generation: generation}
	}
}

// write writes records in a transaction of their own, so that markers are at
// the end of the partitions.
func (w *world) write(recs ...*kgo.Record) {
	w.Helper()
	p, err := NewProducer(name("feeder"), kgo.SeedBrokers(w.seeds...), kgo.ProducerLinger(0))
	w.must(err)
	defer p.Close()
	w.must(p.Init(w.ctx))
	var tps []TP
	for _, r := range recs {
		tps = append(tps, TP{Topic: r.Topic, Partition: r.Partition})
	}
	w.must(p.Add(w.ctx, tps))
	p.Produce(recs)
	w.must(p.Prepare(w.ctx, Member{}, nil))
	w.must(p.End(w.ctx, true))
}

func rec(topic string, part int32, key, value string) *kgo.Record {
	return &kgo.Record{Topic: topic, Partition: part, Key: []byte(key), Value: []byte(value)}
}

// stable is the committed offset of one partition, -1 if it has none.
func (w *world) stable(group, topic string, part int32) int64 {
	w.Helper()
	tp := TP{Topic: topic, Partition: part}
	offs, err := Committed(w.ctx, w.ask, group, []TP{tp}, nil)
	w.must(err)
	if o, ok := offs[tp]; ok {
		return o.At
	}
	return -1
}

// ends are the high watermarks.
func (w *world) ends(topic string) map[TP]int64 {
	w.Helper()
	l, err := w.adm.ListEndOffsets(w.ctx, topic)
	w.must(err)
	m := map[TP]int64{}
	l.Each(func(o kadm.ListedOffset) { m[TP{Topic: topic, Partition: o.Partition}] = o.Offset })
	return m
}

// committed reads topic read_committed from the start to the high watermark.
func (w *world) committed(topic string) []*kgo.Record {
	w.Helper()
	left := w.ends(topic)
	from := map[int32]kgo.Offset{}
	for tp, end := range left {
		from[tp.Partition] = kgo.NewOffset().At(0)
		if end == 0 {
			delete(left, tp)
		}
	}
	cl := w.client(kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: from}), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords(), kgo.FetchMaxWait(50*time.Millisecond))
	defer cl.Close()
	var recs []*kgo.Record
	for len(left) > 0 {
		fs := cl.PollFetches(w.ctx)
		if w.ctx.Err() != nil {
			w.Fatalf("%s: waiting for %v", topic, left)
		}
		fs.EachRecord(func(r *kgo.Record) {
			tp := TP{Topic: topic, Partition: r.Partition}
			if r.Offset+1 >= left[tp] {
				delete(left, tp)
			}
			if !r.Attrs.IsControl() {
				recs = append(recs, r)
			}
		})
	}
	return recs
}

// until asks again until ok.
func (w *world) until(what string, ok func() bool) {
	w.Helper()
	for !ok() {
		if err := sleep(w.ctx, 5*time.Millisecond); err != nil {
			w.Fatalf("waiting for %s: %v", what, err)
		}
	}
}
