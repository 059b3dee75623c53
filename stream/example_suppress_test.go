package stream_test

import (
	"fmt"
	"time"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/stream"
	"github.com/semelstream/semel/stream/streamtest"
)

func ExampleTable_Suppress() {
	clicks := stream.NewTopic("clicks", codec.String, codec.String) // by page: visitor
	counts := stream.NewTopic("counts", codec.String, codec.Int64)  // at most one of a page each minute

	define := func(b *stream.Builder) {
		b.Stream(clicks).
			GroupByKey().
			Count("clicks-by-page").
			Suppress("held", time.Minute).
			To(counts)
	}

	streamtest.Run(define, func(d *streamtest.Driver) {
		at := time.UnixMilli(0)
		for range 5 {
			d.PutAt(clicks, "home", "ann", at)
			at = at.Add(20 * time.Second)
		}
		for _, r := range d.Out(counts) {
			fmt.Println(r.Key, r.Value, r.Time.Unix())
		}
	})
	// Output: home 4 60
}
