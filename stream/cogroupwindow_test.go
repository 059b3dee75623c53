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

var numbersBySpan = NewTopic("numbers", SessionKey(codec.String), codec.Int64)

// textsAndNumbers is a cogroup of two streams of different types.
func textsAndNumbers(b *Builder) Cogrouped[string, string] {
	return b.Stream(texts).GroupByKey().Cogroup(addText).With(b.Stream(ints).GroupByKey(), addNumber)
}

func TestCogroupByWindowsUpdatesOneRowFromSeveralStreams(t *testing.T) {
	r := newRig(t, func(b *Builder) {
		textsAndNumbers(b).ToWindows("rows", Hopping(10*ms, 5*ms, 0), EmitEach()).To(windowTexts)
	})
	send(r, texts, rec("k", "a", 2))
	send(r, ints, rec("k", int64(2), 7))
	send(r, texts, rec("k", "b", 12))
	expectSpans(r, windowTexts, "k[0,10)=a@2", "k[0,10)=a##@7", "k[5,15)=##@7", "k[5,15)=##b@12", "k[10,20)=b@12")
	send(r, texts, del[string]("k", 50))
	send(r, ints, unkeyed[string](int64(1), 50), rec("k", int64(-1), 9)) // neither has moved time
	expectSpans(r, windowTexts, "k[5,15)=-@12")
	r.dropped("rows: tombstone", "rows: no key", "rows: late")
}

func TestCogroupByWindowsHasOneTimeForAllStreams(t *testing.T) {
	r := newRig(t, func(b *Builder) {
		textsAndNumbers(b).ToWindows("rows", Tumbling(10*ms, 5*ms), EmitEach()).To(windowTexts)
	})
	send(r, texts, rec("k", "a", 1), rec("j", "b", 30))
	send(r, ints, rec("k", int64(1), 2))
	expectSpans(r, windowTexts, "k[0,10)=a@1", "j[30,40)=b@30")
	r.dropped("rows: late")
	r.commit()
	r.move() // the time of all is kept
	send(r, ints, rec("k", int64(1), 14))
	expectSpans(r, windowTexts)
	r.dropped("rows: late")
}

func TestCogroupByWindowsTellsOncePerTransaction(t *testing.T) {
	r := newRig(t, func(b *Builder) { textsAndNumbers(b).ToWindows("rows", Tumbling(10*ms, 0)).To(windowTexts) })
	send(r, texts, rec("k", "a", 1))
	send(r, ints, rec("k", int64(1), 2).WithHeader("last", nil))
	expectSpans(r, windowTexts)
	r.commit()
	sent := received(r, windowTexts)
	if len(sent) != 1 || sent[0].Value != "a#" || len(sent[0].Headers) != 1 {
		t.Errorf("got %v", sent)
	}
}

func TestCogroupByWindowsSendsFinals(t *testing.T) {
	r := newRig(t, func(b *Builder) {
		textsAndNumbers(b).ToWindows("rows", Tumbling(10*ms, 5*ms)).Final().To(windowTexts)
	})
	send(r, texts, rec("k", "a", 1), rec("k", "b", 14))
	expectSpans(r, windowTexts)
	send(r, ints, rec("k", int64(1), 9), rec("j", int64(1), 15), rec("k", int64(1), 9))
	expectSpans(r, windowTexts, "k[0,10)=a#@9")
	r.dropped("rows: late")
}

func TestCogroupBySlidingWindows(t *testing.T) {
	r := newRig(t, func(b *Builder) {
		textsAndNumbers(b).ToWindows("rows", Sliding(10*ms, 0), EmitEach()).To(windowTexts)
	})
	send(r, texts, rec("k", "a", 20))
	send(r, ints, rec("k", int64(1), 25))
	expectSpans(r, windowTexts, "k[10,20)=a@20", "k[15,25)=a#@25", "k[21,31)=#@25")
	send(r, texts, rec("j", "b", 50))
	expectSpans(r, windowTexts, "j[40,50)=b@50")
	send(r, ints, rec("k", int64(1), 30)) // late by the other stream
	expectSpans(r, windowTexts)
	r.dropped("rows: late")
}

func TestCogroupBySessionsBridgesRecordsOfAllStreams(t *testing.T) {
	merge := func(_, a, b string) string { return a + "+" + b }
	r := newRig(t, func(b *Builder) {
		textsAndNumbers(b).ToSessions("rows", 5*ms, 100*ms, merge, EmitEach()).To(sessionTexts)
	})
	send(r, texts, rec("k", "a", 10), rec("k", "b", 20))
	send(r, ints, rec("k", int64(1), 15))
	expectWindows(r, sessionTexts, "k[10,10]=a@10", "k[20,20]=b@20", "k[10,10]=-@10", "k[20,20]=-@20", "k[10,20]=a+b#@20")
	send(r, texts, rec("k", "c", 21)) // one row alone is not merged
	expectWindows(r, sessionTexts, "k[10,20]=-@20", "k[10,21]=a+b#c@21")
	send(r, ints, rec("k", int64(-1), 21))
	expectWindows(r, sessionTexts, "k[10,21]=-@21", "k[10,21]=-@21")
	send(r, texts, rec("j", "d", 200))
	send(r, ints, rec("k", int64(1), 94))
	r.dropped("rows: late")
}

