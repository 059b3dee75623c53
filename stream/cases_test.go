package stream

import (
	"strings"
	"testing"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/state"
)

// Troubles that people have had with stream processors, in numbers. Each test
// is one, named for it; where the others are is in caseids_test.go.

func TestTAB01TableRegroupedSubtractsThenAdds(t *testing.T) {
	r := newRig(t, func(b *Builder) {
		b.Table(texts, "users").
			GroupBy(func(user, city string) (string, string) { return city, user }).
			Count("cities", EmitEach()).
			To(intOut)
	})
	for _, c := range []struct {
		in   Record[string, string]
		want []string
	}{
		{rec("u1", "NYC", 1), []string{"NYC=1@1"}},
		{rec("u2", "NYC", 2), []string{"NYC=2@2"}},
		{rec("u1", "SFO", 3), []string{"NYC=1@3", "SFO=1@3"}},
		{rec("u1", "SFO", 4), []string{"SFO=1@4"}}, // 0 or 2 is never to be seen
		{del[string]("u1", 5), []string{"SFO=0@5"}},
		{del[string]("u2", 6), []string{"NYC=0@6"}},
		{del[string]("u9", 7), nil},
	} {
		send(r, texts, c.in)
		expect(r, intOut, c.want...)
	}
}

// sumByAccount sums "account:amount" rows.
func sumByAccount(b *Builder) {
	b.Table(texts, "payments").
		GroupBy(func(_, v string) (string, int64) {
			account, digits, _ := strings.Cut(v, ":")
			n := int64(0)
			for _, d := range digits {
				n = 10*n + int64(d-'0')
			}
			return account, n
		}).
		Aggregate("sums",
			func(_ string, v, sum int64) int64 { return sum + v },
			func(_ string, v, sum int64) int64 { return sum - v }, EmitEach()).
		To(intOut)
}

func TestTAB02SumByGroupWithAnOutOfOrderAndAMovingRow(t *testing.T) {
	r := newRig(t, sumByAccount)
	send(r, texts, rec("p1", "acc:100", 10), rec("p1", "acc:40", 5), rec("p2", "acc:7", 20), rec("p1", "acc2:40", 30))
	expect(r, intOut, "acc=100@10", "acc=40@10", "acc=47@20", "acc=7@30", "acc2=40@30")
}

func TestTAB03FailureBetweenSubtractAndAdd(t *testing.T) {
	for _, place := range []string{"add", "behind the table"} {
		fail := false
		once := func(at string) {
			if at == place && fail {
				fail = false
				panic("fails once")
			}
		}
		r := newRig(t, func(b *Builder) {
			b.Table(texts, "users").
				MapValues(func(v string) string { once("behind the table"); return v }).
				GroupBy(func(user, city string) (string, string) { return city, user }).
				Aggregate("cities",
					func(_, _ string, n int64) int64 { once("add"); return n + 1 },
					func(_, _ string, n int64) int64 { return n - 1 }, EmitEach()).
				To(intOut)
		})
		send(r, texts, rec("u1", "NYC", 1), rec("u2", "NYC", 2))
		r.commit()
		expect(r, intOut, "NYC=1@1", "NYC=2@2")
		fail = true
		if err := feed(r, texts, rec("u1", "SFO", 3)); err == nil {
			t.Fatalf("%s: it did not fail", place)
		}
		r.abort()
		send(r, texts, rec("u1", "SFO", 3)) // the same record again is no "no change"
		r.commit()
		expect(r, intOut, "NYC=1@3", "SFO=1@3")
	}
}

func TestTAB04FilterOnATable(t *testing.T) {
	long := func(_, v string) bool { return len(v) > 2 }
	r := newRig(t, func(b *Builder) { b.Table(texts, "t").Filter(long).To(out) })
	send(r, texts, rec("k", "ab", 1))
	expect(r, out, "k=-@1") // more deletes than needed, as the reference has them
	send(r, texts, rec("k", "abc", 2), rec("k", "a", 3))
	expect(r, out, "k=abc@2", "k=-@3")
	send(r, texts, rec("k", "b", 4), del[string]("k", 5))
	expect(r, out, "k=-@4", "k=-@5")
}

func TestTAB05NullAndTombstoneRulesOfSources(t *testing.T) {
	r := newRig(t, func(b *Builder) {
		b.Table(texts, "t").To(out)
		b.Stream(texts2).GroupByKey().Count("n", EmitEach(), Name("count")).To(intOut)
	})
	send(r, texts, del[string]("k", 1), rec("k", "a", 2), rec("k", "a", 2), rec("k", "a", 3), unkeyed[string]("x", 4), rec("k", "old", 1))
	expect(r, out, "k=-@1", "k=a@2", "k=a@2", "k=a@3", "k=old@1") // by offset, not by time
	r.dropped("t: no key")
	send(r, texts2, rec("k", "a", 1), del[string]("k", 2), unkeyed[string]("a", 3), rec("k", "", 4), rec("", "a", 5))
	expect(r, intOut, "k=1@1", "k=2@4", "=1@5")
	r.dropped("count: tombstone", "count: no key")
}

