// Package kafkastreams_test takes a real Kafka Streams application over, and
// hands it back. The application is in the folder java.
package kafkastreams_test

import (
	"fmt"
	"strings"
	"time"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/stream"
)

// The topics of an application begin with its id and a dot.
type topics struct {
	lines                              stream.Topic[string, string]
	words, seconds, suppressed, closed stream.Topic[string, int64]
}

func topicsOf(app string) topics {
	count := func(name string) stream.Topic[string, int64] {
		return stream.NewTopic(app+"."+name, codec.String, codec.Int64)
	}
	return topics{
		lines: stream.NewTopic(app+".lines", codec.String, codec.String),
		words: count("word-counts"), seconds: count("second-counts"), suppressed: count("suppressed"), closed: count("closed"),
	}
}

func (t topics) results() []string {
	return []string{t.words.Name, t.seconds.Name, t.suppressed.Name, t.closed.Name}
}

// wordCount is the topology of java/src/main/java/WordCount.java, with its names.
func wordCount(t topics) func(b *stream.Builder) {
	return func(b *stream.Builder) {
		words := b.Stream(t.lines).
			FlatMapValues(strings.Fields).
			SelectKey(func(_, word string) string { return word }).
			Repartition("by-word")
		words.GroupByKey().Count("counts").To(t.words)
		seconds := stream.Tumbling(time.Second, grace)
		perSecond := words.GroupByKey().Windowed(seconds).Count("per-second")
		perSecond.ToStream(windowKey).To(t.seconds)
		perSecond.Final().ToStream(windowKey).To(t.suppressed)
		words.GroupByKey().Windowed(seconds).Count("closed", stream.Retain(time.Hour)).Final().ToStream(windowKey).To(t.closed)
	}
}

const grace = 40 * time.Second

func windowKey(w stream.Windowed[string]) string { return secondKey(w.Key, w.Start) }

func secondKey(word string, second time.Time) string {
	return fmt.Sprintf("%s@%d", word, second.UnixMilli())
}