func TestCogroupBySessionsSendsFinals(t *testing.T) {
	merge := func(_, a, b string) string { return a + "+" + b }
	r := newRig(t, func(b *Builder) {
		textsAndNumbers(b).ToSessions("rows", 5*ms, 3*ms, merge).Final().To(sessionTexts)
	})
	send(r, texts, rec("k", "a", 10))
	send(r, ints, rec("k", int64(1), 14), rec("j", int64(1), 22))
	expectWindows(r, sessionTexts)
	send(r, texts, rec("j", "b", 23))
	expectWindows(r, sessionTexts, "k[10,14]=a#@14")
}

// What reads the rows is opened after the sessions here.
func TestFinalSessionsAreRowsForWhatIsOpenedLater(t *testing.T) {
	r := newRig(t, func(b *Builder) {
		finals := b.Stream(texts).GroupByKey().Sessions(5*ms, 0).Count("n", Retain(time.Hour)).Final()
		Rows(finals).Join(b.Table(numbersBySpan, "numbers"), func(a, b int64) int64 { return a + b }).
			ToStream().Map(func(w Windowed[string], n int64) (string, int64) { return w.Key, n }).To(intOut)
	})
	session := windowed("k", 1, 3)
	send(r, texts, rec("k", "", 1), rec("k", "", 3))
	send(r, numbersBySpan, rec(session, int64(10), 1))
	expect(r, intOut)
	send(r, texts, rec("j", "", 9))
	send(r, numbersBySpan, rec(session, int64(20), 4))
	expect(r, intOut, "k=12@3", "k=22@4")
}

func TestCogroupByWindowsRepartitionsEachStream(t *testing.T) {
	byValue := func(_, v string) string { return v }
	for name, define := range map[string]func(c Cogrouped[string, string]){
		"windows":  func(c Cogrouped[string, string]) { c.ToWindows("rows", Tumbling(10*ms, 0)).To(windowTexts) },
		"sliding":  func(c Cogrouped[string, string]) { c.ToWindows("rows", Sliding(10*ms, 0)).To(windowTexts) },
		"sessions": func(c Cogrouped[string, string]) { c.ToSessions("rows", ms, 0, last8Of).To(sessionTexts) },
	} {
		top, err := Build(func(b *Builder) {
			define(b.Stream(texts).GroupBy(byValue).Cogroup(addText).With(b.Stream(texts2).GroupBy(byValue), addText))
		})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var internal []string
		for _, topic := range top.graph.Topics {
			if topic.Internal {
				internal = append(internal, topic.FullName(rigApp))
			}
		}
		if want := []string{"app-rows-repartition", "app-rows-2-repartition"}; !slices.Equal(internal, want) {
			t.Errorf("%s: repartition topics are %q, want %q", name, internal, want)
		}
		if groups := top.graph.Subs[len(top.graph.Subs)-1].Copart; len(groups) != 1 || len(groups[0]) != 2 {
			t.Errorf("%s: partitioned alike: %v", name, groups)
		}
	}
}

func TestMistakesWithCogroupsByWindows(t *testing.T) {
	for text, define := range map[string]func(c Cogrouped[string, string]){
		"its function is nil":      func(c Cogrouped[string, string]) { c.ToSessions("rows", ms, 0, nil) },
		"its Windows say nothing":  func(c Cogrouped[string, string]) { c.ToWindows("rows", Windows{}) },
		"apart 0s is no":           func(c Cogrouped[string, string]) { c.ToWindows("rows", Sliding(0, 0)) },
		"Retain(5ms) is less than": func(c Cogrouped[string, string]) { c.ToWindows("rows", Tumbling(10*ms, 0), Retain(5*ms)) },
		"gap -1ns is no":           func(c Cogrouped[string, string]) { c.ToSessions("rows", -1, 0, last8Of) },
	} {
		if _, err := Build(func(b *Builder) { define(textsAndNumbers(b)) }); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("got %v, want something with %q", err, text)
		}
	}
}

// A windowing is an aggregate by windows and the cogroup that must be its like.
type windowing struct {
	alone    func(g Grouped[string, string], store string, opts ...WindowOption) WindowedTable[string, string]
	together func(c Cogrouped[string, string], store string, opts ...WindowOption) WindowedTable[string, string]
}

// last8Update is an aggregate of texts that now and then deletes.
func last8Update(_, v, row string, _ bool) (string, bool) {
	return last8(row + v), !strings.Contains(v, "DEL")
}

func last8Of(_, a, b string) string { return last8(a + "|" + b) }

func windowingBy(w Windows) windowing {
	return windowing{
		func(g Grouped[string, string], store string, opts ...WindowOption) WindowedTable[string, string] {
			return g.Windowed(w).Update(store, last8Update, opts...)
		},
		func(c Cogrouped[string, string], store string, opts ...WindowOption) WindowedTable[string, string] {
			return c.ToWindows(store, w, opts...)
		},
	}
}