func TestTAB06TimestampsOfResults(t *testing.T) {
	r := newRig(t, func(b *Builder) {
		b.Stream(texts).GroupByKey().Reduce("r", func(a, b string) string { return a + b }, EmitEach()).To(out)
	})
	send(r, texts, rec("k", "a", 10), rec("k", "b", 5), del[string]("k", 20), rec("k", "c", 7))
	expect(r, out, "k=a@10", "k=ab@10", "k=abc@10")
}

func TestTAB07AggregatorReturnsNothing(t *testing.T) {
	r := newRig(t, func(b *Builder) {
		b.Stream(texts).GroupByKey().Update("rows", func(_, v, row string, _ bool) (string, bool) {
			return row + v + "0", v != "DEL"
		}, EmitEach()).To(out)
	})
	send(r, texts, rec("k", "a", 1), rec("k", "DEL", 2), rec("k", "b", 3))
	expect(r, out, "k=a0@1", "k=-@2", "k=b0@3")
	r.restart()
	kv, err := state.OpenKV(r.sorted()[0].db, "rows", codec.String, codec.String)
	r.must(err)
	if v, _, ok, err := kv.Get("k"); v != "b0" || !ok || err != nil {
		t.Errorf("the row is %q, %v, %v", v, ok, err)
	}
}

func TestJOI08StreamTableBasics(t *testing.T) {
	r := newRig(t, func(b *Builder) {
		table := b.Table(texts2, "t")
		s := b.Stream(texts)
		s.Join(table, func(v, row string) string { return v + "+" + row }, Name("inner")).To(out)
		s.LeftJoin(table, func(v, row string, ok bool) string {
			if !ok {
				row = "null"
			}
			return v + "+" + row
		}, Name("left")).To(out2)
	})
	send(r, texts, rec("k", "early", 1))
	send(r, texts2, rec("k", "T1", 2))
	send(r, texts, rec("k", "s3", 3))
	send(r, texts2, del[string]("k", 4))
	send(r, texts, rec("k", "s5", 5), unkeyed[string]("s6", 6), del[string]("k", 7))
	send(r, texts2, rec("k", "old", 1))
	send(r, texts, rec("k", "s8", 8))
	expect(r, out, "k=s3+T1@3", "k=s8+old@8")
	expect(r, out2, "k=early+null@1", "k=s3+T1@3", "k=s5+null@5", "-=s6+null@6", "k=s8+old@8")
	r.dropped("inner: no key", "inner: tombstone", "left: tombstone")
}

func TestSER03Headers(t *testing.T) {
	r := newRig(t, func(b *Builder) {
		b.Stream(texts).FlatMapValues(strings.Fields).To(out)
	})
	with := func(v string, ms int64, h ...Header) Record[string, string] {
		x := rec("k", v, ms)
		x.Headers = h
		return x
	}
	send(r, texts,
		with("a b", 1, Header{Name: "h", Value: []byte("H1")}),
		with("c", 2, Header{Name: "h", Value: []byte("H2")}),
		with("d", 3),
		with("e", 4, Header{Name: "h"}, Header{Name: "h", Value: []byte{}}, Header{}))
	var got []string
	for _, k := range r.out {
		line := string(k.Value)
		for _, h := range k.Headers {
			if h.Value == nil {
				line += " " + h.Key + ":null"
			} else {
				line += " " + h.Key + ":" + string(h.Value)
			}
		}
		got = append(got, line)
	}
	want := []string{"a h:H1", "b h:H1", "c h:H2", "d", "e h:null h: :null"}
	if strings.Join(got, "; ") != strings.Join(want, "; ") {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestSER07KeyChangedToNullAndRekeyedCounting(t *testing.T) {
	r := newRig(t, func(b *Builder) {
		b.Stream(texts).MapRecords(func(r Record[string, string]) Record[string, string] {
			if strings.HasPrefix(r.Value, "n") {
				return r.WithoutKey()
			}
			return r.WithKey(r.Value)
		}).GroupByKey().Count("n", EmitEach()).To(intOut)
	})
	send(r, texts, rec("x", "n1", 1), rec("x", "a", 2), rec("x", "a", 1))
	expect(r, intOut, "a=1@2", "a=2@2")
	r.dropped("n-repartition-sink: no key") // it is not written to the topic
}
