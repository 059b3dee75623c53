package stream_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/stream"
	"github.com/semelstream/semel/stream/streamtest"
)

// Whatever crashes and whatever disk is lost, a store forgets what it would have
// forgotten anyway.
func TestStoresForgetTheSameAfterCrashesAndOnALostDisk(t *testing.T) {
	const ttl = 50
	words := stream.NewTopic("words", codec.String, codec.String)
	define := func(b *stream.Builder) {
		kv := b.Store("kv", codec.String, codec.String, stream.TTL(ttl*ms))
		b.Stream(words).ProcessValues(func(c *stream.ValueContext[string], r stream.Record[string, string]) error {
			return kv.In(c).Put(r.Key, r.Value)
		}, stream.Uses(kv))
	}
	type row struct {
		value string
		ms    int64
	}
	for seed := range uint64(8) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			d := streamtest.New(t, define, streamtest.CommitByHand())
			rows, now, forgotten := map[string]row{}, int64(0), 0
			for i := range 60 {
				now += random.Int64N(12)
				key, value, at := fmt.Sprint("k", random.IntN(12)), fmt.Sprint(i), max(0, now-random.Int64N(60))
				for k, r := range rows {
					if r.ms <= now-ttl {
						delete(rows, k)
						forgotten++
					}
				}
				d.PutAt(words, "clock", value, time.UnixMilli(now))
				d.PutAt(words, key, value, time.UnixMilli(at))
				rows["clock"] = row{value, now}
				rows[key] = row{value, max(at, rows[key].ms)}
				switch random.IntN(8) {
				case 0, 1:
					d.Commit()
				case 2:
					d.Crash()
				case 3:
					d.LoseDisk()
					d.Crash()
				}
			}
			d.PutAt(words, "clock", "end", time.UnixMilli(now))
			d.Commit()
			d.LoseDisk()
			d.Crash()
			want := map[string]string{"clock": "end"}
			for k, r := range rows {
				if k != "clock" && r.ms > now-ttl {
					want[k] = r.value
				}
			}
			if got := d.Rows[string, string]("kv"); !maps.Equal(got, want) {
				t.Errorf("there are %v, want %v", got, want)
			}
			if forgotten < 5 || len(want) < 2 {
				t.Errorf("%d rows were forgotten, and %d are there: that tries little", forgotten, len(want))
			}
		})
	}
}

// Without its time a store would take what is long too old for new.
func TestTheTimeOfAStoreWithTTLIsKept(t *testing.T) {
	words := stream.NewTopic("words", codec.String, codec.String)
	d := streamtest.New(t, func(b *stream.Builder) {
		kv := b.Store("kv", codec.String, codec.String, stream.TTL(50*ms))
		b.Stream(words).ProcessValues(func(c *stream.ValueContext[string], r stream.Record[string, string]) error {
			if r.Value == "" {
				return nil
			}
			return kv.In(c).Put(r.Key, r.Value)
		}, stream.Uses(kv))
	})
	d.PutAt(words, "new", "x", time.UnixMilli(100))
	d.Crash()
	d.PutAt(words, "old", "x", time.UnixMilli(10))
	d.PutAt(words, "nobody", "", time.UnixMilli(11))
	if got := d.Rows[string, string]("kv"); len(got) != 1 || got["new"] != "x" {
		t.Errorf("there are %v", got)
	}
}
