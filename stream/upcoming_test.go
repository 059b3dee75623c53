package stream

import (
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semelstream/semel/codec"
)

// asking is a topology that notes which ids it asks for and what passes.
type asking struct {
	*hot
	asked, passed []string
}

func newAsking(t *testing.T, id func(v string) string) *asking {
	a := &asking{}
	a.hot = newHot(t, func(b *Builder) {
		b.Stream(NewTopic("in", codec.String, codec.String)).Dedup("seen", func(_, v string) string {
			a.asked = append(a.asked, v)
			return id(v)
		}, time.Hour).ForEach(func(_, v string) error { a.passed = append(a.passed, v); return nil })
	})
	return a
}

func valued(values ...string) (recs []*kgo.Record) {
	for i, v := range values {
		recs = append(recs, &kgo.Record{Topic: "in", Key: []byte("k"), Value: []byte(v), Timestamp: time.UnixMilli(int64(i)), Offset: int64(i)})
	}
	return recs
}

func letter(v string) string { return v[:1] }

func (a *asking) expect(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: got %q, want %q", what, got, want)
	}
}

func TestIDsThatAreLookedAtAheadAreAskedForOnce(t *testing.T) {
	a := newAsking(t, letter)
	recs := valued("a1", "b1", "a2", "c1", "b2", "d1")
	a.in.Touch(0, recs[:4])
	a.expect(t, "asked ahead", a.asked, "a1", "b1", "a2", "c1")
	for _, r := range recs {
		a.push(t, r)
	}
	a.expect(t, "asked", a.asked, "a1", "b1", "a2", "c1", "b2", "d1")
	a.expect(t, "passed", a.passed, "a1", "b1", "c1", "d1")
}

func TestARecordThatDoesNotComeLeavesItsIDToNobody(t *testing.T) {
	a := newAsking(t, letter)
	recs := valued("a1", "b1", "c1", "b2", "e1", "f1")
	a.in.Touch(0, recs[:5])
	for _, i := range []int{0, 2, 3, 4} {
		a.push(t, recs[i])
	}
	a.expect(t, "passed", a.passed, "a1", "c1", "b2", "e1")
	a.in.Touch(0, recs[5:])
	a.push(t, recs[1]) // after a step back
	a.expect(t, "passed then", a.passed, "a1", "c1", "b2", "e1")
}

func TestARecordOfAnotherTopicWithTheSameOffsetHasItsOwnID(t *testing.T) {
	a := newAsking(t, letter)
	recs, others := valued("a1", "b1"), valued("c1")
	others[0].Topic = "in-2"
	a.in.Touch(0, recs)
	a.push(t, others[0])
	a.push(t, recs[0])
	a.push(t, recs[1])
	a.expect(t, "passed", a.passed, "c1", "a1", "b1")
}

func TestAnIDThatPanicsAheadFailsItsOwnRecord(t *testing.T) {
	a := newAsking(t, letter) // panics for the empty value
	recs := valued("a1", "", "b1")
	a.in.Touch(0, recs)
	a.push(t, recs[0])
	if err := a.task.Process(a.in, 0, recs[1], 1); err == nil {
		t.Error("a record without an id did not fail")
	}
	a.push(t, recs[2])
	a.expect(t, "passed", a.passed, "a1", "b1")
}

func TestRecordsThatCostSomethingToDecodeAreNotLookedAtAhead(t *testing.T) {
	asked := 0
	h := newHot(t, func(b *Builder) {
		b.Stream(NewTopic("in", codec.String, codec.JSON[int]())).
			Dedup("seen", func(_ string, v int) int64 { asked++; return int64(v) }, time.Hour).ForEach(func(string, int) error { return nil })
	})
	recs := valued("1", "2")
	h.in.Touch(0, recs)
	if asked != 0 {
		t.Errorf("%d ids were asked for ahead", asked)
	}
	h.push(t, recs[0])
	if asked != 1 {
		t.Errorf("%d ids were asked for", asked)
	}
}
