package stream

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

const keptMs = 40

func versionedTable(b *Builder) Table[string, string] {
	return b.Table(texts, "rows", Versioned(keptMs*ms))
}

func plusText(a, b string) string { return a + "+" + b }

func TestAVersionedTableTellsOfOldVersionsAndDropsWhatIsLate(t *testing.T) {
	r := newRig(t, func(b *Builder) {
		table := versionedTable(b)
		table.To(out)
		table.Stored("newest").To(out2)
	})
	send(r, texts, rec("a", "new", 50), rec("a", "old", 30), del[string]("a", 40), rec("a", "edge", 10), rec("a", "late", 9))
	expect(r, out, "a=new@50", "a=old@30", "a=-@40", "a=edge@10")
	expect(r, out2, "a=new@50")
	r.dropped("rows: late")
	send(r, texts, rec("a", "newer", 50), unkeyed[string]("x", 60), rec("b", "first", 10))
	expect(r, out, "a=newer@50", "b=first@10")
	expect(r, out2, "a=newer@50", "b=first@10")
	r.dropped("rows: no key")
}

func TestAVersionedTableHasAChangelogOfItsOwn(t *testing.T) {
	r := newRig(t, func(b *Builder) { versionedTable(b).To(out) })
	if s := r.top.graph.Stores[0]; s.Source != nil || s.ChangelogName("app") != "app-rows-changelog" || s.Retain != keptMs {
		t.Errorf("store %+v", s)
	}
}

func TestOldVersionsMakeNoResultsOfJoins(t *testing.T) {
	r := newRig(t, func(b *Builder) {
		left, right := versionedTable(b), b.Table(texts2, "right", Versioned(keptMs*ms))
		left.LeftJoin(right, optionalRight).To(out)
		left.LeftJoin(left.Filter(long), optionalRight).To(out2)
	})
	send(r, texts, rec("a", "long", 10), rec("a", "old", 5))
	r.dropped("table-left-join-1: old version", "table-left-join-2: old version", "table-left-join-2: old version")
	send(r, texts2, rec("a", "r", 20), rec("a", "q", 19))
	r.dropped("table-left-join-1: old version")
	send(r, texts, del[string]("a", 9))
	expect(r, out, "a=long+-@10", "a=long+r@20")
	expect(r, out2, "a=long+long@10")
}

func optionalRight(a, b string, ok bool) string {
	if !ok {
		b = "-"
	}
	return plusText(a, b)
}

func TestOldVersionsMakeNoResultsOfForeignKeyJoins(t *testing.T) {
	r := newRig(t, func(b *Builder) {
		versionedTable(b).JoinOn("on", b.Table(texts2, "right", Versioned(keptMs*ms)),
			func(_, v string) (string, bool) { return v, true }, plusText).To(out)
	})
	send(r, texts2, rec("x", "X", 10), rec("x", "old", 9))
	send(r, texts, rec("a", "x", 20), rec("a", "y", 19))
	expect(r, out, "a=x+X@20")
	r.dropped("on-subscriptions: old version", "on-foreign-key: old version")
}

func TestVersionsAreKeptOfAnyTable(t *testing.T) {
	r := newRig(t, func(b *Builder) {
		shouted := b.Stream(texts).
			MapRecords(func(r Record[string, string]) Record[string, string] { return r.WithKey(strings.ToUpper(r.Key)) }).
			ToTable("shouted", Versioned(keptMs*ms))
		total := b.Stream(texts).GroupByKey().Count("n", EmitEach()).Stored("counts", Versioned(keptMs*ms))
		asOf := b.Stream(texts2)
		asOf.Join(shouted, plusText).To(out)
		asOf.Join(total, func(v string, n int64) string { return fmt.Sprint(v, n) }).To(out2)
	})
	send(r, texts, rec("a", "x", 10), rec("a", "y", 20))
	send(r, texts2, rec("A", "at", 15), rec("A", "at", 25), rec("A", "at", 5), rec("a", "n", 19), rec("a", "n", 20))
	expect(r, out, "A=at+x@15", "A=at+y@25")
	expect(r, out2, "a=n1@19", "a=n2@20")
}

// A filter must not leave out that a row has gone once more: what comes later
// may be older.
func TestVersionsBehindAFilterEndWhereTheRowIsHidden(t *testing.T) {
	r := newRig(t, func(b *Builder) {
		shown := versionedTable(b).Filter(long)
		shown.GroupBy(func(k, v string) (string, string) { return v, k }).Count("groups")
		kept := shown.Stored("kept", Versioned(keptMs*ms))
		seen := b.Stream(texts2)
		seen.LeftJoin(shown, optionalRight).To(out)
		seen.LeftJoin(kept, optionalRight).To(out2)
	})
	send(r, texts, rec("a", "no", 20), rec("a", "no", 30), rec("a", "shown", 15))
	send(r, texts2, rec("a", "v", 14), rec("a", "v", 15), rec("a", "v", 19), rec("a", "v", 20), rec("a", "v", 40))
	want := []string{"a=v+-@14", "a=v+shown@15", "a=v+shown@19", "a=v+-@20", "a=v+-@40"}
	expect(r, out, want...)
	expect(r, out2, want...)
}

