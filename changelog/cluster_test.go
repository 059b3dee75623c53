package changelog_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semelstream/semel/changelog"
	"github.com/semelstream/semel/internal/seam"
)

// A cluster is a broker and a changelog on it.
type cluster struct {
	*testing.T
	addrs []string
	fake  *kfake.Cluster // nil if it is a real one
	adm   *kadm.Client
	tp    seam.TP
}

// everywhere runs f on an embedded broker and, if KAFKA_ADDR names one, on a
// real Kafka, with a new changelog of two partitions.
func everywhere(t *testing.T, f func(c *cluster)) {
	t.Run("kfake", func(t *testing.T) {
		k, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.BrokerConfigs(map[string]string{"log.segment.bytes": "1048576"}))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(k.Close)
		f(newCluster(t, k.ListenAddrs(), k))
	})
	t.Run("kafka", func(t *testing.T) {
		if os.Getenv("KAFKA_ADDR") == "" {
			t.Skip("KAFKA_ADDR is not set")
		}
		f(newCluster(t, strings.Split(os.Getenv("KAFKA_ADDR"), ","), nil))
	})
}

func newCluster(t *testing.T, addrs []string, fake *kfake.Cluster) *cluster {
	c := &cluster{T: t, addrs: addrs, fake: fake}
	c.adm = kadm.NewClient(c.client())
	app := fmt.Sprintf("changelogtest-%08x", rand.Uint32())
	s := changelog.Spec(app, "rows", 2, -1, map[string]string{
		// As soon as something can be compacted, it is.
		"segment.ms": "50", "min.cleanable.dirty.ratio": "0", "delete.retention.ms": "0", "max.compaction.lag.ms": "50",
	})
	config := map[string]*string{}
	for k, v := range s.Config {
		config[k] = &v
	}
	if _, err := c.adm.CreateTopic(c.ctx(), s.Partitions, s.Replication, config, s.Name); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		c.adm.DeleteTopic(ctx, s.Name)
	})
	c.tp = seam.TP{Topic: s.Name}
	return c
}

func (c *cluster) ctx() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 90*time.Second)
	c.Cleanup(cancel)
	return ctx
}

func (c *cluster) ok(err error) {
	c.Helper()
	if err != nil {
		c.Fatal(err)
	}
}

func (c *cluster) client(opts ...kgo.Opt) *kgo.Client {
	cl, err := kgo.NewClient(append(opts, kgo.SeedBrokers(c.addrs...), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.MetadataMinAge(50*time.Millisecond), kgo.UnknownTopicRetries(100))...)
	c.ok(err)
	c.Cleanup(cl.Close)
	return cl
}

func (c *cluster) reader() *changelog.Reader {
	r, err := changelog.NewReader(kgo.SeedBrokers(c.addrs...), kgo.MetadataMinAge(50*time.Millisecond))
	c.ok(err)
	c.Cleanup(r.Close)
	return r
}

// A producer writes transactions of its own.
type producer struct {
	c  *cluster
	cl *kgo.Client
}

func (c *cluster) producer() producer {
	return producer{c, c.client(kgo.TransactionalID(fmt.Sprintf("changelogtest-%08x", rand.Uint32())))}
}

// begin writes the words into an open transaction.
func (p producer) begin(tp seam.TP, words string) {
	p.c.Helper()
	p.c.ok(p.cl.BeginTransaction())
	now := time.Now().Truncate(time.Millisecond)
	var recs []*kgo.Record
	for i, w := range strings.Fields(words) {
		r := word(tp, int64(i), w)
		r.Timestamp = now // the embedded broker would let old ones expire
		recs = append(recs, r)
	}
	p.c.ok(p.cl.ProduceSync(p.c.ctx(), recs...).FirstErr())
}

// end ends it, and waits until its marker is in the log.
func (p producer) end(tp seam.TP, how kgo.TransactionEndTry) {
	p.c.Helper()
	was := p.c.end(tp)
	p.cl.PurgeTopicsFromProducing("no-topic") // the client has noted its topics now, see txn/learn.go
	p.c.ok(p.cl.EndTransaction(p.c.ctx(), how))
	p.c.await("the marker", func() bool { return p.c.end(tp) > was })
}

