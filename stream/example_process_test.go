package stream_test

import (
	"fmt"
	"time"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/stream"
	"github.com/semelstream/semel/stream/streamtest"
)

func ExampleStream_Process() {
	readings := stream.NewTopic("readings", codec.String, codec.Int64)
	changes := stream.NewTopic("changes", codec.String, codec.Int64)

	define := func(b *stream.Builder) {
		last := b.Store("last", codec.String, codec.Int64)
		// Only what differs from the reading before goes on.
		b.Stream(readings).
			Process(func(c *stream.Context[string, int64], r stream.Record[string, int64]) error {
				before, ok, err := last.In(c).Get(r.Key)
				if err != nil || ok && before == r.Value {
					return err
				}
				if err := last.In(c).Put(r.Key, r.Value); err != nil {
					return err
				}
				return c.Emit(r)
			}, stream.Uses(last)).
			To(changes)
	}

	streamtest.Run(define, func(d *streamtest.Driver) {
		for _, v := range []int64{20, 20, 21} {
			d.Put(readings, "hall", v)
		}
		for _, r := range d.Out(changes) {
			fmt.Println(r.Key, r.Value)
		}
	})
	// Output:
	// hall 20
	// hall 21
}

func ExampleStream_ProcessValues() {
	readings := stream.NewTopic("readings", codec.String, codec.Int64)
	numbered := stream.NewTopic("numbered", codec.String, codec.String)

	define := func(b *stream.Builder) {
		// The key stays, so that operators by key after it need no repartition topic.
		b.Stream(readings).
			ProcessValues(func(c *stream.ValueContext[string], r stream.Record[string, int64]) error {
				from, _ := c.Source()
				return c.Emit(fmt.Sprintf("%d from offset %d", r.Value, from.Offset))
			}).
			To(numbered)
	}

	streamtest.Run(define, func(d *streamtest.Driver) {
		d.Put(readings, "hall", 20)
		d.Put(readings, "hall", 21)
		for _, r := range d.Out(numbered) {
			fmt.Println(r.Key, r.Value)
		}
	})
	// Output:
	// hall 20 from offset 0
	// hall 21 from offset 1
}

func ExampleStream_ProcessWith() {
	clicks := stream.NewTopic("clicks", codec.String, codec.String)
	perMinute := stream.NewTopic("clicks-per-minute", codec.String, codec.Int64)

	define := func(b *stream.Builder) {
		seen := b.Store("seen", codec.String, codec.Int64)
		b.Stream(clicks).
			ProcessWith(func() *meter { return &meter{seen} }, stream.Uses(seen)).
			To(perMinute)
	}

	streamtest.Run(define, func(d *streamtest.Driver) {
		begin := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
		for s := range 150 { // a click each second
			d.PutAt(clicks, "home", "", begin.Add(time.Duration(s)*time.Second))
		}
		for _, r := range d.Out(perMinute) {
			fmt.Println(r.Time.UTC().Format("15:04:05"), r.Key, r.Value)
		}
	})
	// Output:
	// 12:00:00 home 1
	// 12:01:00 home 60
	// 12:02:00 home 60
}

// A meter sends the clicks of each page once a minute of stream time.
type meter struct{ seen stream.Store[string, int64] }

func (m *meter) Init(c *stream.Context[string, int64]) error {
	c.Schedule(stream.Schedule{Every: time.Minute}, m.send)
	return nil
}

func (m *meter) Process(c *stream.Context[string, int64], r stream.Record[string, string]) error {
	n, _, err := m.seen.In(c).Get(r.Key)
	if err != nil {
		return err
	}
	return m.seen.In(c).Put(r.Key, n+1)
}

func (m *meter) send(c *stream.Context[string, int64], now time.Time) error {
	for row, err := range m.seen.In(c).All() {
		if err != nil {
			return err
		}
		if err := c.Emit(stream.Record[string, int64]{Key: row.Key, Value: row.Value, Time: now}); err != nil {
			return err
		}
		if err := m.seen.In(c).Delete(row.Key); err != nil {
			return err
		}
	}
	return nil
}

func ExampleTable_In() {
	limits := stream.NewTopic("limits", codec.String, codec.Int64)
	amounts := stream.NewTopic("amounts", codec.String, codec.Int64)
	alarms := stream.NewTopic("alarms", codec.String, codec.Int64)

	define := func(b *stream.Builder) {
		limit := b.Table(limits, "limits")
		b.Stream(amounts).
			ProcessValues(func(c *stream.ValueContext[int64], r stream.Record[string, int64]) error {
				most, ok, err := limit.In(c).Get(r.Key)
				if err != nil || !ok || r.Value <= most {
					return err
				}
				return c.Emit(r.Value - most)
			}, stream.Uses(limit)).
			To(alarms)
	}

	streamtest.Run(define, func(d *streamtest.Driver) {
		d.Put(limits, "ann", 100)
		d.Put(amounts, "ann", 90)
		d.Put(amounts, "ann", 130)
		for _, r := range d.Out(alarms) {
			fmt.Println(r.Key, "is over by", r.Value)
		}
	})
	// Output: ann is over by 30
}
