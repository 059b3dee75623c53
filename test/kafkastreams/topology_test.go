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
	lines   stream.Topic[string, string]
	words   stream.Topic[string, int64]
	minutes stream.Topic[string, int64]
}

func topicsOf(app string) topics {
	return topics{
		lines:   stream.NewTopic(app+".lines", codec.String, codec.String),
		words:   stream.NewTopic(app+".word-counts", codec.String, codec.Int64),
		minutes: stream.NewTopic(app+".minute-counts", codec.String, codec.Int64),
	}
}

// wordCount is the topology of java/src/main/java/WordCount.java, with its names.
func wordCount(t topics) func(b *stream.Builder) {
	return func(b *stream.Builder) {
		words := b.Stream(t.lines).
			FlatMapValues(strings.Fields).
			SelectKey(func(_, word string) string { return word }).
			Repartition("by-word")
		words.GroupByKey().Count("counts").To(t.words)
		words.GroupByKey().Windowed(stream.Tumbling(time.Minute, 24*time.Hour)).Count("per-minute").
			ToStream(func(w stream.Windowed[string]) string { return minuteKey(w.Key, w.Start) }).
			To(t.minutes)
	}
}

func minuteKey(word string, minute time.Time) string {
	return fmt.Sprintf("%s@%d", word, minute.UnixMilli())
}
