package stream

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"pgregory.net/rapid"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/state"
)

// The stateful operators against models made of plain maps. Inputs are random,
// and so is where transactions commit, abort and restart: after an abort the
// records since the last commit come again, and nothing of it may show.

// A history feeds a rig and remembers what an abort would take back.
type history struct {
	*rig
	since     []*kgo.Record // fed since the last commit
	committed []*kgo.Record // written by transactions that committed
}

func newHistory(t *testing.T, define func(*Builder)) *history {
	return &history{rig: newRig(t, define)}
}

func put[K, V any](h *history, topic Topic[K, V], rec Record[K, V]) {
	k := encode(h.rig, topic, rec)
	h.since = append(h.since, k)
	h.must(h.feed(k))
}

func (h *history) close() {
	h.commit()
	h.committed = append(h.committed, h.out...)
	h.out, h.since = nil, nil
}

// event is a commit, an abort or a restart, or most often nothing.
func (h *history) event(t *rapid.T) {
	switch rapid.IntRange(0, 19).Draw(t, "event") {
	case 0, 1, 2:
		h.close()
	case 3:
		h.abort()
		for _, k := range h.since {
			h.must(h.feed(k))
		}
	case 4:
		h.close()
		h.restart()
	case 5:
		h.move()
		for _, k := range h.since {
			h.must(h.feed(k))
		}
	}
}

// last folds what was written to topic into rows.
func last[K comparable, V any](h *history, topic Topic[K, V]) map[K]V {
	rows := map[K]V{}
	for _, k := range h.committed {
		if k.Topic != topic.Name {
			continue
		}
		if rec := decode(h.rig, topic, k); rec.NoValue {
			delete(rows, rec.Key)
		} else {
			rows[rec.Key] = rec.Value
		}
	}
	return rows
}

// A timed is a row of a model.
type timed[V any] struct {
	v  V
	ms int64
}

// kept are a store's rows.
func kept[K comparable, V any](h *history, store string, key codec.Codec[K], value codec.Codec[V]) map[K]timed[V] {
	rows := map[K]timed[V]{}
	for _, task := range h.sorted() {
		if task.db.Part(store) == nil {
			continue
		}
		kv, err := state.OpenKV(task.db, store, key, value)
		h.must(err)
		for e, err := range kv.All() {
			h.must(err)
			rows[e.Key] = timed[V]{e.Value, e.Time.UnixMilli()}
		}
	}
	return rows
}

func values[K comparable, V any](rows map[K]timed[V]) map[K]V {
	out := map[K]V{}
	for k, row := range rows {
		out[k] = row.v
	}
	return out
}

func same[K, V comparable](t *rapid.T, what string, got, want map[K]V) {
	t.Helper()
	if !maps.Equal(got, want) {
		t.Fatalf("%s: got %v, want %v", what, got, want)
	}
}

// anyRecord is a record with few keys and values; some lack one or both.
func anyRecord(t *rapid.T, now *int64) Record[string, string] {
	*now += rapid.Int64Range(0, 5).Draw(t, "later")
	r := rec(
		rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "key"),
		rapid.SampledFrom([]string{"x1", "x2", "y1", "y2", "z", "DEL"}).Draw(t, "value"),
		max(0, *now-rapid.Int64Range(0, 8).Draw(t, "late")))
	if rapid.IntRange(0, 9).Draw(t, "null") == 0 {
		r = r.WithoutValue()
	}
	if rapid.IntRange(0, 14).Draw(t, "unkeyed") == 0 {
		r = r.WithoutKey()
	}
	return r
}

func TestAggregatesAreWhatAMapWouldHold(t *testing.T) {
	concat := func(_, v, row string, ok bool) (string, bool) {
		row += v
		return row[max(0, len(row)-8):], v != "DEL"
	}
	for _, each := range []bool{false, true} {
		t.Run(fmt.Sprintf("each=%v", each), func(t *testing.T) {
			var emit []AggregateOption
			if each {
				emit = append(emit, EmitEach())
			}
			rapid.Check(t, func(rt *rapid.T) {
				h := newHistory(t, func(b *Builder) {
					in := b.Stream(texts)
					in.GroupByKey().Update("rows", concat, emit...).To(out)
					in.GroupBy(func(_, v string) string { return v[:1] }).Count("counts", emit...).To(intOut)
				})
				rows, counts := map[string]timed[string]{}, map[string]timed[int64]{}
				var now int64
				for range rapid.IntRange(1, 60).Draw(rt, "records") {
					r := anyRecord(rt, &now)
					put(h, texts, r)
					if !r.NoValue {
						ms := r.Time.UnixMilli()
						n := counts[r.Value[:1]]
						counts[r.Value[:1]] = timed[int64]{n.v + 1, max(n.ms, ms)}
						if !r.NoKey {
							old, ok := rows[r.Key]
							if v, has := concat(r.Key, r.Value, old.v, ok); has {
								rows[r.Key] = timed[string]{v, max(old.ms, ms)}
							} else {
								delete(rows, r.Key)
							}
						}
					}
					h.event(rt)
				}
				h.close()
				same(rt, "rows", kept(h, "rows", codec.String, codec.String), rows)
				same(rt, "counts", kept(h, "counts", codec.String, codec.Int64), counts)
				same(rt, "rows sent", last(h, out), values(rows))
				same(rt, "counts sent", last(h, intOut), values(counts))
			})
		})
	}
}

