package runtime

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semelstream/semel/internal/seam"
)

// loadOf makes a load of records, each a topic, a partition and a number.
func loadOf(text string) *load {
	l := &load{joined: 100}
	var recs []*kgo.Record
	for _, w := range strings.Fields(text) {
		r := &kgo.Record{Topic: w[:1], Key: []byte(w)}
		fmt.Sscanf(w[1:2], "%d", &r.Partition)
		recs = append(recs, r)
	}
	l.records.push(recs)
	return l
}

func keysOf(recs []*kgo.Record) string {
	var keys []string
	for _, r := range recs {
		keys = append(keys, string(r.Key))
	}
	return strings.Join(keys, " ")
}

func TestTheFirstRecordOfEachPartitionGoesAhead(t *testing.T) {
	for _, c := range []struct{ load, firsts, rest string }{
		{"a0.1 a0.2 a1.1 a0.3 b0.1 a1.2", "a0.1 a1.1 b0.1", "a0.2 a0.3 a1.2"},
		{"a0.1", "a0.1", ""},
		{"a0.1 a1.1 b1.1", "a0.1 a1.1 b1.1", ""},
		{"", "", ""},
	} {
		l := loadOf(c.load)
		l.pickFirsts()
		if f, r := keysOf(l.firsts), keysOf(slices.Concat(l.records.list...)); f != c.firsts || r != c.rest {
			t.Errorf("%s: %q ahead of %q, want %q and %q", c.load, f, r, c.firsts, c.rest)
		}
		if n := len(slices.Concat(l.records.list...)); l.records.n != n {
			t.Errorf("%s: %d records are left, %d are counted", c.load, n, l.records.n)
		}
	}
}

// Once each partition of the transaction has had its first record, no other record
// is looked at.
func TestNoFirstRecordIsLookedForWhereAllAreKnown(t *testing.T) {
	l := loadOf("a0.1 a1.1 a0.2")
	l.joined = 2
	l.pickFirsts()
	l.records = loadOf("a8.1 a0.3").records
	l.pickFirsts()
	if f, r := keysOf(l.firsts), keysOf(slices.Concat(l.records.list...)); f != "" || r != "a8.1 a0.3" {
		t.Errorf("%q ahead of %q", f, r)
	}
}

func TestAPartitionIsNewOnceInATransaction(t *testing.T) {
	l := loadOf("a0.1 a1.1 a0.2")
	l.pickFirsts()
	l.records = loadOf("a0.3 a2.1 a1.2").records
	l.pickFirsts()
	if f, r := keysOf(l.firsts), keysOf(slices.Concat(l.records.list...)); f != "a2.1" || r != "a0.3 a1.2" {
		t.Errorf("%q ahead of %q", f, r)
	}
}

func TestPartitionsThatWereWrittenMuchToJoinWithTheFirst(t *testing.T) {
	s := newSinks("app", func(string) int32 { return 3 })
	s.busyAt = 2
	k, err := s.find("out")
	if err != nil {
		t.Fatal(err)
	}
	joined := func(partitions ...int32) []int32 {
		for _, p := range partitions {
			k.use(s, p)
		}
		var all []int32
		for _, tp := range s.add {
			all = append(all, tp.Partition)
		}
		slices.Sort(all)
		return all
	}
	if got := joined(0, 1, 1, 2, 2); !slices.Equal(got, []int32{0, 1, 2}) {
		t.Fatal(got)
	}
	s.ended()
	if got := joined(0); !slices.Equal(got, []int32{0, 1, 2}) {
		t.Errorf("the second transaction begins with %v", got)
	}
	s.ended()
	if got := joined(0); !slices.Equal(got, []int32{0}) {
		t.Errorf("the third one begins with %v, though the second wrote to one only", got)
	}
}

type noSignal struct{ seam.Signal }

func (noSignal) Notify() {}

// Many records crowd a transaction, and so do large ones, until they have gone.
func TestATransactionIsCrowdedByRecordsAndByBytes(t *testing.T) {
	for _, c := range []struct {
		records int
		bytes   int64
		want    bool
	}{{9, 99, false}, {10, 1, true}, {1, 100, true}} {
		x := &transit{running: true, signal: noSignal{}}
		w := &worker{app: &App{cfg: Config{Queue: 10, QueueBytes: 100}}, sinks: newSinks("app", nil), transit: x}
		if _, crowded := w.push(t.Context(), numbered(nil, 0, c.records), c.bytes); crowded != c.want {
			t.Errorf("%d records of %d bytes: crowded is %v", c.records, c.bytes, crowded)
		}
		w.unload(x)
		if _, crowded := w.push(t.Context(), numbered(nil, 0, 1), 1); crowded {
			t.Errorf("%d records of %d bytes have gone, and it is still crowded", c.records, c.bytes)
		}
	}
}
