package stream_test

import (
	"fmt"
	"strings"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/stream"
	"github.com/semelstream/semel/stream/streamtest"
)

func ExampleBuilder_Table() {
	prices := stream.NewTopic("prices", codec.String, codec.Int64)

	define := func(b *stream.Builder) {
		b.Table(prices, "prices") // the topic is its changelog
	}

	streamtest.Run(define, func(d *streamtest.Driver) {
		d.Put(prices, "tea", 5)
		d.Put(prices, "rice", 2)
		d.Put(prices, "tea", 6)
		d.Delete(prices, "rice")
		fmt.Println(d.Rows[string, int64]("prices"))
	})
	// Output: map[tea:6]
}

func ExampleStream_ToTable() {
	moves := stream.NewTopic("moves", codec.String, codec.String)

	define := func(b *stream.Builder) {
		b.Stream(moves).
			MapValues(strings.ToUpper).
			ToTable("places")
	}

	streamtest.Run(define, func(d *streamtest.Driver) {
		d.Put(moves, "ann", "Rome")
		d.Put(moves, "ann", "Oslo")
		fmt.Println(d.Rows[string, string]("places"))
	})
	// Output: map[ann:OSLO]
}

func ExampleTable_Filter() {
	stock := stream.NewTopic("stock", codec.String, codec.Int64)
	low := stream.NewTopic("low", codec.String, codec.Int64)

	define := func(b *stream.Builder) {
		b.Table(stock, "stock").
			Filter(func(_ string, n int64) bool { return n < 10 }).
			To(low)
	}

	streamtest.Run(define, func(d *streamtest.Driver) {
		d.Put(stock, "tea", 3)
		d.Put(stock, "rice", 4)
		d.Put(stock, "tea", 30) // leaves the table: a delete
		fmt.Println(d.Last(low))
	})
	// Output: map[rice:4]
}

func ExampleTable_MapValues() {
	cents := stream.NewTopic("cents", codec.String, codec.Int64)
	prices := stream.NewTopic("prices", codec.String, codec.String)

	define := func(b *stream.Builder) {
		b.Table(cents, "cents").
			MapValues(func(n int64) string { return fmt.Sprintf("%d.%02d", n/100, n%100) }).
			To(prices)
	}

	streamtest.Run(define, func(d *streamtest.Driver) {
		d.Put(cents, "tea", 595)
		fmt.Println(d.Last(prices))
	})
	// Output: map[tea:5.95]
}

func ExampleTable_ToStream() {
	prices := stream.NewTopic("prices", codec.String, codec.Int64)
	changes := stream.NewTopic("changes", codec.String, codec.Int64)

	define := func(b *stream.Builder) {
		b.Table(prices, "prices").
			ToStream().
			Peek(func(key string, n int64) { fmt.Println("now", key, n) }).
			To(changes)
	}

	streamtest.Run(define, func(d *streamtest.Driver) {
		d.Put(prices, "tea", 5)
		d.Delete(prices, "tea") // a tombstone of the stream
		for _, r := range d.Out(changes) {
			fmt.Println(r.Key, r.Value, r.NoValue)
		}
	})
	// Output:
	// now tea 5
	// tea 5 false
	// tea 0 true
}

func ExampleTable_Stored() {
	names := stream.NewTopic("names", codec.String, codec.String)

	define := func(b *stream.Builder) {
		// Filter and MapValues keep nothing themselves; Stored makes a store of
		// what comes out, which a View can read.
		b.Table(names, "names").
			MapValues(strings.ToUpper).
			Stored("upper")
	}

	streamtest.Run(define, func(d *streamtest.Driver) {
		d.Put(names, "1", "Ann")
		fmt.Println(d.Rows[string, string]("names"), d.Rows[string, string]("upper"))
	})
	// Output: map[1:Ann] map[1:ANN]
}

func ExampleTable_GroupBy() {
	homes := stream.NewTopic("homes", codec.String, codec.String) // by person: city
	sizes := stream.NewTopic("sizes", codec.String, codec.Int64)  // by city

	define := func(b *stream.Builder) {
		b.Table(homes, "homes").
			GroupBy(func(person, city string) (string, string) { return city, person }).
			Count("sizes").
			To(sizes)
	}

	streamtest.Run(define, func(d *streamtest.Driver) {
		d.Put(homes, "ann", "Rome")
		d.Put(homes, "bob", "Rome")
		d.Put(homes, "ann", "Oslo") // leaves Rome
		fmt.Println(d.Last(sizes))
	})
	// Output: map[Oslo:1 Rome:1]
}

func ExampleGroupedTable_Aggregate() {
	type Account struct {
		Branch string
		Cents  int64
	}
	accounts := stream.NewTopic("accounts", codec.String, codec.JSON[Account]())
	totals := stream.NewTopic("totals", codec.String, codec.Int64) // by branch

	define := func(b *stream.Builder) {
		b.Table(accounts, "accounts").
			GroupBy(func(_ string, a Account) (string, int64) { return a.Branch, a.Cents }).
			Aggregate("totals",
				func(_ string, cents, sum int64) int64 { return sum + cents },
				func(_ string, cents, sum int64) int64 { return sum - cents }).
			To(totals)
	}

	streamtest.Run(define, func(d *streamtest.Driver) {
		d.Put(accounts, "ann", Account{"north", 100})
		d.Put(accounts, "bob", Account{"north", 50})
		d.Put(accounts, "ann", Account{"north", 70}) // 30 less
		fmt.Println(d.Last(totals))
	})
	// Output: map[north:120]
}
