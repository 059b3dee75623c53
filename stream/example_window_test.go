package stream_test

import (
	"fmt"
	"time"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/stream"
	"github.com/semelstream/semel/stream/streamtest"
)

func second(n int) time.Time { return time.Unix(int64(n), 0) }

// Updates of a window come once per transaction.
func ExampleGrouped_Windowed() {
	visits := stream.NewTopic("visits", codec.String, codec.String)
	counts := stream.NewTopic("counts", stream.WindowKey(codec.String, time.Minute), codec.Int64)

	define := func(b *stream.Builder) {
		b.Stream(visits).
			GroupByKey().
			Windowed(stream.Tumbling(time.Minute, 10*time.Second)).
			Count("counts").
			To(counts)
	}

	streamtest.Run(define, func(d *streamtest.Driver) {
		d.PutAt(visits, "ann", "home", second(5))
		d.PutAt(visits, "ann", "shop", second(65))
		d.PutAt(visits, "ann", "home", second(59)) // late, but within the grace
		for _, r := range d.Out(counts) {
			fmt.Println(r.Key.Key, r.Key.Start.Unix(), r.Value)
		}
	})
	// Output:
	// ann 0 1
	// ann 60 1
	// ann 0 2
}

// The row of a window is sent once, when no more records count in it.
func ExampleWindowedTable_Final() {
	visits := stream.NewTopic("visits", codec.String, codec.String)
	counts := stream.NewTopic("counts", codec.String, codec.Int64)

	define := func(b *stream.Builder) {
		b.Stream(visits).
			GroupByKey().
			Windowed(stream.Hopping(time.Minute, 30*time.Second, 0)).
			Count("counts").
			Final().
			ToStream(func(w stream.Windowed[string]) string {
				return fmt.Sprintf("%s from %d to %d", w.Key, w.Start.Unix(), w.End.Unix())
			}).
			To(counts)
	}

	streamtest.Run(define, func(d *streamtest.Driver) {
		d.PutAt(visits, "ann", "home", second(5))
		d.PutAt(visits, "ann", "shop", second(40))
		d.PutAt(visits, "bob", "home", second(90))
		for _, r := range d.Out(counts) {
			fmt.Println(r.Key, r.Value)
		}
	})
	// Output:
	// ann from 0 to 60 2
	// ann from 30 to 90 1
}

// Days of one's own: they begin at six in the morning.
func ExampleCustom() {
	orders := stream.NewTopic("orders", codec.String, codec.Int64)
	sums := stream.NewTopic("sums", codec.String, codec.Int64)

	days := func(t time.Time) []stream.Window {
		y, m, d := t.Add(-6 * time.Hour).Date()
		return []stream.Window{{
			Start: time.Date(y, m, d, 6, 0, 0, 0, time.UTC),
			End:   time.Date(y, m, d+1, 6, 0, 0, 0, time.UTC),
		}}
	}
	define := func(b *stream.Builder) {
		b.Stream(orders).
			GroupByKey().
			Windowed(stream.Custom(24*time.Hour, 0, days)).
			Reduce("sums", func(sum, v int64) int64 { return sum + v }).
			ToStream(func(w stream.Windowed[string]) string { return w.Key + " " + w.Start.UTC().Format(time.DateOnly) }).
			To(sums)
	}

	streamtest.Run(define, func(d *streamtest.Driver) {
		d.PutAt(orders, "paris", 10, time.Date(2024, 3, 1, 7, 0, 0, 0, time.UTC))
		d.PutAt(orders, "paris", 20, time.Date(2024, 3, 2, 5, 59, 0, 0, time.UTC))
		d.PutAt(orders, "paris", 40, time.Date(2024, 3, 2, 6, 0, 0, 0, time.UTC))
		fmt.Println(d.Last(sums))
	})
	// Output: map[paris 2024-03-01:30 paris 2024-03-02:40]
}

