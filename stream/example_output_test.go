package stream_test

import (
	"fmt"
	"strconv"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/stream"
	"github.com/semelstream/semel/stream/streamtest"
)

func ExampleBuilder_Output() {
	texts := stream.NewTopic("texts", codec.String, codec.String)
	numbers := stream.NewTopic("numbers", codec.String, codec.Int64)
	others := stream.NewTopic("others", codec.String, codec.String)

	define := func(b *stream.Builder) {
		rejected := b.Output[string, string]("rejected")
		b.Stream(texts).
			Process(func(c *stream.Context[string, int64], r stream.Record[string, string]) error {
				n, err := strconv.ParseInt(r.Value, 10, 64)
				if err != nil {
					return rejected.Emit(c, r)
				}
				return c.Emit(r.WithValue(n))
			}, stream.Uses(rejected)).
			To(numbers)
		rejected.Stream().To(others)
	}

	streamtest.Run(define, func(d *streamtest.Driver) {
		d.Put(texts, "a", "12")
		d.Put(texts, "a", "twelve")
		fmt.Println(d.Last(numbers), d.Last(others))
	})
	// Output: map[a:12] map[a:twelve]
}

func ExampleStream_Route() {
	events := stream.NewTopic("events", codec.String, codec.String) // by region
	north, south := events.Named("events-north"), events.Named("events-south")

	define := func(b *stream.Builder) {
		b.Stream(events).Route(func(r stream.Record[string, string]) stream.Topic[string, string] {
			return events.Named("events-" + r.Key)
		})
	}

	streamtest.Run(define, func(d *streamtest.Driver) {
		d.Put(events, "north", "rain")
		d.Put(events, "south", "sun")
		d.Put(events, "north", "snow")
		fmt.Println(len(d.Out(north)), len(d.Out(south)))
	}, streamtest.Topics(north.Name, south.Name))
	// Output: 2 1
}
