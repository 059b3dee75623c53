package seamtest

import (
	"strings"
	"time"

	"github.com/semelstream/semel/internal/seam"
	"github.com/twmb/franz-go/pkg/kgo"
)

var admin = suite{
	{"the cluster is fit", func(c *kase) { c.ok(c.Broker.Check(c.ctx)) }},
	{"creating a topic twice is no error", func(c *kase) {
		n := c.name("topic")
		spec := seam.TopicSpec{Name: n, Partitions: 3, Replication: -1, Config: map[string]string{"cleanup.policy": "compact"}}
		c.ok(c.Broker.Create(c.ctx, []seam.TopicSpec{spec}))
		c.ok(c.Broker.Create(c.ctx, []seam.TopicSpec{spec, {Name: n + "-2", Partitions: 1, Replication: -1}}))
		got := must[map[string]seam.Topic](c)(c.Broker.Topics(c.ctx, n, n+"-2"))
		if len(got) != 2 || got[n].Partitions != 3 || got[n].Config["cleanup.policy"] != "compact" {
			c.Fatalf("topics %v", got)
		}
		if got[n].Config["max.message.bytes"] == "" || got[n].Config["retention.ms"] == "" {
			c.Fatalf("config %v", got[n].Config)
		}
	}},
	{"Topics leaves out what does not exist", func(c *kase) {
		n := c.topic(2)
		got := must[map[string]seam.Topic](c)(c.Broker.Topics(c.ctx, n, c.name("missing")))
		if len(got) != 1 || got[n].Partitions != 2 {
			c.Fatalf("topics %v", got)
		}
		if got := must[map[string]seam.Topic](c)(c.Broker.Topics(c.ctx, c.name("missing"))); len(got) != 0 {
			c.Fatalf("topics %v", got)
		}
	}},
	{"AllTopics has every topic with its partitions, and not Kafka's own", func(c *kase) {
		one, three := c.topic(1), c.topic(3)
		c.await("both are listed", func() bool {
			all := must[map[string]int32](c)(c.Broker.AllTopics(c.ctx))
			return all[one] == 1 && all[three] == 3
		})
		c.join() // there are topics of Kafka's own by now
		for name := range must[map[string]int32](c)(c.Broker.AllTopics(c.ctx)) {
			if strings.HasPrefix(name, "__consumer") {
				c.Fatalf("%s is listed", name)
			}
		}
	}},
	{"a new topic begins and ends at 0", func(c *kase) {
		tp := c.tp()
		for what, f := range map[string]func() (map[seam.TP]int64, error){
			"Starts": func() (map[seam.TP]int64, error) { return c.Broker.Starts(c.ctx, []seam.TP{tp}) },
			"Ends":   func() (map[seam.TP]int64, error) { return c.Broker.Ends(c.ctx, []seam.TP{tp}) },
			"Stable": func() (map[seam.TP]int64, error) { return c.Broker.Stable(c.ctx, []seam.TP{tp}) },
			"Since":  func() (map[seam.TP]int64, error) { return c.Broker.Since(c.ctx, []seam.TP{tp}, time.UnixMilli(1)) },
		} {
			if got := must[map[seam.TP]int64](c)(f()); len(got) != 1 || got[tp] != 0 {
				c.Fatalf("%s: %v", what, got)
			}
		}
	}},
	{"Starts moves with Purge", func(c *kase) {
		topic := c.topic(2)
		a, b := seam.TP{Topic: topic}, seam.TP{Topic: topic, Partition: 1}
		c.put(a, "1", "2", "3")
		c.put(b, "4")
		c.settle(a, 4)
		c.ok(c.Broker.Purge(c.ctx, map[seam.TP]int64{a: 2}))
		got := must[map[seam.TP]int64](c)(c.Broker.Starts(c.ctx, []seam.TP{a, b}))
		if got[a] != 2 || got[b] != 0 {
			c.Fatalf("starts %v", got)
		}
		c.equal(c.read(a, 2), []string{"3"})
		c.ok(c.Broker.Purge(c.ctx, map[seam.TP]int64{a: 4}))
		got = must[map[seam.TP]int64](c)(c.Broker.Starts(c.ctx, []seam.TP{a}))
		if got[a] != 4 {
			c.Fatalf("starts %v, it ends at 4", got)
		}
	}},
	{"CommittedTopics are those of which the group has offsets, also when nobody is in it", func(c *kase) {
		a, b := c.topic(2), c.topic(1)
		g := c.group(seam.Sub{Topics: []string{a}, Tasks: 2}, seam.Sub{Topics: []string{b}, Tasks: 1})
		if got := must[[]string](c)(c.Broker.CommittedTopics(c.ctx, g.Group)); len(got) != 0 {
			c.Fatalf("a group that never was has offsets of %v", got)
		}
		m := c.enter(g, "a")
		m.awaitTasks("0_0 0_1 1_0")
		c.ok(c.Broker.Commit(c.ctx, m.Member(), seam.Offsets{{Topic: a, Partition: 1}: {At: 0, Epoch: -1}}))
		c.equal(must[[]string](c)(c.Broker.CommittedTopics(c.ctx, g.Group)), []string{a})
		m.Close(true)
		c.equal(must[[]string](c)(c.Broker.CommittedTopics(c.ctx, g.Group)), []string{a})
	}},
	{"Since finds the first record that is not older", func(c *kase) {
		tp := c.tp()
		x := c.txn(c.name("txn"))
		// In times to come: markers, too, have a time, which is now.
		begin := c.Clock.Now().Truncate(time.Millisecond).Add(10 * time.Minute)
		for i := range 4 { // a batch each
			c.ok(x.Add(c.ctx, []seam.TP{tp}))
			x.Produce([]*kgo.Record{{Topic: tp.Topic, Value: []byte("v"), Timestamp: begin.Add(time.Duration(i) * time.Minute)}})
			c.ok(x.Prepare(c.ctx, seam.Member{}, nil))
			c.ok(x.End(c.ctx, true))
			c.settle(tp, int64(2*i+2)) // its marker follows it, and not the next record
		}
		since := func(t time.Time) int64 {
			c.Helper()
			return must[map[seam.TP]int64](c)(c.Broker.Since(c.ctx, []seam.TP{tp}, t))[tp]
		}
		for _, x := range []struct {
			after time.Duration
			want  int64
		}{{-24 * time.Hour, 0}, {0, 0}, {time.Minute, 2}, {2*time.Minute - time.Millisecond, 4}, {2 * time.Minute, 4}, {4 * time.Minute, 8}} {
			if got := since(begin.Add(x.after)); got != x.want {
				c.Fatalf("since %v: %d, want %d", x.after, got, x.want)
			}
		}
	}},
}
