package stream_test

import (
	"fmt"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/stream"
	"github.com/semelstream/semel/stream/streamtest"
)

func ExampleTable_Join() {
	names := stream.NewTopic("names", codec.String, codec.String) // by user
	towns := stream.NewTopic("towns", codec.String, codec.String) // by user
	users := stream.NewTopic("users", codec.String, codec.String)

	define := func(b *stream.Builder) {
		b.Table(names, "names").
			Join(b.Table(towns, "towns"), func(name, town string) string { return name + " of " + town }).
			To(users)
	}

	streamtest.Run(define, func(d *streamtest.Driver) {
		d.Put(names, "1", "Ann") // has no town yet
		d.Put(towns, "1", "Bath")
		d.Put(names, "1", "Anne")
		for _, r := range d.Out(users) {
			fmt.Println(r.Key, r.Value)
		}
	})
	// Output:
	// 1 Ann of Bath
	// 1 Anne of Bath
}

func ExampleTable_OuterJoin() {
	ordered := stream.NewTopic("ordered", codec.String, codec.Int64) // by item
	shipped := stream.NewTopic("shipped", codec.String, codec.Int64) // by item
	open := stream.NewTopic("open", codec.String, codec.Int64)

	define := func(b *stream.Builder) {
		b.Table(ordered, "ordered").
			OuterJoin(b.Table(shipped, "shipped"), func(ordered int64, _ bool, shipped int64, _ bool) int64 {
				return ordered - shipped // a missing one is 0
			}).
			To(open)
	}

	streamtest.Run(define, func(d *streamtest.Driver) {
		d.Put(ordered, "tea", 5)
		d.Put(shipped, "tea", 3)
		d.Put(shipped, "rice", 1)
		fmt.Println(d.Last(open))
	})
	// Output: map[rice:-1 tea:2]
}
