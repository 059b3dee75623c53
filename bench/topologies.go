package main

import (
	"strings"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/stream"
)

// topologies are the programs that are measured, by name.
var topologies = map[string]func(in, out string) func(*stream.Builder){
	"pass-through":  passThrough,
	"count":         count,
	"words":         words,
	"latest":        latest,
	"tumbling":      tumbling,
	"hopping":       hopping,
	"hopping-final": hoppingFinal,
	"sessions":      sessions,
	"dedup":         dedup,
	"join-table":    joinTable,
	"join-stream":   joinStream,
}

// store is the name of the store of each topology that has one.
const store = "rows"

func texts(name string) stream.Topic[string, string] {
	return stream.NewTopic(name, codec.String, codec.String)
}

func passThrough(in, out string) func(*stream.Builder) {
	return func(b *stream.Builder) { b.Stream(texts(in)).To(texts(out)) }
}

// count counts the records of each key, without a repartition topic.
func count(in, out string) func(*stream.Builder) {
	return func(b *stream.Builder) {
		b.Stream(texts(in)).GroupByKey().Count(store).To(stream.NewTopic(out, codec.String, codec.Int64))
	}
}

// words counts words, through a repartition topic.
func words(in, out string) func(*stream.Builder) {
	return func(b *stream.Builder) {
		b.Stream(texts(in)).
			FlatMapValues(strings.Fields).
			GroupBy(func(_, word string) string { return word }).
			Count(store).
			To(stream.NewTopic(out, codec.String, codec.Int64))
	}
}

// latest keeps the last value of each key: state as large as its input.
func latest(in, out string) func(*stream.Builder) {
	return func(b *stream.Builder) {
		b.Stream(texts(in)).GroupByKey().Reduce(store, func(_, value string) string { return value }).To(texts(out))
	}
}
