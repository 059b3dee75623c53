package check

import (
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)

func log(topic string, recs ...string) []*Log {
	l := &Log{Topic: topic, Ended: map[Txn]bool{}}
	for i, s := range recs {
		k, v, _ := strings.Cut(s, "=")
		l.Committed = append(l.Committed, &kgo.Record{Key: []byte(k), Value: []byte(v), Offset: int64(i)})
	}
	return []*Log{l}
}

func TestReportNamesWhatIsWrong(t *testing.T) {
	in := log("in", "a=1", "b=2", "a=3")
	for _, c := range []struct {
		name                        string
		results                     []string
		lost, doubled, torn, wrongs int
	}{
		{"all is well", []string{"a=1 1", "b=1 2", "a=2 3"}, 0, 0, 0, 0},
		{"one is lost", []string{"a=1 1", "a=2 3"}, 1, 0, 0, 0},
		{"one is doubled", []string{"a=1 1", "b=1 2", "a=2 3", "b=1 2"}, 0, 1, 0, 0},
		{"counted twice, sent once", []string{"a=1 1", "b=1 2", "a=3 3"}, 0, 0, 0, 1},
		{"order", []string{"a=2 3", "b=1 2", "a=1 1"}, 0, 0, 0, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			var r Report
			r.Each(in, log("out", c.results...))
			if len(r.Lost) != c.lost || len(r.Doubled) != c.doubled || len(r.Torn) != c.torn || len(r.Wrong) != c.wrongs {
				t.Errorf("%v", &r)
			}
		})
	}
}

func TestTransactionThatEndedTwoWaysIsTorn(t *testing.T) {
	a, b := log("a"), log("b")
	a[0].Ended[Txn{7, 1}], b[0].Ended[Txn{7, 1}] = true, false
	var r Report
	r.Markers(a, b)
	if len(r.Torn) != 1 {
		t.Errorf("%v", &r)
	}
}

func TestMergeKeepsOffsetOrder(t *testing.T) {
	rec := func(o int64) *kgo.Record { return &kgo.Record{Offset: o} }
	got := merge([]*kgo.Record{rec(1), rec(4), rec(6)}, []*kgo.Record{rec(2), rec(5), rec(9)})
	for i, want := range []int64{1, 2, 4, 5, 6, 9} {
		if got[i].Offset != want {
			t.Fatalf("record %d is at %d, want %d", i, got[i].Offset, want)
		}
	}
}
