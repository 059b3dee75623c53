package stream_test

import (
	"testing"
	"time"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/stream"
	"github.com/semelstream/semel/stream/streamtest"
)

// The record that ends the wait of another is not to blame for its failure, and
// the one that failed does not come back.
func TestARecordThatFailsAfterItsWaitIsJudgedForItself(t *testing.T) {
	values, results := topic("values"), topic("results")
	rows := stream.NewTopic("rows", codec.String, codec.String)
	fails := true
	define := func(b *stream.Builder) {
		b.Stream(values).LeftJoin(b.Table(rows, "rows", stream.Versioned(time.Second)), func(v, _ string, _ bool) string {
			if fails && v == "bad" {
				panic("no")
			}
			return v
		}, stream.Wait("waiting", 10*ms)).To(results)
	}
	d := streamtest.New(t, define, streamtest.OnError(stream.Skip))
	put := func(v string, millis int64) { d.PutAt(values, v, v, at(millis)) }
	put("bad", 1)
	put("good", 2)
	put("last", 12)
	fails = false
	put("end", 23)
	got := d.Last(results)
	if len(got) != 2 || got["good"] == "" || got["last"] == "" {
		t.Errorf("results are %v", got)
	}
	if n := d.Dropped("failed"); n != 1 {
		t.Errorf("%d failed, want 1", n)
	}
	if n := len(d.Rows[string, string]("rows")); n != 0 {
		t.Errorf("%d rows of a table without records", n)
	}
}
