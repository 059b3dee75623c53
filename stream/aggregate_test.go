package stream

import (
	"errors"
	"strings"
	"testing"

	"github.com/semelstream/semel/codec"
)

func TestAggregatesDropRecordsWithoutKeyOrValue(t *testing.T) {
	r := newRig(t, func(b *Builder) { b.Stream(texts).GroupByKey().Count("n").To(intOut) })
	send(r, texts, rec("a", "x", 1), del[string]("a", 2), unkeyed[string]("y", 3), rec("a", "z", 0))
	r.commit()
	expect(r, intOut, "a=2@1")
	r.dropped("n: tombstone", "n: no key")
}

func TestReduceBeginsWithTheFirstValue(t *testing.T) {
	r := newRig(t, func(b *Builder) {
		b.Stream(texts).GroupByKey().Reduce("r", func(acc, v string) string { return acc + "," + v }, EmitEach()).To(out)
	})
	send(r, texts, rec("a", "1", 1), rec("a", "2", 2))
	expect(r, out, "a=1@1", "a=1,2@2")
}

func TestAggregateBeginsWithTheZeroValue(t *testing.T) {
	r := newRig(t, func(b *Builder) {
		b.Stream(texts).GroupByKey().
			Aggregate("longest", func(_, v string, n int64) int64 { return max(n, int64(len(v))) }, EmitEach()).
			To(intOut)
	})
	send(r, texts, rec("a", "", 1), rec("a", "xyz", 2), rec("a", "x", 3))
	expect(r, intOut, "a=0@1", "a=3@2", "a=3@3")
}

// delete is a row that goes when "-" comes.
func appendOrDelete(_, v, row string, _ bool) (string, bool) { return row + v, v != "-" }

func TestUpdateThatReturnsFalseDeletesTheRow(t *testing.T) {
	r := newRig(t, func(b *Builder) {
		b.Stream(texts).GroupByKey().Update("rows", appendOrDelete, EmitEach()).To(out)
	})
	// The time begins anew with the next row, and a delete of nothing is told.
	send(r, texts, rec("a", "x", 9), rec("a", "-", 3), rec("a", "y", 4), rec("b", "-", 5))
	expect(r, out, "a=x@9", "a=-@9", "a=y@4", "b=-@5")
}

func TestRowThatCameAndWentWithinATransactionIsNotSent(t *testing.T) {
	r := newRig(t, func(b *Builder) { b.Stream(texts).GroupByKey().Update("rows", appendOrDelete).To(out) })
	send(r, texts, rec("a", "x", 1), rec("a", "-", 2), rec("b", "x", 3))
	r.commit()
	expect(r, out, "b=x@3")
	if r.writes["rows"] != 1 {
		t.Errorf("%d changelog records, want 1", r.writes["rows"])
	}
	send(r, texts, rec("b", "-", 4))
	r.commit()
	expect(r, out, "b=-@4")
}

func TestTryUpdateThatFailsLeavesTheRowAsItWas(t *testing.T) {
	bad := errors.New("bad")
	r := newRig(t, func(b *Builder) {
		b.Stream(texts).GroupByKey().TryUpdate("rows", func(_, v, row string, _ bool) (string, bool, error) {
			if v == "bad" {
				return "", false, bad
			}
			return row + v, true, nil
		}, EmitEach()).To(out)
	})
	send(r, texts, rec("a", "x", 1))
	if err := feed(r, texts, rec("a", "bad", 2)); !errors.Is(err, bad) || !strings.Contains(err.Error(), "rows: function") {
		t.Fatalf("got %v", err)
	}
	send(r, texts, rec("a", "y", 3))
	expect(r, out, "a=x@1", "a=xy@3")
}

func TestResultCarriesTheHeadersOfItsLastRecord(t *testing.T) {
	for _, opts := range [][]AggregateOption{nil, {EmitEach()}} {
		r := newRig(t, func(b *Builder) { b.Stream(texts).GroupByKey().Count("n", opts...).To(intOut) })
		send(r, texts, rec("b", "", 1).WithHeader("h", []byte("b")))
		send(r, texts, rec("a", "", 1).WithHeader("h", []byte("1")), rec("a", "", 2).WithHeader("h", []byte("2")))
		r.commit()
		got := received(r, intOut)
		if v, _ := got[len(got)-1].Headers.Last("h"); string(v) != "2" {
			t.Errorf("header %q, want that of the last record", v)
		}
		send(r, texts, rec("a", "", 3))
		r.commit()
		if got := received(r, intOut); len(got) != 1 || len(got[0].Headers) != 0 {
			t.Errorf("got %v, want no headers in the next transaction", got)
		}
	}
}

