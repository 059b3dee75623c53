package stream

import (
	"unsafe"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Headers come from and go to the client for each record that has some. Our
// type differs from the client's in a field's name only, so that a slice of
// one is read as a slice of the other, instead of being copied. A test
// compares the types field by field.

// fromKafka is h as users see it; it shares h's memory.
func fromKafka(h []kgo.RecordHeader) Headers {
	return unsafe.Slice((*Header)(unsafe.Pointer(unsafe.SliceData(h))), len(h))
}

// toKafka is h as the client takes it; it shares h's memory.
func toKafka(h Headers) []kgo.RecordHeader {
	return unsafe.Slice((*kgo.RecordHeader)(unsafe.Pointer(unsafe.SliceData(h))), len(h))
}
