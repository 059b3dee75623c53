package streamtest_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/semelstream/semel/stream"
	"github.com/semelstream/semel/stream/streamtest"
)

// In a test it is streamtest.New(t, wordCount), and the same driver.
func ExampleRun() {
	streamtest.Run(wordCount, func(d *streamtest.Driver) {
		d.Put(lines, "1", "to be or not to be")
		fmt.Println(d.Last(counts))
	})
	// Output: map[be:2 not:1 or:1 to:2]
}

func ExampleDriver_Out() {
	streamtest.Run(wordCount, func(d *streamtest.Driver) {
		d.Put(lines, "1", "to be")
		d.Put(lines, "2", "be")
		for _, r := range d.Out(counts) { // all that came, where Last has the latest
			fmt.Println(r.Key, r.Value)
		}
		fmt.Println(len(d.Out(counts)), "more")
	})
	// Output:
	// to 1
	// be 1
	// be 2
	// 0 more
}

func ExampleDriver_Rows() {
	streamtest.Run(wordCount, func(d *streamtest.Driver) {
		d.Put(lines, "1", "be be")
		fmt.Println(d.Rows[string, int64]("counts"))
	})
	// Output: map[be:2]
}

// Nothing is lost and nothing doubled, wherever the instance dies.
func ExampleDriver_CrashAt() {
	streamtest.Run(wordCount, func(d *streamtest.Driver) {
		d.Put(lines, "1", "to be")
		d.CrashAt(streamtest.UnknownCommit)
		d.LoseDisk()
		d.Put(lines, "2", "not to be")
		fmt.Println(d.Last(counts))
	})
	// Output: map[be:2 not:1 to:2]
}

// Records that are committed together: an aggregate sends the last value only.
func ExampleCommitByHand() {
	streamtest.Run(wordCount, func(d *streamtest.Driver) {
		d.Put(lines, "1", "be")
		d.Put(lines, "2", "be")
		fmt.Println(len(d.Out(counts)), "before the commits")
		d.Commit() // of the words, into the repartition topic
		d.Commit() // of their counts
		for _, r := range d.Out(counts) {
			fmt.Println(r.Key, r.Value)
		}
	}, streamtest.CommitByHand())
	// Output:
	// 0 before the commits
	// be 2
}

// Wall time stands still but for Advance.
func ExampleDriver_Advance() {
	ticks := lines.Named("ticks")
	define := func(b *stream.Builder) {
		b.Stream(lines).ProcessWith(func() *ticker { return &ticker{} }).To(ticks)
	}
	streamtest.Run(define, func(d *streamtest.Driver) {
		d.Advance(2 * time.Second)
		for _, r := range d.Out(ticks) {
			fmt.Println(r.Value)
		}
	}, streamtest.Start(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)))
	// Output:
	// 2026-01-01 12:00:01 +0000 UTC
	// 2026-01-01 12:00:02 +0000 UTC
}

func ExampleDriver_DeadLetters() {
	short := func(line string) (string, error) {
		if len(line) > 10 {
			return "", errors.New("the line is too long")
		}
		return line, nil
	}
	define := func(b *stream.Builder) {
		b.Stream(lines).TryMapValues(short).To(lines.Named("short"))
	}
	streamtest.Run(define, func(d *streamtest.Driver) {
		d.Put(lines, "1", "to be or not to be")
		for _, f := range d.DeadLetters("bad") {
			fmt.Printf("%s: %v\n", f.Value, f.Err)
		}
	}, streamtest.OnError(stream.DeadLetter("bad")), streamtest.Topics("bad"))
	// Output: to be or not to be: the line is too long
}