func TestAggregatesSendEachKeyOncePerTransaction(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		r := newRig(t, func(b *Builder) { b.Stream(texts).GroupByKey().Count("counts").To(intOut) })
		total := map[string]int64{}
		for range rapid.IntRange(1, 5).Draw(rt, "transactions") {
			var want []string // keys in order of first change
			for range rapid.IntRange(0, 12).Draw(rt, "records") {
				k := rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(rt, "key")
				if !slices.Contains(want, k) {
					want = append(want, k)
				}
				total[k]++
				send(r, texts, rec(k, "", 0))
			}
			if len(r.out) > 0 {
				rt.Fatal("something was sent before the commit")
			}
			r.commit()
			for i, k := range want {
				want[i] = fmt.Sprintf("%s=%d@0", k, total[k])
			}
			var got []string
			for _, rec := range received(r, intOut) {
				got = append(got, text(rec))
			}
			if !slices.Equal(got, want) {
				rt.Fatalf("got %q, want %q", got, want)
			}
		}
	})
}

func TestGroupsOfATableAreCountedAnewFromItsRows(t *testing.T) {
	visible := func(_, v string) bool { return v != "z" }
	for _, each := range []bool{false, true} {
		t.Run(fmt.Sprintf("each=%v", each), func(t *testing.T) {
			var emit []AggregateOption
			if each {
				emit = append(emit, EmitEach())
			}
			rapid.Check(t, func(rt *rapid.T) {
				h := newHistory(t, func(b *Builder) {
					table := b.Table(texts, "rows")
					table.Filter(visible).Stored("kept").To(out)
					groups := table.Filter(visible).
						MapValues(strings.ToUpper).
						GroupBy(func(k, v string) (string, string) { return v[:1], k })
					groups.Update("sizes",
						func(_, _ string, n int64, _ bool) (int64, bool) { return n + 1, true },
						func(_, _ string, n int64, _ bool) (int64, bool) { return n - 1, n > 1 }, emit...).
						To(intOut)
					groups.Aggregate("members",
						func(_, k, all string) string { return sorted(all + k) },
						func(_, k, all string) string { return strings.Replace(all, k, "", 1) }, emit...).
						To(out2)
				})
				rows := map[string]string{}
				var now int64
				for range rapid.IntRange(1, 60).Draw(rt, "records") {
					r := anyRecord(rt, &now)
					put(h, texts, r)
					switch {
					case r.NoKey:
					case r.NoValue:
						delete(rows, r.Key)
					default:
						rows[r.Key] = r.Value
					}
					h.event(rt)
				}
				h.close()

				sizes, members, shown := map[string]int64{}, map[string]string{}, map[string]string{}
				for _, k := range slices.Sorted(maps.Keys(rows)) {
					if v := rows[k]; visible(k, v) {
						shown[k] = v
						group := strings.ToUpper(v[:1])
						sizes[group]++
						members[group] += k
					}
				}
				same(rt, "source table", values(kept(h, "rows", codec.String, codec.String)), rows)
				same(rt, "filtered table", values(kept(h, "kept", codec.String, codec.String)), shown)
				same(rt, "filtered table sent", last(h, out), shown)
				same(rt, "sizes", values(kept(h, "sizes", codec.String, codec.Int64)), sizes)
				same(rt, "sizes sent", last(h, intOut), sizes)
				got := last(h, out2)
				maps.DeleteFunc(got, func(_, all string) bool { return all == "" })
				same(rt, "members", got, members)
			})
		})
	}
}

func sorted(s string) string {
	b := []byte(s)
	slices.Sort(b)
	return string(b)
}

