package stream_test

import (
	"errors"
	"fmt"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/stream"
	"github.com/semelstream/semel/stream/streamtest"
)

func ExampleDeadLetter() {
	numbers := stream.NewTopic("numbers", codec.String, codec.Int64)
	copies := stream.NewTopic("copies", codec.String, codec.Int64)

	define := func(b *stream.Builder) { b.Stream(numbers, stream.Name("read")).To(copies) }

	// The policy of the whole application: Config.OnError.
	policy := streamtest.OnError(stream.DeadLetter("bad"))

	streamtest.Run(define, func(d *streamtest.Driver) {
		d.PutBytes("numbers", []byte("a"), []byte("seven"))
		d.Put(numbers, "a", 7)
		fmt.Println(d.Last(copies))
		for _, f := range d.DeadLetters("bad") {
			fmt.Println(f.Op, "in", f.Operator, "at offset", f.Offset, "of", f.Topic)
		}
	}, policy, streamtest.Topics("bad"))
	// Output:
	// map[a:7]
	// decode in read at offset 0 of numbers
}

func ExampleOnError() {
	errNegative := errors.New("negative amount")
	amounts := stream.NewTopic("amounts", codec.String, codec.Int64)
	checked := stream.NewTopic("checked", codec.String, codec.Int64)

	check := func(n int64) (int64, error) {
		if n < 0 {
			return 0, errNegative
		}
		return n, nil
	}
	skipNegative := func(f *stream.Failure) stream.Action {
		if errors.Is(f, errNegative) {
			return stream.Skip(f)
		}
		return stream.Fail(f)
	}
	define := func(b *stream.Builder) {
		b.Stream(amounts).
			TryMapValues(check, stream.OnError(skipNegative)). // for this operator
			To(checked)
	}

	streamtest.Run(define, func(d *streamtest.Driver) {
		d.Put(amounts, "ann", 5)
		d.Put(amounts, "ann", -5)
		fmt.Println(len(d.Out(checked)), "passed,", d.Dropped("failed"), "dropped")
	})
	// Output: 1 passed, 1 dropped
}
