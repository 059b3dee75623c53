package stream

import (
	"strings"
	"testing"
)

func TestInnerJoinDropsWhatHasNoKeyOrValue(t *testing.T) {
	r := newRig(t, func(b *Builder) {
		table := b.Table(texts2, "t")
		b.Stream(texts).Join(table, func(v, row string) string { return v + row }, Name("j")).To(out)
	})
	send(r, texts2, rec("", "empty", 1), rec("a", "A", 1))
	send(r, texts, unkeyed[string]("x", 2), del[string]("a", 3), rec("b", "x", 4), rec("a", "x", 5), rec("", "x", 6))
	expect(r, out, "a=xA@5", "=xempty@6")
	r.dropped("j: no key", "j: tombstone")
}

func TestLeftJoinPassesWhatHasNoKeyOrRow(t *testing.T) {
	r := newRig(t, func(b *Builder) {
		table := b.Table(texts2, "t")
		b.Stream(texts).LeftJoin(table, joinOr("none"), Name("j")).To(out)
	})
	send(r, texts2, rec("", "empty", 1), rec("a", "A", 1))
	send(r, texts, unkeyed[string]("x", 2), del[string]("a", 3), rec("b", "x", 4), rec("a", "x", 5))
	expect(r, out, "-=xnone@2", "b=xnone@4", "a=xA@5")
	r.dropped("j: tombstone")
}

func joinOr(none string) func(v, row string, ok bool) string {
	return func(v, row string, ok bool) string {
		if !ok {
			return v + row + none
		}
		return v + row
	}
}

func TestJoinKeepsTimeAndHeadersOfTheStream(t *testing.T) {
	r := newRig(t, func(b *Builder) {
		b.Stream(texts).Join(b.Table(texts2, "t"), func(v, row string) string { return v + row }).To(out)
	})
	send(r, texts2, rec("a", "A", 9).WithHeader("h", []byte("table")))
	send(r, texts, rec("a", "x", 2).WithHeader("h", []byte("stream")))
	got := received(r, out)
	if v, _ := got[0].Headers.Last("h"); len(got) != 1 || text(got[0]) != "a=xA@2" || string(v) != "stream" {
		t.Errorf("got %v", got)
	}
}

func TestJoinRepartitionsARekeyedStreamUnderItsName(t *testing.T) {
	byValue := func(r Record[string, string]) Record[string, string] {
		if r.Value == "" {
			return r.WithoutKey()
		}
		return r.WithKey(r.Value)
	}
	r := newRig(t, func(b *Builder) {
		table := b.Table(texts2, "t")
		in := b.Stream(texts).MapRecords(byValue)
		in.Join(table, func(v, row string) string { return v + row }, Name("inner")).To(out)
		in.LeftJoin(table, joinOr("none"), Name("left")).To(out2)
	})
	send(r, texts2, rec("x", "X", 1))
	send(r, texts, rec("a", "x", 2), rec("a", "", 3))
	expect(r, out, "x=xX@2")
	expect(r, out2, "x=xX@2", "-=none@3")
	if r.top.graph.Topics[2].FullName("app") != "app-inner-repartition" {
		t.Errorf("topics %v", r.top.graph.Topics[2])
	}
}

func TestJoinOfARekeyedStreamNeedsAName(t *testing.T) {
	_, err := Build(func(b *Builder) {
		b.Stream(texts).SelectKey(func(_, v string) string { return v }).
			Join(b.Table(texts2, "t"), func(v, row string) string { return v + row }).To(out)
	})
	if err == nil || !strings.Contains(err.Error(), "join_test.go:") || !strings.Contains(err.Error(), `stream.Name("...")`) {
		t.Errorf("got %v", err)
	}
}

func TestJoinSeesAnAggregateOfItsOwnStreamAsItIsByThen(t *testing.T) {
	r := newRig(t, func(b *Builder) {
		in := b.Stream(texts)
		n := in.GroupByKey().Count("n")
		in.Join(n, func(v string, n int64) string { return v + strings.Repeat("i", int(n)) }).To(out)
	})
	send(r, texts, rec("a", "x", 1), rec("a", "x", 2))
	expect(r, out, "a=xi@1", "a=xii@2")
}

func TestJoinedTopicsArePartitionedAlike(t *testing.T) {
	top, err := Build(func(b *Builder) {
		b.Stream(texts).Join(b.Table(texts2, "t"), func(v, row string) string { return v + row }).To(out)
	})
	if err != nil {
		t.Fatal(err)
	}
	if groups := top.graph.Subs[0].Copart; len(groups) != 1 || len(groups[0]) != 2 {
		t.Errorf("groups %v", groups)
	}
}

func TestJoinDoesNotAllocatePerRecord(t *testing.T) {
	r := newRig(t, func(b *Builder) {
		b.Stream(texts).Join(b.Table(ints, "t"), func(v string, n int64) int64 { return n }).ForEach(func(string, int64) error { return nil })
	})
	send(r, ints, rec("a", int64(1), 1))
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