func sessionsBy(gap, grace time.Duration) windowing {
	return windowing{
		func(g Grouped[string, string], store string, opts ...WindowOption) WindowedTable[string, string] {
			return g.Sessions(gap, grace).Update(store, last8Update, last8Of, opts...)
		},
		func(c Cogrouped[string, string], store string, opts ...WindowOption) WindowedTable[string, string] {
			return c.ToSessions(store, gap, grace, last8Of, opts...)
		},
	}
}

// alternating are windows of 5 and 3 ms.
func alternating(t time.Time) []Window {
	start := t.UnixMilli() / 8 * 8
	if t.UnixMilli() < start+5 {
		return []Window{{timeOf(start), timeOf(start + 5)}}
	}
	return []Window{{timeOf(start + 5), timeOf(start + 8)}}
}

func drawWindowing(rt *rapid.T) windowing {
	some := func(name string, from, to int64) time.Duration {
		return time.Duration(rapid.Int64Range(from, to).Draw(rt, name)) * ms
	}
	grace := some("grace", 0, 8)
	switch rapid.SampledFrom([]string{"aligned", "sliding", "custom", "sessions"}).Draw(rt, "kind") {
	case "sliding":
		return windowingBy(Sliding(some("apart", 1, 10), grace))
	case "custom":
		return windowingBy(Custom(5*ms, grace, alternating))
	case "sessions":
		return sessionsBy(some("gap", 0, 8), grace)
	}
	size := some("size", 1, 12)
	return windowingBy(Hopping(size, some("every", 1, size.Milliseconds()), grace))
}

// A cogroup of one stream is an aggregate of it, and a cogroup of two is one of
// both merged, each value with a tag: results, finals, what is dropped and the
// changelogs are the same, whatever is aborted or moved.
func TestCogroupsByWindowsAreAggregatesOfTheMergedStreams(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		by := drawWindowing(rt)
		two := rapid.Bool().Draw(rt, "two")
		var opts []WindowOption
		if rapid.Bool().Draw(rt, "each") {
			opts = append(opts, EmitEach())
		}
		h := newHistory(t, func(b *Builder) {
			tag := func(name string) func(v string) string { return func(v string) string { return name + v } }
			tagged := func(name string) func(k, v, row string, ok bool) (string, bool) {
				return func(k, v, row string, ok bool) (string, bool) { return last8Update(k, name+v, row, ok) }
			}
			one, other := b.Stream(texts), b.Stream(texts2)
			merged, cogroup := one.MapValues(tag("<")), one.GroupByKey().Cogroup(tagged("<"))
			if two {
				merged = merged.Merge(other.MapValues(tag(">")))
				cogroup = cogroup.With(other.GroupByKey(), tagged(">"))
			}
			send := func(name string, windows WindowedTable[string, string]) {
				windows.ToStream(Windowed[string].short).To(NewTopic(name+"-updates", codec.String, codec.String))
				windows.Final().ToStream(Windowed[string].short).To(NewTopic(name+"-finals", codec.String, codec.String))
			}
			send("alone", by.alone(merged.GroupByKey(), "alone", opts...))
			send("together", by.together(cogroup, "together", opts...))
		})
		var now int64
		for range rapid.IntRange(1, 50).Draw(rt, "records") {
			r := anyRecord(rt, &now)
			if rapid.Bool().Draw(rt, "header") {
				r = r.WithHeader("h", []byte(r.Value))
			}
			put(h, rapid.SampledFrom([]Topic[string, string]{texts, texts2}).Draw(rt, "topic"), r)
			h.event(rt)
		}
		h.close()
		for _, what := range []string{"updates", "finals"} {
			if a, b := toldIn(h, "alone-"+what), toldIn(h, "together-"+what); !slices.Equal(a, b) {
				rt.Fatalf("%s:\nalone    %q\ntogether %q", what, a, b)
			}
		}
		if a, b := dropsOf(h.rig, "alone"), dropsOf(h.rig, "together"); !slices.Equal(a, b) {
			rt.Fatalf("dropped:\nalone    %q\ntogether %q", a, b)
		}
		for _, task := range h.sorted() {
			if a, b := fmt.Sprint(task.log["alone"]), fmt.Sprint(task.log["together"]); a != b {
				rt.Fatalf("changelogs:\nalone    %s\ntogether %s", a, b)
			}
		}
	})
}

// toldIn are the committed records of a topic.
func toldIn(h *history, topic string) (all []string) {
	for _, k := range h.committed {
		if k.Topic == topic {
			all = append(all, fmt.Sprintf("%s=%q(%v)@%d %v", k.Key, k.Value, k.Value == nil, k.Timestamp.UnixMilli(), k.Headers))
		}
	}
	return all
}

// dropsOf are the reasons of an operator's drops.
func dropsOf(r *rig, operator string) (reasons []string) {
	for _, d := range r.drops {
		if reason, ok := strings.CutPrefix(d, operator+": "); ok {
			reasons = append(reasons, reason)
		}
	}
	return reasons
}
