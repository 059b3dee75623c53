package stream_test

import (
	"fmt"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/stream"
	"github.com/semelstream/semel/stream/streamtest"
)

func ExampleStream_Join() {
	prices := stream.NewTopic("prices", codec.String, codec.Int64) // by item
	orders := stream.NewTopic("orders", codec.String, codec.Int64) // by item: pieces
	totals := stream.NewTopic("totals", codec.String, codec.Int64)

	define := func(b *stream.Builder) {
		b.Stream(orders).
			Join(b.Table(prices, "prices"), func(pieces, price int64) int64 { return pieces * price }).
			To(totals)
	}

	streamtest.Run(define, func(d *streamtest.Driver) {
		d.Put(prices, "tea", 5)
		d.Put(orders, "tea", 2)
		d.Put(orders, "rice", 1) // has no price: dropped
		for _, r := range d.Out(totals) {
			fmt.Println(r.Key, r.Value)
		}
	})
	// Output: tea 10
}

func ExampleStream_LeftJoin() {
	names := stream.NewTopic("names", codec.String, codec.String)
	visits := stream.NewTopic("visits", codec.String, codec.String)
	greetings := stream.NewTopic("greetings", codec.String, codec.String)

	define := func(b *stream.Builder) {
		greet := func(page, name string, ok bool) string {
			if !ok {
				name = "stranger"
			}
			return "hello " + name + ", this is " + page
		}
		b.Stream(visits).
			LeftJoin(b.Table(names, "names"), greet).
			To(greetings)
	}

	streamtest.Run(define, func(d *streamtest.Driver) {
		d.Put(names, "1", "Ann")
		d.Put(visits, "1", "home")
		d.Put(visits, "2", "shop")
		for _, r := range d.Out(greetings) {
			fmt.Println(r.Value)
		}
	})
	// Output:
	// hello Ann, this is home
	// hello stranger, this is shop
}
