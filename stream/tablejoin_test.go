package stream

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func pair(l, r string) string { return l + r }

func optional(l string, lok bool, r string, rok bool) string {
	if !lok {
		l = "?"
	}
	if !rok {
		r = "?"
	}
	return l + r
}

func leftOptional(l, r string, ok bool) string { return optional(l, true, r, ok) }

func TestJOI10TableJoinsAndTombstones(t *testing.T) {
	r := newRig(t, func(b *Builder) { b.Table(texts, "l").Join(b.Table(texts2, "r"), pair).To(out) })
	send(r, texts, del[string]("k", 1), rec("k", "A", 2))
	send(r, texts2, rec("k", "b", 3))
	expect(r, out, "k=Ab@3")
	send(r, texts, del[string]("k", 4))
	expect(r, out, "k=-@4")
	send(r, texts, del[string]("k", 5)) // may be told again
	expect(r, out, "k=-@5")
	send(r, texts2, del[string]("k", 6), rec("k", "c", 7))
	expect(r, out)
	send(r, texts, rec("k", "B", 3), unkeyed[string]("x", 8))
	expect(r, out, "k=Bc@7")
	r.dropped("l: no key")

	r = newRig(t, func(b *Builder) { b.Table(texts, "l").LeftJoin(b.Table(texts2, "r"), leftOptional).To(out) })
	send(r, texts2, rec("k", "b", 1))
	send(r, texts, rec("k", "A", 2))
	send(r, texts2, del[string]("k", 3))
	send(r, texts, del[string]("k", 4), del[string]("k", 5))
	expect(r, out, "k=Ab@2", "k=A?@3", "k=-@4")
}

func TestJoinedTablesCarryTheHeadersOfTheRecordThatChangedThem(t *testing.T) {
	r := newRig(t, func(b *Builder) { b.Table(texts, "l").OuterJoin(b.Table(texts2, "r"), optional).To(out) })
	send(r, texts, rec("k", "A", 1).WithHeader("from", []byte("left")))
	send(r, texts2, rec("k", "b", 2).WithHeader("from", []byte("right")))
	var got []string
	for _, rec := range received(r, out) {
		from, _ := rec.Headers.Last("from")
		got = append(got, text(rec)+" "+string(from))
	}
	if fmt.Sprint(got) != "[k=A?@1 left k=Ab@2 right]" {
		t.Errorf("got %q", got)
	}
}

func TestTableJoinedWithAViewOfItselfTellsEachChangeOnce(t *testing.T) {
	r := newRig(t, func(b *Builder) {
		table := b.Table(texts, "t")
		table.Join(table, pair).To(out)
		table.OuterJoin(table.Filter(func(_, v string) bool { return v != "b" }).MapValues(strings.ToUpper), optional).To(out2)
	})
	send(r, texts, rec("k", "a", 1), rec("k", "b", 2), rec("k", "c", 3), del[string]("k", 4))
	expect(r, out, "k=aa@1", "k=bb@2", "k=cc@3", "k=-@4")
	expect(r, out2, "k=aA@1", "k=b?@2", "k=cC@3", "k=-@4")
}

func TestJoinOfAnAggregateSeesItAsFarAsItHasTold(t *testing.T) {
	r := newRig(t, func(b *Builder) {
		counts := b.Stream(texts).GroupByKey().Count("n")
		counts.LeftJoin(b.Table(texts2, "t"), func(n int64, v string, _ bool) string { return fmt.Sprint(n, v) }).To(out)
	})
	send(r, texts, rec("k", "", 1), rec("k", "", 2))
	send(r, texts2, rec("k", "x", 3))
	expect(r, out) // nothing was told of the count
	r.commit()
	expect(r, out, "k=2x@3")
	send(r, texts, rec("k", "", 4))
	send(r, texts2, rec("k", "y", 5))
	expect(r, out, "k=2y@5")
	r.commit()
	expect(r, out, "k=3y@5")
}

func TestDeleteOfARowWithoutPartnerIsTold(t *testing.T) {
	r := newRig(t, func(b *Builder) {
		seen := func(_, v string) bool { return v != "z" }
		b.Table(texts, "l").Filter(seen).OuterJoin(b.Table(texts2, "r").Filter(seen), optional).To(out)
	})
	send(r, texts, rec("k", "a", 1), rec("k", "z", 2), del[string]("k", 3))
	send(r, texts2, rec("k", "a", 4), rec("k", "z", 5), del[string]("k", 6))
	expect(r, out, "k=a?@1", "k=-@2", "k=?a@4", "k=-@5")
}

func TestFailureInAJoinOfATableWithItselfIsForgotten(t *testing.T) {
	r := newRig(t, func(b *Builder) {
		table := b.Table(texts, "t")
		checked := table.MapValues(func(v string) string {
			if v == "bad" {
				panic("bad")
			}
			return v
		}, OnError(Skip))
		table.Join(checked, pair).To(out)
	})
	send(r, texts, rec("k", "a", 1), rec("k", "bad", 2), rec("j", "x", 3), rec("k", "c", 4))
	expect(r, out, "k=aa@1", "j=xx@3", "k=cc@4")
}

