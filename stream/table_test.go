package stream

import (
	"errors"
	"strings"
	"testing"
)

func TestSourceTableDropsRecordsWithoutKeyAndDeletesByTombstone(t *testing.T) {
	r := newRig(t, func(b *Builder) { b.Table(texts, "t").To(out) })
	send(r, texts, rec("a", "x", 5), unkeyed[string]("y", 6), rec("a", "y", 2), del[string]("a", 3), del[string]("b", 4))
	// Offsets decide, not times, and a delete of nothing is told.
	expect(r, out, "a=x@5", "a=y@2", "a=-@3", "b=-@4")
	r.dropped("t: no key")
}

func TestSourceTopicIsTheTablesChangelog(t *testing.T) {
	r := newRig(t, func(b *Builder) { b.Table(texts, "t") })
	if s := r.top.graph.Stores[0]; s.Source == nil || s.ChangelogName("app") != "texts" {
		t.Errorf("the changelog is %q", s.ChangelogName("app"))
	}
}

func TestFilterDeletesWhatBecomesHidden(t *testing.T) {
	r := newRig(t, func(b *Builder) {
		b.Table(texts, "t").Filter(func(_, v string) bool { return v != "no" }).To(out)
	})
	send(r, texts, rec("a", "yes", 1), rec("a", "no", 2), rec("a", "yes", 3))
	expect(r, out, "a=yes@1", "a=-@2", "a=yes@3")
}

func TestFilterLeavesOutDeletesOfHiddenRowsWhereOldValuesAreAskedFor(t *testing.T) {
	calls := 0
	r := newRig(t, func(b *Builder) {
		shown := b.Table(texts, "t").Filter(func(_, v string) bool { calls++; return v != "no" })
		shown.To(out)
		shown.GroupBy(func(_, v string) (string, string) { return v, v }).Count("n", EmitEach()).To(intOut)
	})
	send(r, texts, rec("a", "no", 1), rec("a", "yes", 2), rec("a", "no", 3), del[string]("a", 4))
	expect(r, out, "a=yes@2", "a=-@3")
	expect(r, intOut, "yes=1@2", "yes=0@3")
	if calls != 6 {
		t.Errorf("%d calls, want 3 for new values and 3 for old ones", calls)
	}
}

func TestTableFunctionsAreNotCalledForMissingRows(t *testing.T) {
	r := newRig(t, func(b *Builder) {
		table := b.Table(texts, "t")
		table.MapValues(strings.ToUpper).To(out)
		table.MapOrDelete(func(k, v string) (string, bool) { return k + v, v != "" }).To(out2)
	})
	send(r, texts, rec("a", "x", 1), rec("a", "", 2), del[string]("a", 3))
	expect(r, out, "a=X@1", "a=@2", "a=-@3")
	expect(r, out2, "a=ax@1", "a=-@2", "a=-@3")
}

func TestTryMapValuesThatFailsUndoesTheRow(t *testing.T) {
	bad := errors.New("bad")
	r := newRig(t, func(b *Builder) {
		table := b.Table(texts, "t")
		table.TryMapValues(func(v string) (string, error) {
			if v == "bad" {
				return "", bad
			}
			return v, nil
		}, OnError(Skip), Name("try")).To(out)
		b.Stream(texts2).Join(table, func(v, row string) string { return v + row }).To(out2)
	})
	send(r, texts, rec("a", "x", 1), rec("a", "bad", 2))
	send(r, texts2, rec("a", "+", 3))
	expect(r, out, "a=x@1")
	expect(r, out2, "a=+x@3")
}

func TestStoredKeepsWorkedOutRows(t *testing.T) {
	r := newRig(t, func(b *Builder) {
		kept := b.Table(texts, "t").MapValues(strings.ToUpper).Stored("upper", InMemory())
		kept.To(out)
		b.Stream(texts2).LeftJoin(kept, func(v, row string, ok bool) string { return v + row }).To(out2)
	})
	send(r, texts, rec("a", "x", 1))
	send(r, texts2, rec("a", "+", 2), rec("b", "+", 3))
	send(r, texts, del[string]("a", 4))
	send(r, texts2, rec("a", "+", 5))
	expect(r, out, "a=X@1", "a=-@4")
	expect(r, out2, "a=+X@2", "b=+@3", "a=+@5")
	if s := r.top.graph.Stores[1]; s.Name != "upper" || !s.InMemory || s.Source != nil {
		t.Errorf("store %+v", s)
	}
}

func TestToTableGoesThroughATopicIfTheKeyMayHaveChanged(t *testing.T) {
	r := newRig(t, func(b *Builder) {
		b.Stream(texts).MapRecords(func(r Record[string, string]) Record[string, string] {
			if r.Value == "" {
				return r.WithoutKey()
			}
			return r.WithKey(r.Value)
		}).ToTable("t").To(out)
	})
	if n := len(r.top.graph.Subs); n != 2 {
		t.Fatalf("%d sub-topologies, want 2", n)
	}
	send(r, texts, rec("a", "x", 1), rec("a", "", 2))
	expect(r, out, "x=x@1")
	r.dropped("t-repartition-sink: no key")
}

func TestGroupedTableRemovesFromTheOldGroupFirst(t *testing.T) {
	r := newRig(t, func(b *Builder) {
		b.Table(texts, "t").
			GroupBy(func(k, v string) (string, string) { return v, k }).
			Aggregate("groups",
				func(_, k, acc string) string { return acc + "+" + k },
				func(_, k, acc string) string { return acc + "-" + k }, EmitEach()).
			To(out)
	})
	send(r, texts, rec("a", "x", 1), rec("b", "x", 2), rec("a", "y", 3), rec("a", "y", 4), del[string]("b", 5), del[string]("c", 6))
	expect(r, out,
		"x=+a@1", "x=+a+b@2",
		"x=+a+b-a@3", "y=+a@3", // moved
		"y=+a-a+a@4", // stayed, in one step
		"x=+a+b-a-b@5")
}

func TestGroupedTableReduceBeginsWithTheFirstValue(t *testing.T) {
	r := newRig(t, func(b *Builder) {
		b.Table(ints, "t").
			GroupBy(func(_ string, n int64) (string, int64) { return "all", n }).
			Reduce("sum",
				func(acc, n int64) int64 { return acc + n },
				func(acc, n int64) int64 { return acc - n }).
			To(intOut)
	})
	send(r, ints, rec("a", int64(3), 1), rec("b", int64(4), 2), rec("a", int64(5), 3))
	r.commit()
	expect(r, intOut, "all=9@3")
}

func TestRemoveIsOnlyCalledForAGroupThatHasARow(t *testing.T) {
	removed := 0
	r := newRig(t, func(b *Builder) {
		b.Table(texts, "t").
			GroupBy(func(k, v string) (string, string) { return v, k }).
			Update("groups",
				func(_, k, acc string, ok bool) (string, bool) { return acc + k, k != "hidden" },
				func(_, _, _ string, ok bool) (string, bool) { removed++; return "", false }, EmitEach()).
			To(out)
	})
	send(r, texts, rec("hidden", "x", 1), del[string]("hidden", 2), rec("a", "x", 3), del[string]("a", 4))
	expect(r, out, "x=-@1", "x=-@2", "x=a@3", "x=-@4")
	if removed != 1 {
		t.Errorf("remove was called %d times, want once", removed)
	}
}
