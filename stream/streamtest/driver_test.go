package streamtest_test

import (
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/stream"
	"github.com/semelstream/semel/stream/streamtest"
)

var (
	lines  = stream.NewTopic("lines", codec.String, codec.String)
	counts = stream.NewTopic("counts", codec.String, codec.Int64)
)

func wordCount(b *stream.Builder) {
	b.Stream(lines).
		FlatMapValues(strings.Fields).
		GroupBy(func(_, word string) string { return word }).
		Count("counts").
		To(counts)
}

func TestDriverCountsWords(t *testing.T) {
	d := streamtest.New(t, wordCount, streamtest.Partitions(3))
	d.Put(lines, "a", "to be or not to be")
	if got := d.Last(counts); got["to"] != 2 || got["not"] != 1 {
		t.Errorf("counts = %v", got)
	}
	if n := len(d.Out(counts)); n != 4 {
		t.Errorf("%d results, want one for each word and commit: 4", n)
	}
	d.Put(lines, "b", "be")
	if out := d.Out(counts); len(out) != 1 || out[0].Value != 3 {
		t.Errorf("results = %v", out)
	}
	if rows := d.Rows[string, int64]("counts"); rows["be"] != 3 {
		t.Errorf("rows = %v", rows)
	}
}

func TestNothingIsLostOrDoubledWhereverItCrashes(t *testing.T) {
	for _, point := range []streamtest.Point{
		streamtest.BeforeOffsets, streamtest.BeforeCommit, streamtest.UnknownCommit, streamtest.AfterCommit, streamtest.AfterStore,
	} {
		for _, lose := range []bool{false, true} {
			d := streamtest.New(t, wordCount, streamtest.Partitions(2), streamtest.CommitByHand())
			d.Put(lines, "a", "x y")
			d.Commit() // the words
			d.Commit() // their counts
			d.Put(lines, "a", "x z")
			if lose {
				d.LoseDisk()
			}
			d.CrashAt(point)
			d.Commit()
			d.Commit()
			d.Commit()
			want := map[string]int64{"x": 2, "y": 1, "z": 1}
			if got := d.Last(counts); !maps.Equal(got, want) {
				t.Errorf("crash at %s, disk lost %v: counts = %v, want %v", point, lose, got, want)
			}
			if got := d.Rows[string, int64]("counts"); !maps.Equal(got, want) {
				t.Errorf("crash at %s, disk lost %v: rows = %v, want %v", point, lose, got, want)
			}
		}
	}
}

func TestDeadLetterUndoesWhatTheRecordDid(t *testing.T) {
	numbers := stream.NewTopic("numbers", codec.String, codec.Int64)
	sums := stream.NewTopic("sums", codec.String, codec.Int64)
	define := func(b *stream.Builder) {
		total := b.Store("total", codec.String, codec.Int64)
		b.Stream(numbers).Process(func(c *stream.Context[string, int64], r stream.Record[string, int64]) error {
			sum, _, err := total.In(c).Get(r.Key)
			if err != nil {
				return err
			}
			sum += r.Value
			if err := total.In(c).Put(r.Key, sum); err != nil {
				return err
			}
			if err := c.Emit(r.WithValue(sum)); err != nil {
				return err
			}
			if r.Value < 0 {
				return errors.New("negative")
			}
			return nil
		}, stream.Uses(total), stream.Name("sum")).To(sums)
	}
	d := streamtest.New(t, define, streamtest.OnError(stream.DeadLetter("bad")), streamtest.Topics("bad"))
	d.Put(numbers, "a", 5)
	d.Put(numbers, "a", -100)
	d.Put(numbers, "a", 2)
	d.PutBytes("numbers", []byte("a"), []byte("?"))
	if got := d.Out(sums); len(got) != 2 || got[1].Value != 7 {
		t.Errorf("results = %v, want 5 and 7", got)
	}
	bad := d.DeadLetters("bad")
	if len(bad) != 2 || bad[0].Operator != "sum" || bad[0].Offset != 1 || bad[1].Op != stream.OpDecode {
		t.Errorf("dead letters = %+v", bad)
	}
	if n := d.Dropped("dead letter"); n != 2 {
		t.Errorf("%d dropped, want 2", n)
	}
}

func TestWallClockTimersFollowAdvance(t *testing.T) {
	ticks := stream.NewTopic("ticks", codec.String, codec.String)
	define := func(b *stream.Builder) {
		b.Stream(lines).ProcessWith(func() *ticker { return &ticker{} }).To(ticks)
	}
	d := streamtest.New(t, define)
	d.Advance(3500 * time.Millisecond)
	if n := len(d.Out(ticks)); n != 3 {
		t.Errorf("%d ticks in 3.5 s, want 3", n)
	}
	d.Crash()
	d.Advance(time.Second)
	if n := len(d.Out(ticks)); n != 1 {
		t.Errorf("%d ticks in the second after the crash, want 1", n)
	}
}

type ticker struct{}

func (*ticker) Init(c *stream.Context[string, string]) error {
	c.Schedule(stream.Schedule{Every: time.Second, WallClock: true}, func(c *stream.Context[string, string], now time.Time) error {
		return c.Emit(stream.Record[string, string]{Key: "tick", Value: now.UTC().String(), Time: now})
	})
	return nil
}

func (*ticker) Process(*stream.Context[string, string], stream.Record[string, string]) error {
	return nil
}
