package stream_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/stream"
)

// A test that keeps the description of what is deployed says before the upgrade
// what an app would refuse when it starts.
func ExampleTopology_CompatibleWith() {
	clicks := stream.NewTopic("clicks", codec.String, codec.String)
	per := func(size time.Duration) *stream.Topology {
		t, err := stream.Build(func(b *stream.Builder) {
			b.Stream(clicks).GroupByKey().Windowed(stream.Tumbling(size, 0)).Count("counts")
		})
		if err != nil {
			panic(err)
		}
		return t
	}

	deployed := string(per(time.Hour).DescribeJSON()) // from a file
	fmt.Println(per(time.Hour).CompatibleWith(deployed))
	err := per(time.Minute).CompatibleWith(deployed)
	fmt.Println(errors.Is(err, stream.ErrIncompatible))
	fmt.Println(err)
	// Output:
	// <nil>
	// true
	// store "counts": its rows were of tumbling windows of 1h0m0s and are of tumbling windows of 1m0s; leave it as it was, or give the store another name, under which it starts empty
}
