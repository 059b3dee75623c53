package stream

import (
	"slices"
	"strings"
	"testing"
)

func addText(_, v, row string, _ bool) (string, bool) { return row + v, true }

func addNumber(_ string, n int64, row string, _ bool) (string, bool) {
	return row + strings.Repeat("#", int(max(n, 0))), n >= 0
}

func TestCogroupUpdatesOneRowFromStreamsOfSeveralTypes(t *testing.T) {
	r := newRig(t, func(b *Builder) {
		b.Stream(texts).GroupByKey().Cogroup(addText).
			With(b.Stream(ints).GroupByKey(), addNumber).
			ToTable("rows", EmitEach()).To(out)
	})
	send(r, texts, rec("k", "a", 10))
	send(r, ints, rec("k", int64(2), 5))
	send(r, texts, del[string]("k", 11), unkeyed[string]("x", 12))
	send(r, ints, rec("k", int64(-1), 3), rec("k", int64(1), 1))
	expect(r, out, "k=a@10", "k=a##@10", "k=-@10", "k=#@1")
	r.dropped("rows: tombstone", "rows: no key")
}

func TestCogroupTellsOncePerKeyAndTransaction(t *testing.T) {
	r := newRig(t, func(b *Builder) {
		b.Stream(texts).GroupByKey().Cogroup(addText).
			With(b.Stream(ints).GroupByKey(), addNumber).
			ToTable("rows").To(out)
	})
	send(r, texts, rec("k", "a", 1))
	send(r, ints, rec("k", int64(1), 2).WithHeader("last", nil))
	expect(r, out)
	r.commit()
	sent := received(r, out)
	if len(sent) != 1 || text(sent[0]) != "k=a#@2" || len(sent[0].Headers) != 1 {
		t.Errorf("got %v", sent)
	}
}

func TestCogroupRepartitionsEachStreamThroughATopicOfItsOwn(t *testing.T) {
	r := newRig(t, func(b *Builder) {
		byValue := func(_, v string) string { return v }
		b.Stream(texts).GroupBy(byValue).Cogroup(addText).
			With(b.Stream(ints).GroupByKey(), addNumber).
			With(b.Stream(texts2).GroupBy(byValue), addText).
			ToTable("rows", EmitEach()).To(out)
	})
	var internal []string
	for _, topic := range r.top.graph.Topics {
		if topic.Internal {
			internal = append(internal, topic.FullName(rigApp))
		}
	}
	if want := []string{"app-rows-repartition", "app-rows-3-repartition"}; !slices.Equal(internal, want) {
		t.Errorf("repartition topics are %q, want %q", internal, want)
	}
	if groups := r.top.graph.Subs[1].Copart; len(groups) != 1 || len(groups[0]) != 3 {
		t.Errorf("partitioned alike: %v", groups)
	}
	send(r, texts, rec("a", "k", 1))
	send(r, texts2, rec("b", "k", 2))
	send(r, ints, rec("k", int64(1), 3))
	expect(r, out, "k=k@1", "k=kk@2", "k=kk#@3")
}

func TestCogroupThatGoesOnTwiceIsTwo(t *testing.T) {
	r := newRig(t, func(b *Builder) {
		one := b.Stream(texts).GroupByKey().Cogroup(addText)
		other := b.Stream(texts2).GroupByKey()
		one.With(other, addText).ToTable("both", EmitEach()).To(out)
		one.With(other, func(_, v, row string, _ bool) (string, bool) { return v + row, true }).ToTable("front", EmitEach()).To(out2)
	})
	send(r, texts, rec("k", "a", 1))
	send(r, texts2, rec("k", "b", 2))
	expect(r, out, "k=a@1", "k=ab@2")
	expect(r, out2, "k=a@1", "k=ba@2")
}