func TestAggregateOfAnAggregateSendsOncePerTransactionToo(t *testing.T) {
	// Both are in one sub-topology: the first tells the second before that
	// tells what follows.
	r := newRig(t, func(b *Builder) {
		b.Stream(texts).GroupByKey().Count("n").
			ToStream().GroupByKey().Count("updates").To(intOut)
	})
	if n := len(r.top.graph.Subs); n != 1 {
		t.Fatalf("%d sub-topologies, want 1", n)
	}
	send(r, texts, rec("a", "", 1), rec("a", "", 2), rec("b", "", 3))
	r.commit()
	expect(r, intOut, "a=1@2", "b=1@3")
	send(r, texts, rec("a", "", 4))
	r.commit()
	expect(r, intOut, "a=2@4")
}

func TestAggregatesOfOneGroupedHaveTopicsOfTheirOwn(t *testing.T) {
	r := newRig(t, func(b *Builder) {
		byValue := b.Stream(texts).GroupBy(func(_, v string) string { return v }, Partitions(3))
		byValue.Count("n").To(intOut)
		byValue.Reduce("last", func(_, v string) string { return v }).To(out)
	})
	var internal []string
	for _, topic := range r.top.graph.Topics {
		if topic.Internal {
			internal = append(internal, topic.FullName("app"))
			if topic.Partitions != 3 {
				t.Errorf("%s has %d partitions, want 3", topic.Name, topic.Partitions)
			}
		}
	}
	if got := strings.Join(internal, " "); got != "app-n-repartition app-last-repartition" {
		t.Errorf("topics %s", got)
	}
	send(r, texts, rec("a", "x", 1), rec("b", "x", 2))
	r.commit()
	expect(r, intOut, "x=2@2")
	expect(r, out, "x=x@2")
}

func TestGroupByKeyRepartitionsOnlyWhatMayHaveAnotherKey(t *testing.T) {
	subs := func(define func(*Builder)) int {
		top, err := Build(define)
		if err != nil {
			t.Fatal(err)
		}
		return len(top.graph.Subs)
	}
	if n := subs(func(b *Builder) { b.Stream(texts).MapValues(strings.ToUpper).GroupByKey().Count("n") }); n != 1 {
		t.Errorf("after MapValues: %d sub-topologies", n)
	}
	if n := subs(func(b *Builder) {
		b.Stream(texts).SelectKey(func(k, _ string) string { return k }).GroupByKey().Count("n")
	}); n != 2 {
		t.Errorf("after SelectKey: %d sub-topologies", n)
	}
}

func TestRowsUseTheCodecsThatWereNamed(t *testing.T) {
	type total struct{ n int64 }
	asText := codec.Via(codec.String, func(n total) string { return strings.Repeat("i", int(n.n)) }, func(s string) (total, error) { return total{int64(len(s))}, nil })
	r := newRig(t, func(b *Builder) {
		b.Stream(texts).GroupByKey().
			Aggregate("n", func(_, _ string, acc total) total { return total{acc.n + 1} }, ValueCodec(asText), EmitEach()).
			MapValues(func(n total) int64 { return n.n }).
			To(intOut)
	})
	send(r, texts, rec("a", "", 1), rec("a", "", 2))
	r.commit()
	r.abort() // reads the row back from bytes
	send(r, texts, rec("a", "", 3))
	expect(r, intOut, "a=3@3")
}

func TestAggregatesDoNotAllocatePerRecord(t *testing.T) {
	r := newRig(t, func(b *Builder) { b.Stream(texts).GroupByKey().Count("n") })
	task := r.sorted()[0]
	k := encode(r, texts, rec("a", "x", 1))
	push := func() {
		if err := task.Process(task.in, 0, k, 1); err != nil {
			t.Fatal(err)
		}
	}
	push()
	if n := testing.AllocsPerRun(1000, push); n != 0 {
		t.Errorf("%v allocations per record", n)
	}
}
