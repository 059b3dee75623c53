package stream_test

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/stream"
	"github.com/semelstream/semel/stream/streamtest"
)

func ExampleStream_Map() {
	cities := stream.NewTopic("cities", codec.String, codec.String) // by person
	people := stream.NewTopic("people", codec.String, codec.String) // by city

	define := func(b *stream.Builder) {
		b.Stream(cities).
			Map(func(person, city string) (string, string) { return city, person }).
			To(people)
	}

	streamtest.Run(define, func(d *streamtest.Driver) {
		d.Put(cities, "ann", "Rome")
		for _, r := range d.Out(people) {
			fmt.Println(r.Key, r.Value)
		}
	})
	// Output: Rome ann
}

func ExampleStream_MapRecords() {
	orders := stream.NewTopic("orders", codec.String, codec.String)
	marked := stream.NewTopic("marked", codec.String, codec.String)

	define := func(b *stream.Builder) {
		// The whole record is there: headers, time, tombstones.
		b.Stream(orders).
			MapRecords(func(r stream.Record[string, string]) stream.Record[string, string] {
				return r.WithHeader("origin", []byte("shop"))
			}).
			To(marked)
	}

	streamtest.Run(define, func(d *streamtest.Driver) {
		d.Put(orders, "1", "tea")
		for _, r := range d.Out(marked) {
			origin, _ := r.Headers.Last("origin")
			fmt.Printf("%s %s from %s\n", r.Key, r.Value, origin)
		}
	})
	// Output: 1 tea from shop
}

func ExampleStream_MapValues() {
	names := stream.NewTopic("names", codec.String, codec.String)
	upper := stream.NewTopic("upper", codec.String, codec.String)

	define := func(b *stream.Builder) {
		b.Stream(names).
			MapValues(strings.ToUpper).
			To(upper)
	}

	streamtest.Run(define, func(d *streamtest.Driver) {
		d.Put(names, "1", "ann")
		d.Delete(names, "1") // goes around the function, and on
		for _, r := range d.Out(upper) {
			fmt.Printf("%s %q deleted %t\n", r.Key, r.Value, r.NoValue)
		}
	})
	// Output:
	// 1 "ANN" deleted false
	// 1 "" deleted true
}

func ExampleStream_MapOrDelete() {
	stock := stream.NewTopic("stock", codec.String, codec.Int64)
	offers := stream.NewTopic("offers", codec.String, codec.String)

	define := func(b *stream.Builder) {
		b.Stream(stock).
			MapOrDelete(func(_ string, n int64) (string, bool) {
				return strconv.FormatInt(n, 10) + " left", n > 0
			}).
			To(offers)
	}

	streamtest.Run(define, func(d *streamtest.Driver) {
		d.Put(stock, "tea", 3)
		d.Put(stock, "rice", 8)
		d.Put(stock, "tea", 0) // a tombstone on offers
		fmt.Println(d.Last(offers))
	})
	// Output: map[rice:8 left]
}

func ExampleStream_TryMapValues() {
	texts := stream.NewTopic("texts", codec.String, codec.String)
	numbers := stream.NewTopic("numbers", codec.String, codec.Int64)

	define := func(b *stream.Builder) {
		b.Stream(texts).
			TryMapValues(func(s string) (int64, error) { return strconv.ParseInt(s, 10, 64) },
				stream.OnError(stream.Skip)).
			To(numbers)
	}

	streamtest.Run(define, func(d *streamtest.Driver) {
		d.Put(texts, "a", "12")
		d.Put(texts, "a", "twelve")
		for _, r := range d.Out(numbers) {
			fmt.Println(r.Key, r.Value)
		}
	})
	// Output: a 12
}

func ExampleStream_SelectKey() {
	type Order struct{ Customer, Item string }
	orders := stream.NewTopic("orders", codec.String, codec.JSON[Order]()) // by order number
	byCustomer := stream.NewTopic("by-customer", codec.String, codec.JSON[Order]())

	define := func(b *stream.Builder) {
		b.Stream(orders).
			SelectKey(func(_ string, o Order) string { return o.Customer }).
			To(byCustomer)
	}

	streamtest.Run(define, func(d *streamtest.Driver) {
		d.Put(orders, "1001", Order{"ann", "tea"})
		for _, r := range d.Out(byCustomer) {
			fmt.Println(r.Key, r.Value.Item)
		}
	})
	// Output: ann tea
}
