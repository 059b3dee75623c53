package streamtest_test

import (
	"testing"
	"time"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/stream"
	"github.com/semelstream/semel/stream/streamtest"
)

// A topic that is named at run time is asked for when it is first needed. What
// was done before that in the same transaction is neither lost nor doubled.
func TestTopicsNamedAtRunTimeAreLearnedOnTheWay(t *testing.T) {
	in := stream.NewTopic("in", codec.String, codec.String)
	to := func(name string) stream.Topic[string, string] {
		return stream.NewTopic(name, codec.String, codec.String)
	}
	define := func(b *stream.Builder) {
		b.Stream(in).Route(func(r stream.Record[string, string]) stream.Topic[string, string] { return to(r.Value) })
	}
	d := streamtest.New(t, define, streamtest.Topics("x", "y"), streamtest.CommitByHand())
	for _, v := range []string{"x", "x", "y", "x"} {
		d.Put(in, "k", v)
	}
	d.Crash()
	d.Commit()
	d.Crash()
	d.Commit()
	if x, y := len(d.Out(to("x"))), len(d.Out(to("y"))); x != 3 || y != 1 {
		t.Errorf("x has %d records, y has %d; want 3 and 1", x, y)
	}
}

// The same for results at the commit and for timers, which no record comes
// again for.
func TestTopicsNamedAtRunTimeAreLearnedAtTheCommitAndInTimers(t *testing.T) {
	in := stream.NewTopic("in", codec.String, codec.String)
	counts := func(name string) stream.Topic[string, int64] {
		return stream.NewTopic(name, codec.String, codec.Int64)
	}
	ticks := stream.NewTopic("ticks", codec.String, codec.String)
	define := func(b *stream.Builder) {
		s := b.Stream(in)
		s.GroupByKey().Count("counts").ToStream().
			Route(func(r stream.Record[string, int64]) stream.Topic[string, int64] { return counts("counts-of-" + r.Key) })
		s.ProcessWith(func() *ticker { return &ticker{} }).
			Route(func(stream.Record[string, string]) stream.Topic[string, string] { return ticks })
	}
	d := streamtest.New(t, define, streamtest.Topics("counts-of-a", "counts-of-b", "ticks"))
	d.Put(in, "a", "")
	d.Put(in, "b", "")
	d.Put(in, "a", "")
	if a, b := d.Last(counts("counts-of-a")), d.Last(counts("counts-of-b")); a["a"] != 2 || b["b"] != 1 {
		t.Errorf("counts are %v and %v", a, b)
	}
	d.Advance(2500 * time.Millisecond)
	if n := len(d.Out(ticks)); n < 1 {
		t.Errorf("%d ticks", n)
	}
}
