package stream_test

import (
	"fmt"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/stream"
	"github.com/semelstream/semel/stream/streamtest"
)

func ExampleGrouped_Cogroup() {
	type Customer struct{ Orders, Complaints int64 }
	orders := stream.NewTopic("orders", codec.String, codec.String)         // by customer: item
	complaints := stream.NewTopic("complaints", codec.String, codec.String) // by customer: text
	customers := stream.NewTopic("customers", codec.String, codec.JSON[Customer]())

	define := func(b *stream.Builder) {
		b.Stream(orders).GroupByKey().
			Cogroup(func(_, _ string, c Customer, _ bool) (Customer, bool) { c.Orders++; return c, true }).
			With(b.Stream(complaints).GroupByKey(),
				func(_, _ string, c Customer, _ bool) (Customer, bool) { c.Complaints++; return c, true }).
			ToTable("customers").
			To(customers)
	}

	streamtest.Run(define, func(d *streamtest.Driver) {
		d.Put(orders, "ann", "tea")
		d.Put(complaints, "ann", "cold")
		d.Put(orders, "ann", "coffee")
		fmt.Println(d.Last(customers))
	})
	// Output: map[ann:{2 1}]
}
