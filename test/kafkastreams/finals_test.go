package kafkastreams_test

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/stream"
	"github.com/semelstream/semel/stream/streamtest"
)

// Kafka Streams keeps nothing with the offsets of what a suppress has sent. What
// had closed by the largest time of its rows was sent, and is not sent again.
func TestFinalsThatSuppressHasSentAreNotSentAgain(t *testing.T) {
	for _, kind := range []struct {
		name  string
		key   func(start time.Time) []byte // in the changelog
		count func(g stream.Grouped[string, string]) stream.WindowedTable[string, int64]
	}{
		{"tumbling", func(start time.Time) []byte { return append(atTimes(start), 0, 0, 0, 0) },
			func(g stream.Grouped[string, string]) stream.WindowedTable[string, int64] {
				return g.Windowed(stream.Tumbling(time.Minute, 0)).Count("n", stream.Retain(time.Hour))
			}},
		{"sessions", func(start time.Time) []byte { return atTimes(start.Add(30*time.Second), start) },
			func(g stream.Grouped[string, string]) stream.WindowedTable[string, int64] {
				return g.Sessions(20*time.Second, 0).Count("n", stream.Retain(time.Hour))
			}},
	} {
		t.Run(kind.name, func(t *testing.T) {
			c := streamtest.NewCluster(t)
			in, out := stream.NewTopic("in", codec.String, codec.String), stream.NewTopic("out", codec.String, codec.Int64)
			c.CreateTopics(1, in.Name, out.Name)
			rows := stream.NewTopic(app+"-n-changelog", codec.Bytes, codec.Int64)
			cl, err := kgo.NewClient(kgo.SeedBrokers(c.Brokers()...))
			if err != nil {
				t.Fatal(err)
			}
			defer cl.Close()
			adm, ctx := kadm.NewClient(cl), t.Context()
			if _, err := adm.CreateTopic(ctx, 1, 1, map[string]*string{"cleanup.policy": kadm.StringPtr("delete"), "retention.ms": kadm.StringPtr("-1")}, rows.Name); err != nil {
				t.Fatal(err)
			}
			minute := func(n int) time.Time { return time.UnixMilli(int64(n) * 60_000) }
			for n, count := range map[int]int64{100: 5, 101: 7} {
				c.PutRecord(rows, stream.Record[[]byte, int64]{Key: kind.key(minute(n)), Value: count, Time: minute(n).Add(30 * time.Second)})
			}
			c.Put(in, "gone", "processed")
			var offs kadm.Offsets
			offs.Add(kadm.Offset{Topic: in.Name, At: 1, LeaderEpoch: -1, Metadata: "AgAAAAAAXJ/Q"}) // a time and no names
			if err := adm.CommitAllOffsets(ctx, app, offs); err != nil {
				t.Fatal(err)
			}
			c.Start(func(b *stream.Builder) {
				kind.count(b.Stream(in).GroupByKey()).Final().
					ToStream(func(w stream.Windowed[string]) string { return w.Start.UTC().Format(time.TimeOnly) }).To(out)
			}, stream.Config{AppID: app})
			c.PutRecord(in, stream.Record[string, string]{Key: "k", Value: "v", Time: minute(105)})
			c.PutRecord(in, stream.Record[string, string]{Key: "k", Value: "v", Time: minute(110)})
			got := c.Await(out, 2)
			if a, b := got[0], got[1]; a.Key != "01:41:00" || a.Value != 7 || b.Key != "01:45:00" || b.Value != 1 {
				t.Errorf("got %v %v, %v %v; want the window of 01:41 with 7, which suppress still had, and then that of 01:45", a.Key, a.Value, b.Key, b.Value)
			}
		})
	}
}

// atTimes is the key "k" and times behind it.
func atTimes(times ...time.Time) []byte {
	b := []byte("k")
	for _, t := range times {
		b = binary.BigEndian.AppendUint64(b, uint64(t.UnixMilli()))
	}
	return b
}