// write is a log in the words of a fakeLog, without holes.
func (p producer) write(tp seam.TP, words string) {
	p.c.Helper()
	open := ""
	for _, w := range strings.Fields(words) {
		switch w {
		case "commit", "abort":
			p.begin(tp, open)
			p.end(tp, kgo.TransactionEndTry(w == "commit"))
			open = ""
		default:
			open += " " + w
		}
	}
	if open != "" {
		p.begin(tp, open)
	}
}

// await asks until cond holds.
func (c *cluster) await(what string, cond func() bool) {
	c.Helper()
	for ctx := c.ctx(); !cond(); {
		if ctx.Err() != nil {
			c.Fatalf("never: %s", what)
		}
		time.Sleep(time.Millisecond) //nolint:forbidigo // between two questions; nothing depends on it
	}
}

func (c *cluster) offset(tp seam.TP, list func(context.Context, ...string) (kadm.ListedOffsets, error)) int64 {
	c.Helper()
	l, err := list(c.ctx(), tp.Topic)
	c.ok(err)
	o, _ := l.Lookup(tp.Topic, tp.Partition)
	c.ok(o.Err)
	return o.Offset
}

func (c *cluster) end(tp seam.TP) int64   { c.Helper(); return c.offset(tp, c.adm.ListEndOffsets) }
func (c *cluster) start(tp seam.TP) int64 { c.Helper(); return c.offset(tp, c.adm.ListStartOffsets) }

// deleteBefore is DeleteRecords, which Kafka refuses for a topic that is only
// compacted: it stands for the retention of a store with windows.
func (c *cluster) deleteBefore(tp seam.TP, at int64) {
	c.Helper()
	policy := "compact,delete"
	alters, err := c.adm.AlterTopicConfigs(c.ctx(), []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "cleanup.policy", Value: &policy}}, tp.Topic)
	c.ok(err)
	for _, a := range alters {
		c.ok(a.Err)
	}
	c.await("records are deleted", func() bool {
		deleted, err := c.adm.DeleteRecords(c.ctx(), kadm.Offsets{tp.Topic: {tp.Partition: {Topic: tp.Topic, Partition: tp.Partition, At: at}}})
		c.ok(err)
		err = deleted.Error()
		if !errors.Is(err, kerr.PolicyViolation) { // the broker has not heard of the new policy
			c.ok(err)
		}
		return err == nil
	})
	if got := c.start(tp); got != at {
		c.Fatalf("the log starts at %d, not %d", got, at)
	}
}

// data are the offsets of the data records that are in the log, committed or
// not, below end.
func (c *cluster) data(tp seam.TP, end int64) (offsets []int64) {
	c.Helper()
	cl := c.client(kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{tp.Topic: {tp.Partition: kgo.NewOffset().AtStart()}}), kgo.KeepControlRecords())
	defer cl.Close()
	for at := int64(0); at < end; {
		fs := cl.PollFetches(c.ctx())
		c.ok(fs.Err())
		fs.EachRecord(func(r *kgo.Record) {
			if at = r.Offset + 1; !r.Attrs.IsControl() {
				offsets = append(offsets, r.Offset)
			}
		})
	}
	return offsets
}

// compact waits until of the data below end only the offsets in keep are left.
// The last segment is not compacted: each round appends to the other side of
// end.
func (c *cluster) compact(p producer, end int64, keep ...int64) {
	c.Helper()
	c.await(fmt.Sprint("compaction to ", keep), func() bool {
		p.write(c.tp, "roll=1 commit")
		if c.fake != nil {
			c.fake.Compact()
		} else {
			time.Sleep(500 * time.Millisecond) //nolint:forbidigo // the cleaner comes every 15 s
		}
		got := slices.DeleteFunc(c.data(c.tp, c.end(c.tp)), func(o int64) bool { return o >= end })
		return slices.Equal(got, keep)
	})
}

// restoreAll brings targets up to now.
func (c *cluster) restoreAll(targets map[seam.TP]target) {
	c.Helper()
	to := map[seam.TP]changelog.Target{}
	for tp, t := range targets {
		to[tp] = t
	}
	c.ok(changelog.Restore(c.ctx(), c.reader(), to))
	for _, tp := range slices.Collect(maps.Keys(to)) {
		if at, end := to[tp].Position(), c.end(tp); at != end {
			c.Errorf("position %d of %v, end %d", at, tp, end)
		}
	}
}

func (c *cluster) restore(to target) {
	c.Helper()
	c.restoreAll(map[seam.TP]target{c.tp: to})
}