func TestStreamsJoinATableAsItIsWhenTheyCome(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		h := newHistory(t, func(b *Builder) {
			table := b.Table(texts2, "rows").MapOrDelete(func(_, v string) (string, bool) { return "<" + v, v != "z" })
			in := b.Stream(texts)
			in.Join(table, func(v, row string) string { return v + row }).To(out)
			in.LeftJoin(table, func(v, row string, ok bool) string { return fmt.Sprint(v, row, ok) }).To(out2)
		})
		rows := map[string]string{}
		var inner, left []string
		var now int64
		for range rapid.IntRange(1, 60).Draw(rt, "records") {
			r := anyRecord(rt, &now)
			if rapid.Bool().Draw(rt, "table") {
				put(h, texts2, r)
				if !r.NoKey {
					delete(rows, r.Key)
					if !r.NoValue && r.Value != "z" {
						rows[r.Key] = "<" + r.Value
					}
				}
			} else {
				put(h, texts, r)
				if !r.NoValue {
					row, ok := rows[r.Key]
					ok = ok && !r.NoKey
					if !ok {
						row = ""
					}
					left = append(left, text(r.WithValue(fmt.Sprint(r.Value, row, ok))))
					if ok {
						inner = append(inner, text(r.WithValue(r.Value+row)))
					}
				}
			}
			h.event(rt)
		}
		h.close()
		if got := sent(h, out); !slices.Equal(got, inner) {
			rt.Fatalf("inner: got %q, want %q", got, inner)
		}
		if got := sent(h, out2); !slices.Equal(got, left) {
			rt.Fatalf("left: got %q, want %q", got, left)
		}
	})
}

// sent is what committed transactions wrote to topic.
func sent[K, V any](h *history, topic Topic[K, V]) []string {
	var all []string
	for _, k := range h.committed {
		if k.Topic == topic.Name {
			all = append(all, text(decode(h.rig, topic, k)))
		}
	}
	return all
}

// A processor writes to its store and sends, and fails with some of the
// records after that: nothing of these may be left.
func TestWhatAFailedRecordDidIsUndone(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		h := newHistory(t, func(b *Builder) {
			store := b.Store("rows", codec.String, codec.String)
			b.Stream(texts).Process(func(c *Context[string, string], r Record[string, string]) error {
				if err := c.Emit(r); err != nil {
					return err
				}
				rows := store.In(c)
				if r.Value == "z" {
					for row, err := range rows.Range("b", "c") {
						if err != nil {
							return err
						}
						if err := rows.Delete(row.Key); err != nil {
							return err
						}
					}
				}
				if err := rows.Put(r.Key, r.Value); err != nil {
					return err
				}
				if r.Headers != nil {
					return fmt.Errorf("as told")
				}
				return nil
			}, Uses(store), OnError(Skip)).GroupByKey().Count("counts").To(intOut)
		})
		rows, counts := map[string]timed[string]{}, map[string]timed[int64]{}
		var now int64
		for range rapid.IntRange(1, 60).Draw(rt, "records") {
			r := anyRecord(rt, &now)
			if r.NoKey || r.NoValue {
				continue
			}
			fail := rapid.IntRange(0, 2).Draw(rt, "fail") == 0
			if fail {
				r = r.WithHeader("fail", nil)
			}
			put(h, texts, r)
			if !fail {
				if r.Value == "z" {
					delete(rows, "b")
					delete(rows, "c")
				}
				ms := r.Time.UnixMilli()
				rows[r.Key] = timed[string]{r.Value, ms}
				counts[r.Key] = timed[int64]{counts[r.Key].v + 1, max(counts[r.Key].ms, ms)}
			}
			h.event(rt)
		}
		h.close()
		same(rt, "rows", kept(h, "rows", codec.String, codec.String), rows)
		same(rt, "counts", kept(h, "counts", codec.String, codec.Int64), counts)
		same(rt, "counts sent", last(h, intOut), values(counts))
	})
}

func TestTimersFireOnTheirGridAcrossRestarts(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		every := rapid.Int64Range(1, 20).Draw(rt, "every")
		from := rapid.Int64Range(0, 30).Draw(rt, "from")
		s := Schedule{Every: time.Duration(every) * time.Millisecond}
		if from > 0 {
			s.From = time.UnixMilli(from)
		}
		h := newHistory(t, func(b *Builder) {
			b.Stream(texts).ProcessWith(func() *ticker { return &ticker{s} }).To(intOut)
		})
		var want []string
		var now, streamTime int64
		next := from
		for range rapid.IntRange(1, 40).Draw(rt, "records") {
			now += rapid.Int64Range(0, 25).Draw(rt, "later")
			ms := max(0, now-rapid.Int64Range(0, 10).Draw(rt, "late"))
			streamTime = max(streamTime, ms)
			put(h, texts, rec("a", "", ms))
			if next <= streamTime {
				want = append(want, fmt.Sprintf("tick=%d@%d", streamTime, streamTime))
				for next <= streamTime {
					next += every
				}
			}
			if rapid.IntRange(0, 5).Draw(rt, "restart") == 0 {
				h.close()
				h.restart()
			}
		}
		h.close()
		if got := sent(h, intOut); !slices.Equal(got, want) {
			rt.Fatalf("got %q, want %q", got, want)
		}
	})
}

type ticker struct{ s Schedule }

func (p *ticker) Init(c *Context[string, int64]) error {
	c.Schedule(p.s, func(c *Context[string, int64], now time.Time) error {
		return c.Emit(rec("tick", now.UnixMilli(), now.UnixMilli()))
	})
	return nil
}

func (p *ticker) Process(*Context[string, int64], Record[string, string]) error { return nil }
