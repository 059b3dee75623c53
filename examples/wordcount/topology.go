package main

import (
	"strings"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/stream"
)

// The topics of the program.
var (
	Lines  = stream.NewTopic("lines", codec.String, codec.String)
	Counts = stream.NewTopic("word-counts", codec.String, codec.Int64)
)

// Topology counts the words of all lines.
func Topology(b *stream.Builder) {
	b.Stream(Lines).
		FlatMapValues(strings.Fields).
		MapValues(strings.ToLower).
		GroupBy(func(_, word string) string { return word }).
		Count("counts").
		To(Counts)
}
