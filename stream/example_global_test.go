package stream_test

import (
	"fmt"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/stream"
	"github.com/semelstream/semel/stream/streamtest"
)

func ExampleStream_JoinGlobal() {
	rates := stream.NewTopic("rates", codec.String, codec.Int64)    // by country: percent
	orders := stream.NewTopic("orders", codec.String, codec.String) // by customer: country
	taxes := stream.NewTopic("taxes", codec.String, codec.Int64)

	define := func(b *stream.Builder) {
		b.Stream(orders).
			JoinGlobal(b.GlobalTable(rates, "rates"),
				func(_, country string) (string, bool) { return country, country != "" },
				func(_ string, percent int64) int64 { return percent }).
			To(taxes)
	}

	streamtest.Run(define, func(d *streamtest.Driver) {
		d.Put(rates, "AT", 20)
		d.Put(orders, "ann", "AT")
		d.Put(orders, "bob", "XX") // has no rate: dropped
		for _, r := range d.Out(taxes) {
			fmt.Println(r.Key, r.Value)
		}
	})
	// Output: ann 20
}

func ExampleStream_LeftJoinGlobal() {
	rates := stream.NewTopic("rates", codec.String, codec.Int64)
	orders := stream.NewTopic("orders", codec.String, codec.String)
	taxes := stream.NewTopic("taxes", codec.String, codec.Int64)

	define := func(b *stream.Builder) {
		b.Stream(orders).
			LeftJoinGlobal(b.GlobalTable(rates, "rates"),
				func(_, country string) (string, bool) { return country, country != "" },
				func(_ string, percent int64, ok bool) int64 {
					if !ok {
						return -1
					}
					return percent
				}).
			To(taxes)
	}

	streamtest.Run(define, func(d *streamtest.Driver) {
		d.Put(rates, "AT", 20)
		d.Put(orders, "ann", "AT")
		d.Put(orders, "bob", "XX")
		for _, r := range d.Out(taxes) {
			fmt.Println(r.Key, r.Value)
		}
	}, streamtest.Partitions(2))
	// Output:
	// ann 20
	// bob -1
}

func ExampleGlobalTable_In() {
	limits := stream.NewTopic("limits", codec.String, codec.Int64)
	payments := stream.NewTopic("payments", codec.String, codec.Int64)
	refused := stream.NewTopic("refused", codec.String, codec.Int64)

	define := func(b *stream.Builder) {
		table := b.GlobalTable(limits, "limits")
		b.Stream(payments).
			ProcessValues(func(c *stream.ValueContext[int64], r stream.Record[string, int64]) error {
				limit, _, err := table.In(c).Get("default")
				if err == nil && r.Value > limit {
					err = c.Emit(r.Value)
				}
				return err
			}).
			To(refused)
	}

	streamtest.Run(define, func(d *streamtest.Driver) {
		d.Put(limits, "default", 100)
		d.Put(payments, "ann", 99)
		d.Put(payments, "bob", 101)
		for _, r := range d.Out(refused) {
			fmt.Println(r.Key, r.Value)
		}
	})
	// Output: bob 101
}
