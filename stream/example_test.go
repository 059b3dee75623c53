package stream_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/stream"
	"github.com/semelstream/semel/stream/streamtest"
)

var (
	textLines  = stream.NewTopic("lines", codec.String, codec.String)
	wordCounts = stream.NewTopic("word-counts", codec.String, codec.Int64)
)

func wordCount(b *stream.Builder) {
	b.Stream(textLines).
		FlatMapValues(strings.Fields).
		MapValues(strings.ToLower).
		GroupBy(func(_, word string) string { return word }).
		Count("counts").
		To(wordCounts)
}

// Word count, run without a broker. The examples of the operators are all like
// this one: a topology, records put in, records that come out.
func Example() {
	streamtest.Run(wordCount, func(d *streamtest.Driver) {
		d.Put(textLines, "1", "to be or not to be")
		fmt.Println(d.Last(wordCounts))
	})
	// Output: map[be:2 not:1 or:1 to:2]
}

// A program runs until its context ends. Everything but AppID and Brokers has
// a default.
func ExampleRun() {
	ctx, stop := context.WithCancel(context.Background())
	stop() // else it would run for ever

	err := stream.Run(ctx, wordCount, stream.Config{
		AppID:    "wordcount",
		Brokers:  []string{"localhost:9092"},
		Workers:  2,
		InMemory: true,
	})
	fmt.Println(err)
	// Output: <nil>
}

func ExampleTopology_Describe() {
	topology, err := stream.Build(wordCount)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(topology.Describe())
	// Output:
	// sub-topology 0
	//   source-1: source reads topic "lines"
	//   flat-map-values-1: flat-map-values of source-1
	//   map-values-1: map-values of flat-map-values-1
	//   select-key-1: select-key of map-values-1
	//   counts-repartition-sink: sink of select-key-1 writes repartition topic "counts"
	// sub-topology 1
	//   counts-repartition-source: source reads repartition topic "counts"
	//   counts: count of counts-repartition-source uses store "counts"
	//   to-stream-1: to-stream of counts
	//   sink-1: sink of to-stream-1 writes topic "word-counts"
	//   store "counts": key-value, changelog
}