// The results, and what aggregates make of the values before and after, are
// those of the last rows, wherever the rows come from.
func TestTableJoinsAreWhatTheirTablesSay(t *testing.T) {
	seen := func(_, v string) bool { return v != "z" }
	count := func(joined Table[string, string], store string, emit []AggregateOption) Table[string, int64] {
		return joined.GroupBy(func(_, v string) (string, string) { return v, "" }).Count(store, emit...)
	}
	var names []string
	for _, each := range []bool{false, true} {
		t.Run(fmt.Sprintf("each=%v", each), func(t *testing.T) {
			var emit []AggregateOption
			if each {
				emit = append(emit, EmitEach())
			}
			rapid.Check(t, func(rt *rapid.T) {
				names = nil
				h := newHistory(t, func(b *Builder) {
					end := func(name string, joined Table[string, string]) {
						names = append(names, name)
						joined.To(out.Named(name))
						count(joined, name+"-sizes", emit).To(intOut.Named(name + "-sizes"))
					}
					in := b.Stream(texts)
					left := in.ToTable("left")
					right := b.Table(texts2, "right").Filter(seen)
					counts := in.GroupByKey().Count("counts", emit...).MapValues(func(n int64) string { return fmt.Sprint(n % 3) })
					end("inner", left.Join(right, pair))
					end("left", left.LeftJoin(right, leftOptional))
					end("outer", left.OuterJoin(right, optional))
					end("self", left.LeftJoin(left.Filter(seen), leftOptional))
					end("late", counts.OuterJoin(right, optional))
					end("mixed", left.OuterJoin(counts, optional))
					chain := left.OuterJoin(right, optional).LeftJoin(counts.Join(right, pair), leftOptional)
					lasts := in.GroupByKey().Reduce("lasts", func(_, v string) string { return v }, emit...)
					end("aggregates", counts.OuterJoin(lasts, optional))
					end("chain", chain.OuterJoin(left.Filter(seen), optional))
					end("kept", chain.Stored("kept").Join(left, pair))
				})
				left, right, lasts, n := map[string]string{}, map[string]string{}, map[string]string{}, map[string]int64{}
				var now int64
				for range rapid.IntRange(1, 40).Draw(rt, "records") {
					r := anyRecord(rt, &now)
					topic, rows := texts, left
					if rapid.Bool().Draw(rt, "right") {
						topic, rows = texts2, right
					}
					put(h, topic, r)
					switch {
					case r.NoKey:
					case r.NoValue:
						delete(rows, r.Key)
					default:
						rows[r.Key] = r.Value
						if topic.Name == texts.Name {
							n[r.Key]++
							lasts[r.Key] = r.Value
						}
					}
					h.event(rt)
				}
				h.close()

				shown := visibleOf(right, seen)
				counts := map[string]string{}
				for k, c := range n {
					counts[k] = fmt.Sprint(c % 3)
				}
				chain := joinMaps(
					joinMaps(left, shown, joinKind{left: true, right: true}),
					joinMaps(counts, shown, joinKind{}), joinKind{left: true})
				want := map[string]map[string]string{
					"inner":      joinMaps(left, shown, joinKind{}),
					"left":       joinMaps(left, shown, joinKind{left: true}),
					"outer":      joinMaps(left, shown, joinKind{left: true, right: true}),
					"self":       joinMaps(left, visibleOf(left, seen), joinKind{left: true}),
					"late":       joinMaps(counts, shown, joinKind{left: true, right: true}),
					"mixed":      joinMaps(left, counts, joinKind{left: true, right: true}),
					"aggregates": joinMaps(counts, lasts, joinKind{left: true, right: true}),
					"chain":      joinMaps(chain, visibleOf(left, seen), joinKind{left: true, right: true}),
					"kept":       joinMaps(chain, left, joinKind{}),
				}
				for _, name := range names {
					same(rt, name, last(h, out.Named(name)), want[name])
					sizes := map[string]int64{}
					for _, v := range want[name] {
						sizes[v]++
					}
					got := last(h, intOut.Named(name+"-sizes"))
					maps.DeleteFunc(got, func(_ string, n int64) bool { return n == 0 })
					same(rt, name+" counted", got, sizes)
				}
			})
		})
	}
}

func visibleOf(rows map[string]string, seen func(k, v string) bool) map[string]string {
	rows = maps.Clone(rows)
	maps.DeleteFunc(rows, func(k, v string) bool { return !seen(k, v) })
	return rows
}

// joinMaps is the definition of a join.
func joinMaps(left, right map[string]string, kind joinKind) map[string]string {
	keys, joined := maps.Clone(left), map[string]string{}
	maps.Copy(keys, right)
	for k := range keys {
		l, lok := left[k]
		r, rok := right[k]
		if kind.matches(lok, rok) {
			joined[k] = optional(l, lok, r, rok)
		}
	}
	return joined
}
