package stream_test

import (
	"fmt"
	"strings"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/stream"
	"github.com/semelstream/semel/stream/streamtest"
)

func ExampleStream_FlatMap() {
	mails := stream.NewTopic("mails", codec.String, codec.String)    // sender: receivers
	inboxes := stream.NewTopic("inboxes", codec.String, codec.Int64) // receiver: length of the name

	define := func(b *stream.Builder) {
		b.Stream(mails).
			FlatMap(func(_, receivers string, emit func(string, int64)) {
				for name := range strings.FieldsSeq(receivers) {
					emit(name, int64(len(name)))
				}
			}).
			To(inboxes)
	}

	streamtest.Run(define, func(d *streamtest.Driver) {
		d.Put(mails, "ann", "bob carol")
		d.Put(mails, "ann", "") // none
		for _, r := range d.Out(inboxes) {
			fmt.Println(r.Key, r.Value)
		}
	})
	// Output:
	// bob 3
	// carol 5
}

func ExampleStream_FlatMapValues() {
	lines := stream.NewTopic("lines", codec.String, codec.String)
	words := stream.NewTopic("words", codec.String, codec.String)

	define := func(b *stream.Builder) {
		b.Stream(lines).
			FlatMapValues(strings.Fields).
			To(words)
	}

	streamtest.Run(define, func(d *streamtest.Driver) {
		d.Put(lines, "1", "to be")
		for _, r := range d.Out(words) {
			fmt.Println(r.Key, r.Value) // each under the key of its line
		}
	})
	// Output:
	// 1 to
	// 1 be
}
