package stream_test

import (
	"fmt"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/stream"
	"github.com/semelstream/semel/stream/streamtest"
)

func ExampleStream_Peek() {
	orders := stream.NewTopic("orders", codec.String, codec.String)
	copies := stream.NewTopic("copies", codec.String, codec.String)

	define := func(b *stream.Builder) {
		b.Stream(orders).
			Peek(func(key, item string) { fmt.Println("passing:", key, item) }).
			To(copies)
	}

	streamtest.Run(define, func(d *streamtest.Driver) {
		d.Put(orders, "1", "tea")
		fmt.Println(len(d.Out(copies)), "copied")
	})
	// Output:
	// passing: 1 tea
	// 1 copied
}

func ExampleStream_ForEach() {
	orders := stream.NewTopic("orders", codec.String, codec.String)

	define := func(b *stream.Builder) {
		// What f does outside of Kafka is done again after an abort.
		b.Stream(orders).ForEach(func(key, item string) error {
			fmt.Println(key, item)
			return nil
		})
	}

	streamtest.Run(define, func(d *streamtest.Driver) {
		d.Put(orders, "1", "tea")
		d.Put(orders, "2", "rice")
	})
	// Output:
	// 1 tea
	// 2 rice
}

func ExampleStream_Merge() {
	web := stream.NewTopic("web-orders", codec.String, codec.String)
	shop := web.Named("shop-orders")
	all := web.Named("orders")

	define := func(b *stream.Builder) {
		b.Stream(web).
			Merge(b.Stream(shop)).
			To(all)
	}

	streamtest.Run(define, func(d *streamtest.Driver) {
		d.Put(web, "1", "tea")
		d.Put(shop, "2", "rice")
		for _, r := range d.Out(all) {
			fmt.Println(r.Key, r.Value)
		}
	})
	// Output:
	// 1 tea
	// 2 rice
}

func ExampleStream_Repartition() {
	orders := stream.NewTopic("orders", codec.String, codec.String) // by number
	items := stream.NewTopic("items", codec.String, codec.String)

	define := func(b *stream.Builder) {
		// What follows runs in the task of its key, over a topic with twelve partitions.
		b.Stream(orders).
			SelectKey(func(_, item string) string { return item }).
			Repartition("by-item", stream.Partitions(12)).
			To(items)
	}

	streamtest.Run(define, func(d *streamtest.Driver) {
		d.Put(orders, "1", "tea")
		fmt.Println(len(d.Out(items)), d.Topics())
	})
	// Output: 1 [app-by-item-repartition app-semel-topology items orders]
}
