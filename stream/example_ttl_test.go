package stream_test

import (
	"fmt"
	"time"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/stream"
	"github.com/semelstream/semel/stream/streamtest"
)

// A login on a device counts as known for a day after the last one.
func ExampleTTL() {
	logins := stream.NewTopic("logins", codec.String, codec.String) // by user: device
	alerts := stream.NewTopic("alerts", codec.String, codec.String)

	define := func(b *stream.Builder) {
		seen := b.Store("seen", codec.String, codec.Bool, stream.TTL(24*time.Hour))
		b.Stream(logins).
			ProcessValues(func(c *stream.ValueContext[string], r stream.Record[string, string]) error {
				device := r.Key + " on " + r.Value
				_, known, err := seen.In(c).Get(device)
				if err != nil {
					return err
				}
				if err := seen.In(c).Put(device, true); err != nil || known {
					return err
				}
				return c.Emit("new device " + r.Value)
			}, stream.Uses(seen)).
			To(alerts)
	}

	streamtest.Run(define, func(d *streamtest.Driver) {
		day := func(n float64) time.Time { return time.Unix(int64(n*86400), 0) }
		d.PutAt(logins, "ann", "phone", day(1))
		d.PutAt(logins, "ann", "phone", day(1.5))
		d.PutAt(logins, "ann", "laptop", day(2))
		d.PutAt(logins, "ann", "phone", day(2.5)) // a day after the last one
		for _, r := range d.Out(alerts) {
			fmt.Println(r.Key, r.Time.Unix()*10/86400, r.Value)
		}
	})
	// Output:
	// ann 10 new device phone
	// ann 20 new device laptop
	// ann 25 new device phone
}
