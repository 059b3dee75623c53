package streamtest_test

import (
	"testing"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/stream"
	"github.com/semelstream/semel/stream/streamtest"
)

// A result that is sent at the commit has no record that could be blamed, but
// Skip passes over it all the same, and over nothing else.
func TestSkipPassesOverAResultThatFailsAtTheCommit(t *testing.T) {
	words := stream.NewTopic("words", codec.String, codec.String)
	out := stream.NewTopic("out", codec.String, codec.Int64)
	define := func(b *stream.Builder) {
		b.Stream(words).GroupByKey().Count("counts").
			MapValuesWithKey(func(k string, n int64) int64 {
				if k == "bad" {
					panic("no")
				}
				return n
			}).To(out)
	}
	d := streamtest.New(t, define, streamtest.OnError(stream.Skip), streamtest.CommitByHand())
	for _, k := range []string{"a", "bad", "b", "a"} {
		d.Put(words, k, "")
	}
	d.Commit()
	if got := d.Last(out); len(got) != 2 || got["a"] != 2 || got["b"] != 1 {
		t.Errorf("results = %v", got)
	}
	if rows := d.Rows[string, int64]("counts"); rows["bad"] != 1 {
		t.Errorf("rows = %v: the count itself did not fail", rows)
	}
	if n := d.Dropped("failed"); n != 1 {
		t.Errorf("%d failed, want 1", n)
	}
}
