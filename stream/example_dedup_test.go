package stream_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/stream"
	"github.com/semelstream/semel/stream/streamtest"
)

func ExampleStream_Dedup() {
	orders := stream.NewTopic("orders", codec.String, codec.String) // by customer: order number
	once := stream.NewTopic("orders-once", codec.String, codec.String)

	define := func(b *stream.Builder) {
		b.Stream(orders).
			Dedup("seen", func(_, order string) string { return order }, 24*time.Hour).
			To(once)
	}

	streamtest.Run(define, func(d *streamtest.Driver) {
		d.Put(orders, "ann", "4711")
		d.Put(orders, "ann", "4712")
		d.Put(orders, "ann", "4711")
		for _, r := range d.Out(once) {
			fmt.Println(r.Key, r.Value)
		}
		fmt.Println(d.Dropped("duplicate"), "duplicate")
	})
	// Output:
	// ann 4711
	// ann 4712
	// 1 duplicate
}

func TestDED04SeenIDsSurviveACrashAndALostDisk(t *testing.T) {
	texts := stream.NewTopic("texts", codec.String, codec.String)
	once := stream.NewTopic("once", codec.String, codec.String)
	define := func(b *stream.Builder) {
		b.Stream(texts).Dedup("seen", func(_, v string) string { return v }, time.Hour).To(once)
	}
	streamtest.Run(define, func(d *streamtest.Driver) {
		at := time.UnixMilli(0)
		put := func(from, to int) {
			for n := from; n < to; n++ {
				d.PutAt(texts, fmt.Sprint("k", n%7), fmt.Sprint("id", n), at.Add(time.Duration(n)*time.Second))
			}
		}
		put(0, 100)
		d.Crash()
		put(50, 150)
		d.LoseDisk()
		d.Crash()
		put(0, 200)
		times := map[string]int{}
		for _, r := range d.Out(once) {
			times[r.Value]++
		}
		if len(times) != 200 {
			t.Errorf("%d ids passed, want 200", len(times))
		}
		for id, n := range times {
			if n != 1 {
				t.Errorf("%s passed %d times", id, n)
			}
		}
	})
}
