package stream_test

import (
	"fmt"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/stream"
)

// Build reports all mistakes of a topology at once, each with the line that
// made it.
func ExampleBuild() {
	visits := stream.NewTopic("visits", codec.String, codec.String)
	counts := stream.NewTopic("counts", codec.String, codec.Int64)

	_, err := stream.Build(func(b *stream.Builder) {
		b.Stream(visits).GroupByKey().Count("").To(counts)
		b.Stream(visits).Filter(nil).To(visits.Named("copies"))
	})
	fmt.Println(err)
	// Output:
	// stream/example_build_test.go:17: count "count-1": it has no store name; give it one, which must not change as long as its data is to live
	// stream/example_build_test.go:18: filter "filter-1": its function is nil; give it one
}
