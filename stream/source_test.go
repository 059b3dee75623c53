package stream

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semelstream/semel/stream/internal/runtime"
)

// byDigits takes the number before ':' as the time; without one the latest is
// taken, and "-" refuses.
func byDigits(r Record[string, string], latest time.Time) (time.Time, bool) {
	digits, _, _ := strings.Cut(r.Value, ":")
	if digits == "-" {
		return time.Time{}, false
	}
	ms, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return latest, !latest.IsZero()
	}
	return time.UnixMilli(ms), true
}

func TestEmptyIsNotNull(t *testing.T) {
	r := newRig(t, func(b *Builder) { b.Stream(texts).To(out) })
	send(r, texts, rec("", "", 1), Record[string, string]{Time: time.UnixMilli(2), NoKey: true, NoValue: true})
	if k := r.out[0]; k.Key == nil || k.Value == nil {
		t.Error("empty key or value was written as null")
	}
	if k := r.out[1]; k.Key != nil || k.Value != nil {
		t.Error("null was written as empty")
	}
	expect(r, out, "=@1", "-=-@2")
}

func TestRecordsWithoutATimestampAreDropped(t *testing.T) {
	r := newRig(t, func(b *Builder) { b.Stream(texts, Name("in")).To(out) })
	send(r, texts, rec("a", "v", -1), rec("a", "v", 0))
	expect(r, out, "a=v@0")
	r.dropped("in: no time")
}

func TestEventTimeIsTheRecordsTime(t *testing.T) {
	timed := texts.EventTime(byDigits)
	r := newRig(t, func(b *Builder) { b.Stream(timed, Name("in")).To(out) })
	send(r, timed, rec("a", "x", 1), rec("a", "50:", 2), rec("a", "30:", 3), rec("a", "x", 4), rec("a", "-", 5), del[string]("a", 6))
	expect(r, out, "a=50:@50", "a=30:@30", "a=x@50", "a=-@50")
	r.dropped("in: no time", "in: no time")
}

func TestLatestEventTimeSurvivesRestartsAndAborts(t *testing.T) {
	timed := texts.EventTime(byDigits)
	r := newRig(t, func(b *Builder) { b.Stream(timed, Name("in")).To(out) })
	send(r, timed, rec("a", "50:", 1))
	r.restart()
	send(r, timed, rec("a", "x", 2))
	expect(r, out, "a=50:@50", "a=x@50")
	send(r, timed, rec("a", "90:", 3))
	r.abort()
	send(r, timed, rec("a", "x", 3))
	expect(r, out, "a=x@50")
}

func TestLatestEventTimeCountsOnlyRecordsThatWerePushed(t *testing.T) {
	timed := texts.EventTime(byDigits)
	r := newRig(t, func(b *Builder) { b.Stream(timed).To(out) })
	send(r, timed, rec("a", "50:", 1))
	task := r.sorted()[0]
	// The runtime asks for the time of the next record, and then commits.
	if ms, ok := task.in.Time(0, encode(r, timed, rec("a", "90:", 2))); !ok || ms != 90 {
		t.Fatalf("time is %d, %v", ms, ok)
	}
	r.commit()
	if got := task.kept["event time of texts"]; got != 50 {
		t.Errorf("kept %d, want 50", got)
	}
	r.must(task.in.Push(0, encode(r, timed, rec("a", "60:", 3))))
	r.commit()
	if got := task.kept["event time of texts"]; got != 60 {
		t.Errorf("kept %d, want 60", got)
	}
}

func TestPanicInEventTimeIsTheFailureOfItsRecord(t *testing.T) {
	timed := texts.EventTime(func(r Record[string, string], _ time.Time) (time.Time, bool) {
		if r.Value == "bad" {
			panic("oops")
		}
		return r.Time, true
	})
	r := newRig(t, func(b *Builder) { b.Stream(timed, Name("in"), OnError(Skip)).To(out) })
	send(r, timed, rec("a", "bad", 1), rec("a", "good", 2))
	expect(r, out, "a=good@2")
}

func TestUndecodableRecordsFailAtTheSource(t *testing.T) {
	for _, timed := range []bool{false, true} {
		topic := ints
		if timed {
			topic = ints.EventTime(func(r Record[string, int64], _ time.Time) (time.Time, bool) { return r.Time, true })
		}
		r := newRig(t, func(b *Builder) { b.Stream(topic, Name("in")).To(intOut) })
		err := r.feed(&kgo.Record{Topic: "ints", Key: []byte("k"), Value: []byte("abc"), Timestamp: time.UnixMilli(1)})
		f, ok := err.(*runtime.Failure)
		if !ok || f.Op != runtime.OpDecode || f.Operator != "in" || !strings.Contains(err.Error(), "value: ") {
			t.Errorf("failed with %v", err)
		}
		send(r, topic, rec("k", int64(1), 2))
		expect(r, intOut, "k=1@2")
	}
}

func TestTopicReadTwiceIsReadOnce(t *testing.T) {
	top, err := Build(func(b *Builder) {
		b.Stream(texts).To(out)
		b.Stream(texts).To(out2)
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(top.graph.Subs) != 1 || len(top.graph.Subs[0].Sources) != 1 {
		t.Errorf("graph is\n%s", top.Describe())
	}
}
