package stream

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/semelstream/semel/codec"
)

// A twin is an aggregate that is declared twice, with rows of windows and with
// rows of panes: all that is sent must be the same.
type twin struct {
	name string
	make func(g WindowedGroup[string, string], store string, opts ...WindowOption) WindowedTable[string, string]
	with WindowOption
}

// bag is letters in order: adding and merging are associative and do not
// depend on order.
func bag(a, b string) string { return sorted(a + b) }

var twins = []twin{
	{"count", func(g WindowedGroup[string, string], store string, opts ...WindowOption) WindowedTable[string, string] {
		return g.Count(store, opts...).MapValues(func(n int64) string { return fmt.Sprint(n) })
	}, Panes()},
	{"reduce", func(g WindowedGroup[string, string], store string, opts ...WindowOption) WindowedTable[string, string] {
		return g.Reduce(store, bag, opts...)
	}, Panes()},
	{"aggregate", func(g WindowedGroup[string, string], store string, opts ...WindowOption) WindowedTable[string, string] {
		return g.Aggregate(store, func(k, v, row string) string { return bag(row, k+v) }, opts...)
	}, PanesBy(bag)},
}

func TestPanesSendWhatRowsOfWindowsDo(t *testing.T) {
	for _, tw := range twins {
		for _, each := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s each=%v", tw.name, each), func(t *testing.T) {
				rapid.Check(t, func(rt *rapid.T) { checkPanes(t, rt, tw, each) })
			})
		}
	}
}

func checkPanes(t *testing.T, rt *rapid.T, tw twin, each bool) {
	size := rapid.Int64Range(2, 12).Draw(rt, "size")
	every := rapid.Int64Range(1, size-1).Draw(rt, "every")
	w := Hopping(time.Duration(size)*ms, time.Duration(every)*ms, time.Duration(rapid.Int64Range(0, 6).Draw(rt, "grace"))*ms)
	var opts []WindowOption
	if each {
		opts = append(opts, EmitEach())
	}
	if rapid.Bool().Draw(rt, "retain") {
		opts = append(opts, Retain(time.Duration(w.size+w.grace+20)*ms))
	}
	key := WindowKey(codec.String, time.Duration(size)*ms)
	topic := func(name string) Topic[Windowed[string], string] { return NewTopic(name, key, codec.String) }
	groups := func(name string) Topic[string, string] { return NewTopic(name, codec.String, codec.String) }
	heard, final := rapid.Bool().Draw(rt, "updates"), rapid.Bool().Draw(rt, "final")
	h := newHistory(t, func(b *Builder) {
		in := b.Stream(texts)
		for _, store := range []string{"rows", "panes"} {
			more := opts
			if store == "panes" {
				more = append(slices.Clone(opts), tw.with)
			}
			n := tw.make(in.GroupByKey().Windowed(w), store, more...)
			if heard {
				n.To(topic(store))
				// What was told before is taken out again.
				n.GroupBy(func(w Windowed[string], v string) (string, string) {
					return w.Key, fmt.Sprint(w.Start.UnixMilli(), v, " ")
				}).
					Aggregate(store+"-groups",
						func(_, v, all string) string { return all + v },
						func(_, v, all string) string { return strings.Replace(all, v, "", 1) }).
					To(groups(store + "-groups"))
			}
			if final {
				n.Final().To(topic(store + "-final"))
			}
		}
		in.ProcessValues(func(_ *ValueContext[string], r Record[string, string]) error {
			if _, fail := r.Headers.Last("fail"); fail {
				return fmt.Errorf("as told")
			}
			return nil
		}, OnError(Skip))
	})
	var now int64
	for range rapid.IntRange(1, 60).Draw(rt, "records") {
		r := anyRecord(rt, &now)
		switch rapid.IntRange(0, 9).Draw(rt, "header") {
		case 0:
			r = r.WithHeader("fail", nil)
		case 1:
			r = r.WithHeader("h", []byte(r.Value))
		}
		put(h, texts, r)
		h.event(rt)
	}
	h.close()
	for _, name := range []string{"", "-final"} {
		got, want := sentWindows(h, topic("panes"+name)), sentWindows(h, topic("rows"+name))
		if !slices.Equal(got, want) {
			rt.Fatalf("%v: panes%s sent\n\t%q, rows\n\t%q", w, name, got, want)
		}
	}
	if got, want := last(h, groups("panes-groups")), last(h, groups("rows-groups")); fmt.Sprint(got) != fmt.Sprint(want) {
		rt.Fatalf("groups of panes are %v, of rows %v", got, want)
	}
	drops := map[string]int{}
	for _, d := range h.drops {
		drops[d]++
	}
	for _, reason := range []string{late, noKey, tombstoned, noWindow} {
		if a, b := drops["panes: "+reason], drops["rows: "+reason]; a != b {
			rt.Fatalf("panes dropped %d records as %q, rows %d", a, reason, b)
		}
	}
	checkPaneViews(rt, h, tw, w)
}

// sentWindows is what was sent to topic, in order, with times and headers.
func sentWindows(h *history, topic Topic[Windowed[string], string]) (all []string) {
	for _, k := range h.committed {
		if k.Topic == topic.Name {
			r := decode(h.rig, topic, k)
			all = append(all, fmt.Sprintf("%s=%s@%d %v", r.Key.short(), r.Value, r.Time.UnixMilli(), r.Headers))
		}
	}
	return all
}

// checkPaneViews compares views. Windows that have closed may have records more
// that came too late for them, or be there only by such.
func checkPaneViews(rt *rapid.T, h *history, tw twin, w Windows) {
	var keys [2][]string
	var open [2][]string
	for i, store := range []string{"rows", "panes"} {
		collect := func(e Windowed[string], v any, at time.Time) {
			keys[i] = append(keys[i], e.short())
			if e.End.UnixMilli() > latestTime(h)-w.grace {
				open[i] = append(open[i], fmt.Sprint(e.short(), v, at.UnixMilli()))
			}
		}
		from, to := time.UnixMilli(3), time.UnixMilli(1000)
		if tw.name == "count" {
			for e, err := range viewed[int64](h.rig, store, false).FetchAll(from, to) {
				h.must(err)
				collect(e.Key, e.Value, e.Time)
			}
			continue
		}
		for e, err := range viewed[string](h.rig, store, false).FetchAll(from, to) {
			h.must(err)
			collect(e.Key, e.Value, e.Time)
		}
	}
	for _, k := range keys[0] {
		if !slices.Contains(keys[1], k) {
			rt.Fatalf("the view of panes has %q, of rows %q", keys[1], keys[0])
		}
	}
	if !slices.Equal(open[0], open[1]) {
		rt.Fatalf("the view of panes has %q, of rows %q", open[1], open[0])
	}
}

// latestTime is the stream time of the aggregates.
func latestTime(h *history) int64 {
	for _, task := range h.sorted() {
		if now, ok := task.kept["rows time"]; ok {
			return now
		}
	}
	return 0
}
