package stream_test

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/internal/seam"
	"github.com/semelstream/semel/stream"
)

// These are about failures that no record at hand is to blame for.

// at sends a value of failIn with a time of its own.
func (f *failing) at(topic string, partition int32, key string, value, millis int64, headers ...kgo.RecordHeader) *failing {
	f.t.Helper()
	b, _ := codec.Int64.Append(nil, value)
	if _, err := f.w.Produce(seam.TP{Topic: topic, Partition: partition}, []byte(key), b, time.UnixMilli(millis), headers...); err != nil {
		f.t.Fatal(err)
	}
	return f
}

// letters are the records of a dead-letter topic.
func (f *failing) letters(topic string) (all []*stream.Failure) {
	f.t.Helper()
	for p := range f.w.Topics(topic)[topic].Partitions {
		for _, r := range f.w.Read(seam.TP{Topic: topic, Partition: p}, 0) {
			d, err := stream.ReadDeadLetter(r)
			if err != nil {
				f.t.Fatal(err)
			}
			all = append(all, d)
		}
	}
	return all
}

// heldJoin waits for a versioned table with texts of values, and fails for those
// below zero.
func heldJoin(s stream.Stream[string, int64], b *stream.Builder) {
	rows := b.Table(stream.NewTopic("rows", codec.String, codec.String), "rows", stream.Versioned(time.Second))
	s.MapValues(func(n int64) string { return fmt.Sprint("n", n) }).
		LeftJoin(rows, func(v, _ string, _ bool) string {
			if v[1] == '-' {
				panic("no")
			}
			return v
		}, stream.Wait("waiting", 10*ms), stream.Name("join")).
		To(stream.NewTopic("texts", codec.String, codec.String))
}

func TestARecordThatWaitedIsADeadLetterOfItsOwn(t *testing.T) {
	define := func(b *stream.Builder) { heldJoin(b.Stream(failIn), b) }
	f := newFailing(t).topics(1, "in", "rows", "texts", "dead").start(define)
	f.at("in", 0, "bad", -7, 1, kgo.RecordHeader{Key: "own", Value: []byte("h")})
	f.at("in", 0, "good", 2, 2).at("in", 0, "end", 3, 20)
	f.stops("SEMEL-FUNCTION", `"join"`, "in/0 at offset 0").policy(stream.DeadLetter("dead")).restart().processed()
	f.w.Kill(f.p)
	f.restart().at("in", 0, "end", 4, 40).processed()
	var texts []string
	for _, r := range f.w.Read(seam.TP{Topic: "texts"}, 0) {
		texts = append(texts, string(r.Value))
	}
	if fmt.Sprint(texts) != "[n2 n3]" {
		t.Errorf("results are %v", texts)
	}
	letters := f.letters("dead")
	if len(letters) != 1 {
		t.Fatalf("%d dead letters, want 1", len(letters))
	}
	switch d := letters[0]; {
	case string(d.Key) != "bad", string(d.Value) != "n-7", d.Time.UnixMilli() != 1, !d.Held:
		t.Errorf("the dead letter is not the record as it waited: %+v", d)
	case d.Topic != "in", d.Partition != 0, d.Offset != 0, d.Operator != "join", d.Op != stream.OpFunction, d.Err.Error() != "panic: no":
		t.Errorf("the dead letter does not say what failed: %+v", d)
	case len(d.Headers) != 1, d.Headers[0].Name != "own", string(d.Headers[0].Value) != "h":
		t.Errorf("its headers are %v", d.Headers)
	}
	if got := f.w.Read(seam.TP{Topic: "dead"}, 0)[0].Timestamp.UnixMilli(); got != 1 {
		t.Errorf("its time is %d", got)
	}
}

// What an aggregate tells at the commit waits too, and was read nowhere.
func TestARecordThatWaitedAndWasNotReadIsADeadLetterOfItsTask(t *testing.T) {
	define := func(b *stream.Builder) {
		heldJoin(b.Stream(failIn).GroupByKey().Reduce("last", func(_, n int64) int64 { return n }).ToStream(), b)
	}
	f := newFailing(t).topics(2, "in", "rows", "texts", "dead").policy(stream.DeadLetter("dead")).start(define)
	f.at("in", 1, "bad", -7, 1).processed().at("in", 1, "end", 3, 20).processed()
	if n := len(f.w.Read(seam.TP{Topic: "dead", Partition: 1}, 0)); n != 1 {
		t.Errorf("%d dead letters in the task's partition, want 1", n)
	}
	for _, d := range f.letters("dead") {
		if string(d.Key) != "bad" || string(d.Value) != "n-7" || !d.Held || d.Topic != "" {
			t.Errorf("the dead letter is %+v", d)
		}
	}
}

func TestADeadLetterOfARecordThatWaitedIsNotPassedOver(t *testing.T) {
	define := func(b *stream.Builder) { heldJoin(b.Stream(failIn), b) }
	f := newFailing(t).topics(1, "in", "rows", "texts").policy(stream.DeadLetter("dead")).start(define)
	f.at("in", 0, "bad", -7, 1).at("in", 0, "end", 3, 20)
	f.stops("SEMEL-DEAD-LETTER", "topic dead", "record in/0 at offset 0", "create the topic")
	f.topics(1, "dead").restart().processed()
	if n := len(f.letters("dead")); n != 1 {
		t.Errorf("%d dead letters, want 1", n)
	}
}

// brittle counts, or sends final counts, to sums; mended says when that goes well.
func brittle(final bool, mended *bool) func(*stream.Builder) {
	check := func(key string, n int64) int64 {
		if key == "bad" && !*mended {
			panic("no")
		}
		return n
	}
	return func(b *stream.Builder) {
		if !final {
			b.Stream(failIn).GroupByKey().Count("counts").MapValuesWithKey(check, stream.Name("check")).To(failSums)
			return
		}
		b.Stream(failIn).GroupByKey().Windowed(stream.Tumbling(10*ms, 0)).Count("counts").Final().
			ToStream(func(w stream.Windowed[string]) string { return w.Key }).
			MapValuesWithKey(check, stream.Name("check")).
			To(failSums)
	}
}

// A result is no record that could be a dead letter. It stops the app, and is sent
// when that is mended.
func TestAResultThatFailsIsNoDeadLetterAndIsNotLost(t *testing.T) {
	for _, final := range []bool{false, true} {
		t.Run(fmt.Sprint("final ", final), func(t *testing.T) {
			mended := false
			f := newFailing(t).topics(1, "in", "sums", "dead").policy(stream.DeadLetter("dead")).start(brittle(final, &mended))
			f.at("in", 0, "bad", 1, 1).at("in", 0, "good", 1, 2).at("in", 0, "bad", 1, 3).at("in", 0, "end", 1, 20)
			f.stops("SEMEL-FUNCTION", `"check"`, "task 0_0", "panic: no", "not here: it is a result")
			f.until("markers are written", f.w.Settled)
			if n := f.w.End(seam.TP{Topic: "dead"}); n != 0 || len(f.sums()) != 0 {
				t.Errorf("%d dead letters, results %v", n, f.sums())
			}
			mended = true
			want := map[string]int64{"bad": 2, "good": 1, "end": 1}
			if final {
				delete(want, "end")
			}
			if f.restart().processed(); !maps.Equal(f.sums(), want) {
				t.Errorf("results are %v, want %v", f.sums(), want)
			}
		})
	}
}
