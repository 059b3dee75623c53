package stream

import (
	"errors"
	"strings"
	"testing"

	"github.com/semelstream/semel/codec"
)

// lookup is what comes before the colon.
func lookup(_, v string) (string, bool) {
	k, _, ok := strings.Cut(v, ":")
	return k, ok
}

func globalJoins(b *Builder) {
	g := b.GlobalTable(texts2, "g")
	s := b.Stream(texts)
	s.JoinGlobal(g, lookup, func(v, row string) string { return v + row }, Name("inner")).To(out)
	s.LeftJoinGlobal(g, lookup, joinOr("none"), Name("left")).To(out2)
}

func TestAGlobalTableIsLookedUpByAnyKey(t *testing.T) {
	r := newRig(t, globalJoins)
	send(r, texts2, rec("a", "A", 9), rec("b", "B", 9), del[string]("b", 10), unkeyed[string]("x", 11))
	r.dropped("g: no key")
	send(r, texts, rec("k", "a:1", 1), rec("k", "b:2", 2), rec("k", "3", 3), del[string]("k", 4), unkeyed[string]("a:5", 5))
	expect(r, out, "k=a:1A@1", "-=a:5A@5")
	expect(r, out2, "k=a:1A@1", "k=b:2none@2", "k=3none@3", "-=a:5A@5")
	r.dropped("inner: no lookup key", "inner: tombstone", "left: tombstone")
}

func TestAJoinWithAGlobalTableKeepsKeyTimeAndHeadersOfTheStream(t *testing.T) {
	r := newRig(t, globalJoins)
	send(r, texts2, rec("a", "A", 9).WithHeader("h", []byte("table")))
	send(r, texts, rec("k", "a:1", 2).WithHeader("h", []byte("stream")))
	got := received(r, out)
	if v, _ := got[0].Headers.Last("h"); len(got) != 1 || text(got[0]) != "k=a:1A@2" || string(v) != "stream" {
		t.Errorf("got %v", got)
	}
}

func TestAStreamThatWasRekeyedIsRepartitionedAfterAJoinWithAGlobalTableAndNotBefore(t *testing.T) {
	r := newRig(t, func(b *Builder) {
		b.Stream(texts).
			SelectKey(func(_, v string) string { return v[:1] }).
			JoinGlobal(b.GlobalTable(texts2, "g"), lookup, func(v, row string) string { return v + row }).
			GroupByKey().Count("n").To(intOut)
	})
	if n := len(r.top.graph.Subs); n != 2 {
		t.Errorf("%d sub-topologies, want 2", n)
	}
	send(r, texts2, rec("a", "A", 1))
	send(r, texts, rec("k", "a:1", 1), rec("l", "a:2", 2))
	r.commit()
	expect(r, intOut, "a=2@2")
}

func TestAGlobalTableAndAStreamMayHaveAnyPartitionCounts(t *testing.T) {
	// JOI-12: 3 and 4 partitions cannot be joined by key, and can be by lookup.
	r := newRigOf(t, globalJoins, map[string]int32{"texts": 3, "texts2": 4})
	for _, k := range []string{"a", "b", "c", "d", "e"} {
		send(r, texts2, rec(k, strings.ToUpper(k), 1))
		send(r, texts, rec("k", k+":", 2))
		expect(r, out, "k="+k+":"+strings.ToUpper(k)+"@2")
	}
}

func TestProcessorsReadAGlobalTableWithoutSayingSo(t *testing.T) {
	r := newRig(t, func(b *Builder) {
		g := b.GlobalTable(texts2, "g")
		b.Stream(texts).ProcessValues(func(c *ValueContext[string], r Record[string, string]) error {
			table, all := g.In(c), ""
			for e, err := range table.All() {
				if err != nil {
					return err
				}
				all += e.Value
			}
			for e, err := range table.Backward().Range("a", "b") {
				if err != nil {
					return err
				}
				all += e.Value
			}
			v, ok, err := table.Get(r.Value)
			if !ok {
				v = "none"
			}
			return errors.Join(err, c.Emit(all+" "+v))
		}).To(out)
	})
	send(r, texts2, rec("b", "B", 1), rec("a", "A", 1), rec("c", "C", 1))
	send(r, texts, rec("k", "b", 1), rec("k", "x", 2))
	expect(r, out, "k=ABCBA B@1", "k=ABCBA none@2")
}

func TestATopicMayBeAStreamAndAGlobalTable(t *testing.T) {
	r := newRig(t, func(b *Builder) {
		g := b.GlobalTable(texts, "g")
		b.Stream(texts).JoinGlobal(g, lookup, func(v, row string) string { return v + "+" + row }).To(out)
	})
	send(r, texts, rec("a", "b:1", 1), rec("b", "a:2", 2))
	expect(r, out, "b=a:2+b:1@2")
}

func TestMistakesWithGlobalTablesAreFoundByBuild(t *testing.T) {
	many := NewTopic("many", codec.String, codec.String).Multicast(func(Record[string, string], int) []int { return nil })
	for _, c := range []struct {
		say    string
		define func(*Builder)
	}{
		{`topic "texts2" is a global table already, at stream/global_test.go`, func(b *Builder) {
			b.GlobalTable(texts2, "g")
			b.GlobalTable(texts2, "h")
			b.Stream(texts).To(out)
		}},
		{`topic "many" is multicast`, func(b *Builder) {
			b.GlobalTable(many, "g")
			b.Stream(texts).To(out)
		}},
		{`the store name "g" is taken`, func(b *Builder) {
			b.GlobalTable(texts2, "g")
			b.Stream(texts).GroupByKey().Count("g")
		}},
		{"it has no store name", func(b *Builder) {
			b.GlobalTable(texts2, "")
			b.Stream(texts).To(out)
		}},
		{"its function is nil", func(b *Builder) {
			b.Stream(texts).JoinGlobal[string, string, string](b.GlobalTable(texts2, "g"), nil, func(v, _ string) string { return v }).To(out)
		}},
		{"nothing that would read them; add a Builder.Stream", func(b *Builder) { b.GlobalTable(texts2, "g") }},
		{"it joins a global table of another Builder", func(b *Builder) {
			g := newBuilder().GlobalTable(texts2, "g")
			b.Stream(texts).JoinGlobal(g, lookup, func(v, _ string) string { return v }).To(out)
		}},
	} {
		_, err := Build(c.define)
		if err == nil || !strings.Contains(err.Error(), c.say) {
			t.Errorf("want %q, got %v", c.say, err)
		}
	}
}

func TestDescribeShowsGlobalTablesAndWhoLooksThemUp(t *testing.T) {
	top, err := Build(func(b *Builder) {
		b.Stream(texts).JoinGlobal(b.GlobalTable(texts2, "g", InMemory()), lookup, func(v, row string) string { return v + row }).To(out)
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`join-global-1: join-global of source-1 with global table "g"` + "\n",
		"\n" + `global table "g" of topic "texts2", in memory` + "\n",
	} {
		if got := top.Describe(); !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if got := string(top.DescribeJSON()); !strings.Contains(got, `"globalTables": [`) {
		t.Errorf("no global tables in\n%s", got)
	}
}
