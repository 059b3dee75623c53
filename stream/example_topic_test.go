package stream_test

import (
	"fmt"
	"time"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/stream"
	"github.com/semelstream/semel/stream/streamtest"
)

func ExampleTopic_EventTime() {
	type Reading struct {
		At    time.Time
		Value int64
	}
	readings := stream.NewTopic("readings", codec.String, codec.JSON[Reading]()).
		EventTime(func(r stream.Record[string, Reading], _ time.Time) (time.Time, bool) {
			return r.Value.At, !r.Value.At.IsZero() // without a time it is dropped
		})
	values := stream.NewTopic("values", codec.String, codec.Int64)

	define := func(b *stream.Builder) {
		b.Stream(readings).
			MapValues(func(r Reading) int64 { return r.Value }).
			To(values)
	}

	streamtest.Run(define, func(d *streamtest.Driver) {
		d.Put(readings, "hall", Reading{time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC), 20})
		d.Put(readings, "hall", Reading{Value: 21})
		for _, r := range d.Out(values) {
			fmt.Println(r.Time.UTC().Format(time.DateTime), r.Value)
		}
	})
	// Output: 2026-01-01 12:00:00 20
}

func ExampleTopic_PartitionBy() {
	parcels := stream.NewTopic("parcels", codec.String, codec.String)
	sorted := parcels.Named("sorted").PartitionBy(byFirstLetter)

	define := func(b *stream.Builder) { b.Stream(parcels).To(sorted) }

	streamtest.Run(define, func(d *streamtest.Driver) {
		d.Put(parcels, "Amsterdam", "tea")
		d.Put(parcels, "Berlin", "rice")
		d.Put(parcels, "Bogota", "salt")
		for _, r := range d.Out(sorted) { // partition after partition
			fmt.Println(r.Key)
		}
	}, streamtest.Partitions(2))
	// Output:
	// Berlin
	// Bogota
	// Amsterdam
}

// byFirstLetter is declared, since joins compare partition functions by name.
func byFirstLetter[V any](r stream.Record[string, V], n int) int {
	return int(r.Key[0]) % n
}
