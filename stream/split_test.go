package stream

import (
	"strings"
	"testing"
)

func TestSplitSendsTombstonesEverywhere(t *testing.T) {
	r := newRig(t, func(b *Builder) {
		match, rest := b.Stream(texts).Split(long)
		match.To(out)
		rest.To(out2)
	})
	send(r, texts, rec("a", "long", 1), rec("b", "no", 2), del[string]("a", 3), unkeyed[string]("nokey", 4))
	expect(r, out, "a=long@1", "a=-@3", "-=nokey@4")
	expect(r, out2, "b=no@2", "a=-@3")
}

func TestSplitRecordsSendsEachRecordOneWay(t *testing.T) {
	r := newRig(t, func(b *Builder) {
		deletes, rest := b.Stream(texts).SplitRecords(func(r Record[string, string]) bool { return r.NoValue })
		deletes.To(out)
		rest.To(out2)
	})
	send(r, texts, rec("a", "v", 1), del[string]("a", 2))
	expect(r, out, "a=-@2")
	expect(r, out2, "a=v@1")
}

func TestSplitOfRestMakesMoreBranches(t *testing.T) {
	r := newRig(t, func(b *Builder) {
		upper, rest := b.Stream(texts).Split(func(_, v string) bool { return strings.ToUpper(v) == v })
		long, rest := rest.Split(long)
		upper.MapValues(func(v string) string { return "upper " + v }).
			Merge(long.MapValues(func(v string) string { return "long " + v }), rest).
			To(out)
	})
	send(r, texts, rec("a", "ABC", 1), rec("a", "abc", 2), rec("a", "ab", 3))
	expect(r, out, "a=upper ABC@1", "a=long abc@2", "a=ab@3")
}