// With panes a record changes one row, however many windows it is in.
func ExamplePanes() {
	visits := stream.NewTopic("visits", codec.String, codec.String)
	counts := stream.NewTopic("counts", codec.String, codec.Int64)

	define := func(b *stream.Builder) {
		b.Stream(visits).
			GroupByKey().
			Windowed(stream.Hopping(time.Minute, 20*time.Second, 0)).
			Count("counts", stream.Panes()).
			Final().
			ToStream(func(w stream.Windowed[string]) string {
				return fmt.Sprintf("%s from %d to %d", w.Key, w.Start.Unix(), w.End.Unix())
			}).
			To(counts)
	}

	streamtest.Run(define, func(d *streamtest.Driver) {
		d.PutAt(visits, "ann", "home", second(5))
		d.PutAt(visits, "ann", "shop", second(45))
		d.PutAt(visits, "bob", "home", second(100))
		for _, r := range d.Out(counts) {
			fmt.Println(r.Key, r.Value)
		}
	})
	// Output:
	// ann from 0 to 60 2
	// ann from 20 to 80 1
	// ann from 40 to 100 1
}

// What PanesBy gets merges two rows: here sums and how many there are.
func ExamplePanesBy() {
	type mean struct{ Sum, N int64 }
	latencies := stream.NewTopic("latencies", codec.String, codec.Int64)
	means := stream.NewTopic("means", codec.String, codec.Int64)

	define := func(b *stream.Builder) {
		b.Codec(codec.JSON[mean]())
		b.Stream(latencies).
			GroupByKey().
			Windowed(stream.Hopping(time.Minute, 30*time.Second, 0)).
			Aggregate("means",
				func(_ string, ms int64, m mean) mean { return mean{m.Sum + ms, m.N + 1} },
				stream.PanesBy(func(a, b mean) mean { return mean{a.Sum + b.Sum, a.N + b.N} })).
			Final().
			MapValues(func(m mean) int64 { return m.Sum / m.N }).
			Unwindowed().
			To(means)
	}

	streamtest.Run(define, func(d *streamtest.Driver) {
		d.PutAt(latencies, "shop", 10, second(5))
		d.PutAt(latencies, "shop", 20, second(45))
		d.PutAt(latencies, "shop", 90, second(90))
		for _, r := range d.Out(means) {
			fmt.Println(r.Key, r.Value)
		}
	})
	// Output:
	// shop 15
	// shop 20
}

// Records of a key that are at most ten seconds apart are one visit.
func ExampleGrouped_Sessions() {
	clicks := stream.NewTopic("clicks", codec.String, codec.String)
	visits := stream.NewTopic("visits", codec.String, codec.Int64)

	define := func(b *stream.Builder) {
		b.Stream(clicks).
			GroupByKey().
			Sessions(10*time.Second, 0).
			Count("visits").
			Final().
			ToStream(func(w stream.Windowed[string]) string {
				return fmt.Sprintf("%s from %d to %d", w.Key, w.Start.Unix(), w.End.Unix())
			}).
			To(visits)
	}

	streamtest.Run(define, func(d *streamtest.Driver) {
		d.PutAt(clicks, "ann", "home", second(1))
		d.PutAt(clicks, "ann", "shop", second(9))
		d.PutAt(clicks, "ann", "home", second(40))
		d.PutAt(clicks, "bob", "home", second(70))
		for _, r := range d.Out(visits) {
			fmt.Println(r.Key, r.Value)
		}
	})
	// Output:
	// ann from 1 to 9 2
	// ann from 40 to 40 1
}

// At most three failures in any ten seconds: each record ends one window and
// begins another.
func ExampleSliding() {
	failures := stream.NewTopic("failures", codec.String, codec.String)
	alarms := stream.NewTopic("alarms", codec.String, codec.Int64)

	define := func(b *stream.Builder) {
		b.Stream(failures).
			GroupByKey().
			Windowed(stream.Sliding(10*time.Second, 0)).
			Count("failures").
			Filter(func(_ stream.Windowed[string], n int64) bool { return n > 3 }).
			Unwindowed().
			FilterRecords(stream.HasValue).
			To(alarms)
	}

	streamtest.Run(define, func(d *streamtest.Driver) {
		for _, at := range []int{1, 8, 15, 16, 17, 40} {
			d.PutAt(failures, "db", "timeout", second(at))
		}
		for _, r := range d.Out(alarms) {
			fmt.Println(r.Key, r.Value, r.Time.Unix())
		}
	})
	// Output:
	// db 4 17
}