func TestVersionsAndTheirTimeSurviveAMove(t *testing.T) {
	r := newRig(t, func(b *Builder) {
		table := versionedTable(b)
		table.To(out)
		b.Stream(texts2).Join(table, plusText).To(out2)
	})
	send(r, texts, rec("a", "1", 10), rec("a", "3", 60), rec("b", "x", 20))
	r.commit()
	send(r, texts, rec("a", "4", 500)) // is lost
	r.move()
	send(r, texts, rec("a", "late", 19), rec("a", "2", 20))
	expect(r, out, "a=2@20")
	r.dropped("rows: late")
	send(r, texts2, rec("a", "v", 30), rec("a", "v", 61), rec("b", "v", 19), rec("a", "v", 19))
	expect(r, out2, "a=v+2@30", "a=v+3@61")
}

// naiveVersions are the versions of all keys, none of them forgotten.
type naiveVersions struct {
	now    int64
	values map[string]map[int64]string // "" is deleted
}

func newNaiveVersions() *naiveVersions { return &naiveVersions{-1, map[string]map[int64]string{}} }

func (n *naiveVersions) put(key, value string, ms int64) {
	if ms < n.now-keptMs {
		return
	}
	if n.now = max(n.now, ms); n.values[key] == nil {
		n.values[key] = map[int64]string{}
	}
	n.values[key][ms] = value
}

// at is the value that was valid at ms, if that is in the history or the
// newest.
func (n *naiveVersions) at(key string, ms int64) string {
	times := slices.Sorted(maps.Keys(n.values[key]))
	for i, from := range slices.Backward(times) {
		if from <= ms {
			if ms < n.now-keptMs && i < len(times)-1 {
				return ""
			}
			return n.values[key][from]
		}
	}
	return ""
}

func (n *naiveVersions) clone() *naiveVersions {
	c := &naiveVersions{n.now, map[string]map[int64]string{}}
	for k, v := range n.values {
		c.values[k] = maps.Clone(v)
	}
	return c
}

func TestStreamsMeetTheVersionOfTheirTimeWhateverIsAborted(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		r := newRig(t, func(b *Builder) {
			b.Stream(texts2).LeftJoin(versionedTable(b), optionalRight).To(out)
		})
		naive, now := newNaiveVersions(), int64(50)
		for range rapid.IntRange(1, 6).Draw(rt, "transactions") {
			before := naive.clone()
			lost := rapid.SampledFrom([]string{"", "abort", "move"}).Draw(rt, "lost")
			for i := range rapid.IntRange(1, 8).Draw(rt, "records") {
				now += rapid.Int64Range(0, 20).Draw(rt, "step")
				at := max(0, now-rapid.Int64Range(0, 60).Draw(rt, "late"))
				key, value := rapid.SampledFrom([]string{"a", "b"}).Draw(rt, "key"), fmt.Sprint(now, "/", i)
				switch rapid.IntRange(0, 3).Draw(rt, "what") {
				case 0:
					send(r, texts, del[string](key, at))
					naive.put(key, "", at)
				case 1:
					send(r, texts, rec(key, value, at))
					naive.put(key, value, at)
				default:
					row := naive.at(key, at)
					send(r, texts2, rec(key, "v", at))
					expect(r, out, fmt.Sprintf("%s=%s@%d", key, optionalRight("v", row, row != ""), at))
				}
			}
			switch lost {
			case "abort":
				r.abort()
				naive = before
			case "move":
				r.move()
				naive = before
			default:
				r.commit()
			}
			r.drops = nil
		}
	})
}

func TestMistakesWithVersions(t *testing.T) {
	for text, define := range map[string]func(*Builder){
		"its history of 0s":                    func(b *Builder) { b.Table(texts, "rows", Versioned(0)).To(out) },
		"its history of 1.5ms":                 func(b *Builder) { b.Table(texts, "rows", Versioned(1500*time.Microsecond)).To(out) },
		`stream.Versioned(history)) behind it`: func(b *Builder) { b.Stream(texts).GroupByKey().Count("n", Versioned(time.Second)).To(intOut) },
		"use Builder.VersionedStore": func(b *Builder) {
			useAll(b, b.Store("s", texts.Key, texts.Value, Versioned(time.Second)))
		},
		"no order with the streams": func(b *Builder) {
			g := b.GlobalTable(texts, "g", Versioned(time.Second))
			b.Stream(texts2).JoinGlobal(g, func(k, _ string) (string, bool) { return k, true }, plusText).To(out)
		},
		"whose old versions it cannot hold back": func(b *Builder) { versionedTable(b).Filter(long).Suppress("held", time.Second).To(out) },
		`which is versioned; keep the newest`:    func(b *Builder) { useAll(b, b.Table(texts2, "rows", Versioned(time.Second))) },
	} {
		if _, err := Build(define); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("got %v, want something with %q", err, text)
		}
	}
}
