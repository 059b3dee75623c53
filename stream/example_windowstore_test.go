package stream_test

import (
	"fmt"
	"time"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/state"
	"github.com/semelstream/semel/stream"
	"github.com/semelstream/semel/stream/streamtest"
)

func ExampleBuilder_WindowStore() {
	logins := stream.NewTopic("logins", codec.String, codec.String)
	alarms := stream.NewTopic("alarms", codec.String, codec.String)

	define := func(b *stream.Builder) {
		seen := b.WindowStore("seen", codec.String, codec.String, time.Minute, time.Hour).KeepDuplicates()
		// Three logins within a minute are an alarm.
		b.Stream(logins).
			ProcessValues(func(c *stream.ValueContext[string], r stream.Record[string, string]) error {
				seen := seen.In(c)
				if err := seen.Put(r.Key, r.Time, r.Value); err != nil {
					return err
				}
				places := ""
				n := 0
				for row, err := range seen.Fetch(r.Key, r.Time.Add(-time.Minute), r.Time) {
					if err != nil {
						return err
					}
					places += " " + row.Value
					n++
				}
				if n < 3 {
					return nil
				}
				return c.Emit("logins from" + places)
			}, stream.Uses(seen)).
			To(alarms)
	}

	streamtest.Run(define, func(d *streamtest.Driver) {
		at := time.Date(2024, 1, 1, 12, 0, 0, 0, time.UTC)
		for i, place := range []string{"Rome", "Oslo", "Lima", "Kyiv"} {
			d.PutRecord(logins, stream.Record[string, string]{Key: "ann", Value: place, Time: at.Add(time.Duration(i*25) * time.Second)})
		}
		for _, r := range d.Out(alarms) {
			fmt.Println(r.Key, r.Value)
		}
	})
	// Output:
	// ann logins from Rome Oslo Lima
	// ann logins from Oslo Lima Kyiv
}

func ExampleBuilder_SessionStore() {
	clicks := stream.NewTopic("clicks", codec.String, codec.String)
	visits := stream.NewTopic("visits", codec.String, codec.String)

	define := func(b *stream.Builder) {
		open := b.SessionStore("open", codec.String, codec.Int64, time.Hour)
		// A click within ten minutes goes on with the visit.
		b.Stream(clicks).
			ProcessValues(func(c *stream.ValueContext[string], r stream.Record[string, string]) error {
				open, gap := open.In(c), 10*time.Minute
				visit, n := state.SessionKey[string]{Key: r.Key, Start: r.Time, End: r.Time}, int64(1)
				for row, err := range open.Overlapping(r.Key, r.Time.Add(-gap), r.Time) {
					if err != nil {
						return err
					}
					visit.Start, n = row.Key.Start, n+row.Value
					if err := open.Delete(row.Key); err != nil {
						return err
					}
				}
				if err := open.Put(visit, n); err != nil {
					return err
				}
				return c.Emit(fmt.Sprintf("%d clicks in %v", n, visit.End.Sub(visit.Start)))
			}, stream.Uses(open)).
			To(visits)
	}

	streamtest.Run(define, func(d *streamtest.Driver) {
		at := time.Date(2024, 1, 1, 12, 0, 0, 0, time.UTC)
		for _, minutes := range []int{0, 4, 30} {
			d.PutRecord(clicks, stream.Record[string, string]{Key: "ann", Value: "/", Time: at.Add(time.Duration(minutes) * time.Minute)})
		}
		for _, r := range d.Out(visits) {
			fmt.Println(r.Key, r.Value)
		}
	})
	// Output:
	// ann 1 clicks in 0s
	// ann 2 clicks in 4m0s
	// ann 1 clicks in 0s
}

func ExampleBuilder_VersionedStore() {
	prices := stream.NewTopic("prices", codec.String, codec.Int64)
	answers := stream.NewTopic("answers", codec.String, codec.String)

	define := func(b *stream.Builder) {
		history := b.VersionedStore("history", codec.String, codec.Int64, 24*time.Hour)
		// Each price says what it was an hour before.
		b.Stream(prices).
			ProcessValues(func(c *stream.ValueContext[string], r stream.Record[string, int64]) error {
				history := history.In(c)
				if _, _, err := history.Put(r.Key, r.Time, r.Value); err != nil {
					return err
				}
				before, ok, err := history.GetAsOf(r.Key, r.Time.Add(-time.Hour))
				if err != nil || !ok {
					return err
				}
				return c.Emit(fmt.Sprintf("%d after %d", r.Value, before.Value))
			}, stream.Uses(history)).
			To(answers)
	}

	streamtest.Run(define, func(d *streamtest.Driver) {
		at := time.Date(2024, 1, 1, 12, 0, 0, 0, time.UTC)
		for i, price := range []int64{10, 12, 15} {
			d.PutRecord(prices, stream.Record[string, int64]{Key: "tea", Value: price, Time: at.Add(time.Duration(i*40) * time.Minute)})
		}
		for _, r := range d.Out(answers) {
			fmt.Println(r.Key, r.Value)
		}
	})
	// Output:
	// tea 15 after 10
}
