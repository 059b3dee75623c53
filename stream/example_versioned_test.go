package stream_test

import (
	"fmt"
	"time"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/stream"
	"github.com/semelstream/semel/stream/streamtest"
)

func ExampleVersioned() {
	prices := stream.NewTopic("prices", codec.String, codec.Int64) // by item
	orders := stream.NewTopic("orders", codec.String, codec.Int64) // by item: pieces
	totals := stream.NewTopic("totals", codec.String, codec.Int64)

	define := func(b *stream.Builder) {
		b.Stream(orders).
			Join(b.Table(prices, "prices", stream.Versioned(time.Hour)), func(pieces, price int64) int64 { return pieces * price }).
			To(totals)
	}

	streamtest.Run(define, func(d *streamtest.Driver) {
		noon := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
		d.PutAt(prices, "tea", 5, noon)
		d.PutAt(prices, "tea", 6, noon.Add(10*time.Minute))
		d.PutAt(orders, "tea", 2, noon.Add(9*time.Minute)) // late, and still for the old price
		d.PutAt(orders, "tea", 2, noon.Add(11*time.Minute))
		for _, r := range d.Out(totals) {
			fmt.Println(r.Key, r.Value)
		}
	})
	// Output:
	// tea 10
	// tea 12
}

func ExampleWait() {
	prices := stream.NewTopic("prices", codec.String, codec.Int64) // by item
	orders := stream.NewTopic("orders", codec.String, codec.Int64) // by item: pieces
	totals := stream.NewTopic("totals", codec.String, codec.Int64)

	define := func(b *stream.Builder) {
		table := b.Table(prices, "prices", stream.Versioned(time.Hour))
		b.Stream(orders).
			Join(table, func(pieces, price int64) int64 { return pieces * price }, stream.Wait("orders-that-wait", time.Minute)).
			To(totals)
	}

	streamtest.Run(define, func(d *streamtest.Driver) {
		noon := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
		d.PutAt(orders, "tea", 2, noon.Add(5*time.Second))
		d.PutAt(prices, "tea", 5, noon) // comes after the order, but was the price before it
		d.PutAt(orders, "tea", 3, noon.Add(2*time.Minute))
		for _, r := range d.Out(totals) { // the second order still waits
			fmt.Println(r.Key, r.Value)
		}
	})
	// Output: tea 10
}
