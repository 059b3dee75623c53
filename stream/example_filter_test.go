package stream_test

import (
	"fmt"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/stream"
	"github.com/semelstream/semel/stream/streamtest"
)

func ExampleStream_Filter() {
	amounts := stream.NewTopic("amounts", codec.String, codec.Int64)
	large := stream.NewTopic("large", codec.String, codec.Int64)

	define := func(b *stream.Builder) {
		b.Stream(amounts).
			Filter(func(_ string, n int64) bool { return n >= 100 }).
			To(large)
	}

	streamtest.Run(define, func(d *streamtest.Driver) {
		d.Put(amounts, "ann", 120)
		d.Put(amounts, "bob", 5)
		for _, r := range d.Out(large) {
			fmt.Println(r.Key, r.Value)
		}
	})
	// Output: ann 120
}

func ExampleStream_FilterRecords() {
	names := stream.NewTopic("names", codec.String, codec.String)
	present := stream.NewTopic("present", codec.String, codec.String)

	define := func(b *stream.Builder) {
		// Filter never sees tombstones; FilterRecords does, and HasValue drops them.
		b.Stream(names).
			FilterRecords(stream.HasValue).
			To(present)
	}

	streamtest.Run(define, func(d *streamtest.Driver) {
		d.Put(names, "1", "Ann")
		d.Delete(names, "1")
		d.Put(names, "2", "Bob")
		for _, r := range d.Out(present) {
			fmt.Println(r.Key, r.Value, r.NoValue)
		}
	})
	// Output:
	// 1 Ann false
	// 2 Bob false
}

func ExampleStream_Split() {
	amounts := stream.NewTopic("amounts", codec.String, codec.Int64)
	large := stream.NewTopic("large", codec.String, codec.Int64)
	small := stream.NewTopic("small", codec.String, codec.Int64)
	other := stream.NewTopic("other", codec.String, codec.Int64)

	define := func(b *stream.Builder) {
		match, rest := b.Stream(amounts).Split(func(_ string, n int64) bool { return n >= 100 })
		match.To(large)
		match, rest = rest.Split(func(_ string, n int64) bool { return n > 0 }) // three ways
		match.To(small)
		rest.To(other)
	}

	streamtest.Run(define, func(d *streamtest.Driver) {
		for _, n := range []int64{5, 120, -1, 7} {
			d.Put(amounts, "ann", n)
		}
		fmt.Println(len(d.Out(large)), len(d.Out(small)), len(d.Out(other)))
	})
	// Output: 1 2 1
}
