package changelog_test

import (
	"errors"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semelstream/semel/changelog"
	"github.com/semelstream/semel/internal/seam"
)

// tx is a transaction whose records get their offsets when it commits.
type tx struct {
	recs []*kgo.Record
	next int64
	err  error
}

func (x *tx) Log(tp seam.TP, key, value []byte, ms int64, headers []kgo.RecordHeader) (*kgo.Record, error) {
	if x.err != nil {
		return nil, x.err
	}
	r := &kgo.Record{Topic: tp.Topic, Partition: tp.Partition, Key: key, Value: value, Timestamp: time.UnixMilli(ms), Headers: headers}
	x.recs = append(x.recs, r)
	return r, nil
}

func (x *tx) commit() {
	for _, r := range x.recs {
		r.Offset, x.next = x.next, x.next+1
	}
	x.recs, x.next = nil, x.next+1 // and the marker
}

func TestAWriterKnowsThePositionAfterItsLastChangeOnceThatIsCommitted(t *testing.T) {
	w, x := changelog.NewWriter(tp0), &tx{next: 7}
	if at, ok := w.Committed(); ok {
		t.Fatalf("nothing was written, and the position is %d", at)
	}
	log := func(key string) {
		t.Helper()
		if err := w.Log(x, []byte(key), nil, 5); err != nil {
			t.Fatal(err)
		}
	}
	log("a")
	log("b")
	if r := x.recs[1]; r.Topic != tp0.Topic || r.Value != nil || r.Timestamp.UnixMilli() != 5 || w.TP() != tp0 {
		t.Fatal(r)
	}
	x.commit()
	if at, ok := w.Committed(); at != 9 || !ok {
		t.Fatal(at, ok)
	}
	if at, ok := w.Committed(); ok {
		t.Fatalf("a commit without a change moves the position to %d", at)
	}
	log("c")
	x.commit()
	if at, ok := w.Committed(); at != 11 || !ok {
		t.Fatal(at, ok)
	}
}

func TestAChangeThatIsRefusedMovesNothing(t *testing.T) {
	w, x := changelog.NewWriter(tp0), &tx{err: errors.New("too large")}
	if err := w.Log(x, []byte("a"), nil, 0); !errors.Is(err, x.err) {
		t.Fatal(err)
	}
	if at, ok := w.Committed(); ok {
		t.Fatal(at)
	}
}

func TestRowsHaveTheHeadersOfTheirWriterAndDeletesHaveNone(t *testing.T) {
	w, x := changelog.NewWriter(tp0, kgo.RecordHeader{Key: "v", Value: []byte{3}}), &tx{}
	for _, value := range [][]byte{[]byte("x"), {}, nil} {
		if err := w.Log(x, []byte("a"), value, 0); err != nil {
			t.Fatal(err)
		}
	}
	for i, r := range x.recs {
		has := len(r.Headers) == 1 && r.Headers[0].Key == "v" && string(r.Headers[0].Value) == "\x03"
		if has != (i < 2) || !has && len(r.Headers) > 0 {
			t.Errorf("record %d, of %v, has %v", i, r.Value, r.Headers)
		}
	}
}

func TestPositionsThatGoBackAreABug(t *testing.T) {
	w, x := changelog.NewWriter(tp0), &tx{next: 3}
	commit := func() (ok bool) {
		if err := w.Log(x, []byte("a"), nil, 0); err != nil {
			t.Fatal(err)
		}
		x.commit()
		_, ok = w.Committed()
		return ok
	}
	if !commit() {
		t.Fatal("no position")
	}
	x.next = 0
	defer func() {
		if recover() == nil {
			t.Fatal("offset 0 came after offset 3")
		}
	}()
	commit()
}

// same is an Out that needs no memory.
type same struct{ r *kgo.Record }

func (s same) Log(seam.TP, []byte, []byte, int64, []kgo.RecordHeader) (*kgo.Record, error) {
	return s.r, nil
}

func TestAWriterAllocatesNothing(t *testing.T) {
	w, out := changelog.NewWriter(tp0, kgo.RecordHeader{Key: "v", Value: []byte{3}}), same{&kgo.Record{}}
	key, value := []byte("k"), []byte("v")
	n := testing.AllocsPerRun(1000, func() {
		if err := w.Log(out, key, value, 1); err != nil {
			t.Fatal(err)
		}
		out.r.Offset++
		if _, ok := w.Committed(); !ok {
			t.Fatal("no position")
		}
	})
	if n != 0 {
		t.Fatalf("%v allocations", n)
	}
}
