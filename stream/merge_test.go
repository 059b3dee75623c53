package stream

import "testing"

func TestMergeHoldsAllStreamsAndEachUseOfIt(t *testing.T) {
	opens := 0
	r := newRig(t, func(b *Builder) {
		one, two := b.Stream(texts), b.Stream(texts2)
		m := one.Merge(two, one.Filter(long))
		m.To(out)
		m.MapValues(func(v string) string { return v + "'" }).To(out2)
		m.n.use(func(o *opener) (port[string, string], error) {
			opens++
			return fan[string, string]{}, nil
		})
	})
	send(r, texts, rec("a", "no", 1), rec("a", "long", 2))
	send(r, texts2, rec("b", "x", 3), del[string]("b", 4))
	expect(r, out, "a=no@1", "a=long@2", "a=long@2", "b=x@3", "b=-@4")
	expect(r, out2, "a=no'@1", "a=long'@2", "a=long'@2", "b=x'@3", "b=-@4")
	if opens != 1 {
		t.Errorf("what follows a merge was opened %d times", opens)
	}
}

func TestMergeIsRekeyedIfOneStreamIs(t *testing.T) {
	top, err := Build(func(b *Builder) {
		rekeyed := b.Stream(texts2).SelectKey(func(_, v string) string { return v })
		b.Stream(texts).Merge(rekeyed).GroupByKey().Count("n").To(intOut)
	})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(top.graph.Subs); n != 2 {
		t.Errorf("there are %d sub-topologies, want 2: the count must read a repartition topic", n)
	}
}
