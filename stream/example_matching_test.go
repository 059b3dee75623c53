package stream_test

import (
	"fmt"
	"regexp"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/stream"
	"github.com/semelstream/semel/stream/streamtest"
)

func ExampleMatching() {
	orders := stream.NewTopic("orders", codec.String, codec.Int64) // the name is not used
	totals := stream.NewTopic("totals", codec.String, codec.Int64)

	define := func(b *stream.Builder) {
		b.Stream(orders, stream.Matching(regexp.MustCompile("orders-[a-z]+"))).
			GroupBy(func(customer string, _ int64) string { return customer }).
			Reduce("totals", func(a, b int64) int64 { return a + b }).
			To(totals)
	}

	streamtest.Run(define, func(d *streamtest.Driver) {
		d.Put(orders.Named("orders-de"), "ann", 5)
		d.Put(orders.Named("orders-fr"), "ann", 7)
		fmt.Println(d.Last(totals))
	})
	// Output: map[ann:12]
}
