package stream_test

import (
	"fmt"
	"time"

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

// Clicks and purchases of a visit, which ends when nothing came for half an hour.
func ExampleCogrouped_ToSessions() {
	type Visit struct{ Clicks, Bought int64 }
	clicks := stream.NewTopic("clicks", codec.String, codec.String)
	purchases := stream.NewTopic("purchases", codec.String, codec.Int64)
	visits := stream.NewTopic("visits", codec.String, codec.JSON[Visit]())

	define := func(b *stream.Builder) {
		b.Stream(clicks).GroupByKey().
			Cogroup(func(_, _ string, v Visit, _ bool) (Visit, bool) { v.Clicks++; return v, true }).
			With(b.Stream(purchases).GroupByKey(),
				func(_ string, n int64, v Visit, _ bool) (Visit, bool) { v.Bought += n; return v, true }).
			ToSessions("visits", 30*time.Minute, 0,
				func(_ string, a, b Visit) Visit { return Visit{a.Clicks + b.Clicks, a.Bought + b.Bought} }).
			Final().
			Unwindowed().
			To(visits)
	}

	streamtest.Run(define, func(d *streamtest.Driver) {
		d.PutAt(clicks, "ann", "tea", second(0))
		d.PutAt(purchases, "ann", 2, second(600))
		d.PutAt(clicks, "ann", "coffee", second(1200))
		d.PutAt(clicks, "ann", "tea", second(7200)) // another visit
		for _, r := range d.Out(visits) {
			fmt.Println(r.Key, r.Value.Clicks, r.Value.Bought)
		}
	})
	// Output: ann 2 2
}

// Both streams count in the same hours.
func ExampleCogrouped_ToWindows() {
	hits := stream.NewTopic("hits", codec.String, codec.String)
	errors := stream.NewTopic("errors", codec.String, codec.String)
	ratios := stream.NewTopic("ratios", stream.WindowKey(codec.String, time.Hour), codec.String)
	type Hour struct{ Hits, Errors int64 }

	define := func(b *stream.Builder) {
		b.Stream(hits).GroupByKey().
			Cogroup(func(_, _ string, h Hour, _ bool) (Hour, bool) { h.Hits++; return h, true }).
			With(b.Stream(errors).GroupByKey(),
				func(_, _ string, h Hour, _ bool) (Hour, bool) { h.Errors++; return h, true }).
			ToWindows("hours", stream.Tumbling(time.Hour, time.Minute), stream.ValueCodec(codec.JSON[Hour]())).
			MapValues(func(h Hour) string { return fmt.Sprintf("%d of %d", h.Errors, h.Hits) }).
			To(ratios)
	}

	streamtest.Run(define, func(d *streamtest.Driver) {
		d.PutAt(hits, "shop", "/", second(10))
		d.PutAt(hits, "shop", "/tea", second(20))
		d.PutAt(errors, "shop", "/tea", second(21))
		d.PutAt(hits, "shop", "/", second(3600))
		for key, ratio := range d.Last(ratios) {
			if key.Start.Unix() == 0 {
				fmt.Println(key.Key, ratio)
			}
		}
	})
	// Output: shop 1 of 2
}
