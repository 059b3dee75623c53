package stream_test

import (
	"regexp"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/stream"
)

// Two instances, of which one leads the group and either may hear of a topic
// first.
func TestTopicsThatMatchComeAndGoOnAClusterWithoutARestart(t *testing.T) {
	everywhere(t, func(l *live) {
		names := regexp.MustCompile(regexp.QuoteMeta(l.name) + "-in-.*")
		define := func(b *stream.Builder) {
			b.Stream(anyOrders, stream.Matching(names)).Repartition("all", stream.Partitions(2)).
				GroupByKey().Reduce("sums", func(a, b int64) int64 { return a + b }).
				To(stream.NewTopic(l.name+"-sums", codec.String, codec.Int64))
		}
		out := l.topic("sums", 2)
		apps := []*liveApp{l.run(define, nil), l.run(define, nil)} // nothing matches yet
		a := l.topic("in-a", 1)
		l.produce(a, "k", 1)
		l.wants(out, map[string]int64{"k": 1})

		b := l.topic("in-b", 3)
		v, _ := codec.Int64.Append(nil, 2)
		l.ok(l.cl.ProduceSync(l.ctx(), &kgo.Record{Topic: b, Partition: 2, Key: []byte("k"), Value: v}).FirstErr())
		l.wants(out, map[string]int64{"k": 3})
		l.produce(a, "k", 4)
		l.wants(out, map[string]int64{"k": 7})

		l.produce(b, "k", 8)
		l.wants(out, map[string]int64{"k": 15})
		_, err := l.adm.DeleteTopics(l.ctx(), b)
		l.ok(err)
		l.produce(a, "k", 16)
		l.wants(out, map[string]int64{"k": 31})
		c := l.topic("in-c", 1)
		l.produce(c, "k", 32)
		l.wants(out, map[string]int64{"k": 63})
		for _, app := range apps {
			app.stop()
		}
	})
}
