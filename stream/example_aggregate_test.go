package stream_test

import (
	"fmt"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/stream"
	"github.com/semelstream/semel/stream/streamtest"
)

func ExampleGrouped_Count() {
	visits := stream.NewTopic("visits", codec.String, codec.String) // by visitor: page
	counts := stream.NewTopic("counts", codec.String, codec.Int64)  // by page

	define := func(b *stream.Builder) {
		b.Stream(visits).
			GroupBy(func(_, page string) string { return page }).
			Count("counts").
			To(counts)
	}

	streamtest.Run(define, func(d *streamtest.Driver) {
		d.Put(visits, "ann", "home")
		d.Put(visits, "bob", "home")
		d.Put(visits, "ann", "shop")
		fmt.Println(d.Last(counts))
	})
	// Output: map[home:2 shop:1]
}

func ExampleGrouped_Reduce() {
	bids := stream.NewTopic("bids", codec.String, codec.Int64)
	highest := stream.NewTopic("highest", codec.String, codec.Int64)

	define := func(b *stream.Builder) {
		b.Stream(bids).
			GroupByKey().
			Reduce("highest", func(best, bid int64) int64 { return max(best, bid) }).
			To(highest)
	}

	streamtest.Run(define, func(d *streamtest.Driver) {
		for _, n := range []int64{10, 30, 20} {
			d.Put(bids, "vase", n)
		}
		fmt.Println(d.Last(highest))
	})
	// Output: map[vase:30]
}

func ExampleGrouped_Aggregate() {
	type Mean struct{ Sum, N int64 }
	readings := stream.NewTopic("readings", codec.String, codec.Int64)
	means := stream.NewTopic("means", codec.String, codec.Int64)

	define := func(b *stream.Builder) {
		b.Stream(readings).
			GroupByKey().
			Aggregate("means", func(_ string, v int64, m Mean) Mean { return Mean{m.Sum + v, m.N + 1} },
				stream.ValueCodec(codec.JSON[Mean]())).
			MapValues(func(m Mean) int64 { return m.Sum / m.N }).
			To(means)
	}

	streamtest.Run(define, func(d *streamtest.Driver) {
		d.Put(readings, "hall", 20)
		d.Put(readings, "hall", 24)
		fmt.Println(d.Last(means))
	})
	// Output: map[hall:22]
}

func ExampleGrouped_Update() {
	moves := stream.NewTopic("moves", codec.String, codec.Int64)
	stock := stream.NewTopic("stock", codec.String, codec.Int64)

	define := func(b *stream.Builder) {
		b.Stream(moves).
			GroupByKey().
			Update("stock", func(_ string, n, left int64, _ bool) (int64, bool) {
				left += n
				return left, left > 0 // no row for what is sold out
			}).
			To(stock)
	}

	streamtest.Run(define, func(d *streamtest.Driver) {
		d.Put(moves, "tea", 5)
		d.Put(moves, "rice", 3)
		d.Put(moves, "tea", -5)
		fmt.Println(d.Last(stock))
	})
	// Output: map[rice:3]
}

func ExampleEmitEach() {
	clicks := stream.NewTopic("clicks", codec.String, codec.String)
	last := stream.NewTopic("last", codec.String, codec.Int64)
	each := stream.NewTopic("each", codec.String, codec.Int64)

	define := func(b *stream.Builder) {
		grouped := b.Stream(clicks).GroupByKey()
		grouped.Count("a").To(last)
		grouped.Count("b", stream.EmitEach()).To(each)
	}

	streamtest.Run(define, func(d *streamtest.Driver) {
		for range 3 { // in one transaction
			d.Put(clicks, "ann", "")
		}
		d.Commit()
		fmt.Println(len(d.Out(last)), len(d.Out(each)))
	}, streamtest.CommitByHand())
	// Output: 1 3
}
