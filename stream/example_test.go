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
	Lines  = stream.NewTopic("lines", codec.String, codec.String)
	Counts = stream.NewTopic("word-counts", codec.String, codec.Int64)
)

func Topology(b *stream.Builder) {
	b.Stream(Lines).
		FlatMapValues(strings.Fields).
		MapValues(strings.ToLower).
		GroupBy(func(_, word string) string { return word }).
		Count("counts").
		To(Counts)
}

// Word count, run without a broker. The examples of the operators are all like
// this one: a topology, records put in, records that come out.
func Example() {
	streamtest.Run(Topology, func(d *streamtest.Driver) {
		d.Put(Lines, "1", "to be or not to be")
		fmt.Println(d.Last(Counts))
	})
	// Output: map[be:2 not:1 or:1 to:2]
}

// A program runs until its context ends. Everything but AppID and Brokers has
// a default.
func ExampleRun() {
	ctx, stop := context.WithCancel(context.Background())
	stop() // else it would run for ever

	err := stream.Run(ctx, Topology, stream.Config{
		AppID:    "wordcount",
		Brokers:  []string{"localhost:9092"},
		StateDir: "",
		Workers:  2,
		InMemory: true,
	})
	fmt.Println(err)
	// Output: <nil>
}

func ExampleTopology_Describe() {
	topology, err := stream.Build(Topology)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(topology.Describe())
	// Output:
}

// Build reports every mistake of a topology, with the line that made it.
func ExampleBuild() {
	_, err := stream.Build(func(b *stream.Builder) {
		b.Stream(Lines).GroupByKey().Count("").To(Counts)
		b.Stream(Lines).Filter(nil).To(Lines.Named("copies"))
	})
	fmt.Println(err)
	// Output:
}
