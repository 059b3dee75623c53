package stream

import (
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/semelstream/semel/codec"
)

var (
	fitIn   = NewTopic("in", codec.String, codec.Int64)
	fitMore = NewTopic("more", codec.String, codec.Int64)
	fitOut  = NewTopic("sums", codec.String, codec.Int64)
)

func plusInts(a, b int64) int64 { return a + b }

func fitSums(b *Builder) {
	b.Stream(fitIn).GroupByKey().Reduce("sums", plusInts).To(fitOut)
}

func fitMatching(names string) func(*Builder) {
	return func(b *Builder) {
		b.Stream(fitIn, Matching(regexp.MustCompile(names))).GroupByKey().Reduce("sums", plusInts).To(fitOut)
	}
}

func fitWindows(w Windows, opts ...WindowOption) func(*Builder) {
	return func(b *Builder) { b.Stream(fitIn).GroupByKey().Windowed(w).Count("w", opts...) }
}

func fitProcess(first int) func(*Builder) {
	return func(b *Builder) {
		seen := b.Store("seen", codec.String, codec.Int64)
		in := b.Stream(fitIn)
		for range first {
			in.ProcessValues(func(*ValueContext[int64], Record[string, int64]) error { return nil })
		}
		in.ProcessValues(func(*ValueContext[int64], Record[string, int64]) error { return nil }, Uses(seen))
	}
}

func fitRekeyed() func(*Builder) {
	return func(b *Builder) {
		b.Stream(fitIn).Map(func(k string, n int64) (string, int64) { return k, n }).Repartition("wide", Partitions(4)).
			GroupByKey().Reduce("sums", plusInts)
	}
}

// fits are pairs of versions and what CompatibleWith says; nothing is that the
// new one goes on with what the old one has left. With text, what is behind "|"
var fits = []struct {
	name     string
	old, now func(*Builder)
	want     []string
	json     bool // only the JSON says it
}{
	{name: "the same", old: fitSums, now: fitSums},
	{name: "an operator more", old: fitSums, now: func(b *Builder) {
		b.Stream(fitIn).Filter(func(string, int64) bool { return true }).GroupByKey().Reduce("sums", plusInts)
	}},
	{name: "a new store beside", old: fitSums, now: func(b *Builder) { fitSums(b); b.Stream(fitMore).GroupByKey().Count("counts") }},
	{name: "a store that is gone", old: func(b *Builder) { fitSums(b); b.Stream(fitMore).GroupByKey().Count("counts") }, now: fitSums},
	{name: "sub-topologies change places", old: fitSums, now: func(b *Builder) { b.Stream(fitMore).GroupByKey().Count("counts"); fitSums(b) }},
	{name: "a pattern that matches what was read", old: fitSums, now: fitMatching("i.")},
	{name: "a topic that a pattern has read", old: fitMatching("i."), now: fitSums},
	{name: "a wider pattern", old: fitMatching("i."), now: fitMatching("(i|o)n.*")},
	{
		name: "a pattern that does not match what was read", old: fitSums, now: fitMatching("i"),
		want: []string{`store "sums": it has rows of "in", and none of its inputs "i (pattern)" was read before; leave it`},
	},
	{name: "in memory", old: fitSums, now: func(b *Builder) { b.Stream(fitIn).GroupByKey().Reduce("sums", plusInts, InMemory()) }},
	{name: "another grace and retention", old: fitWindows(Tumbling(time.Minute, 0)), now: fitWindows(Tumbling(time.Minute, time.Hour))},
	{
		name: "another kind", old: fitSums,
		now: func(b *Builder) {
			b.Stream(fitIn).GroupByKey().Windowed(Tumbling(time.Minute, 0)).Count("sums")
		},
		want: []string{`store "sums": it was a key-value store and is a window store; leave it as it was, or give the store another name`},
	},
	{
		name: "other values", old: fitSums,
		now: func(b *Builder) {
			b.Stream(fitIn).GroupByKey().Aggregate("sums", func(_ string, _ int64, s string) string { return s })
		},
		want: []string{`store "sums": its values were written as int64 and are read as string; leave it`}, json: true,
	},
	{
		name: "other keys", old: fitSums,
		now: func(b *Builder) {
			b.Stream(NewTopic("in", codec.Int64, codec.Int64)).GroupByKey().Reduce("sums", plusInts)
		},
		want: []string{`store "sums": its keys were written as string and are read as int64; leave it`}, json: true,
	},
	{
		name: "wider windows", old: fitWindows(Tumbling(time.Minute, 0)), now: fitWindows(Tumbling(time.Hour, 0)),
		want: []string{`store "w": its rows were of tumbling windows of 1m0s and are of tumbling windows of 1h0m0s; leave it`}, json: true,
	},
	{
		name: "overlapping windows", old: fitWindows(Tumbling(time.Minute, 0)), now: fitWindows(Hopping(time.Minute, time.Second, 0)),
		want: []string{`are of hopping windows of 1m0s every 1s; leave it`}, json: true,
	},
	{
		name: "panes", old: fitWindows(Hopping(time.Minute, time.Second, 0)), now: fitWindows(Hopping(time.Minute, time.Second, 0), Panes()),
		want: []string{`store "w": it was a window store and is a window of panes store; leave it`},
	},
	{
		name: "no panes any more", old: fitWindows(Hopping(time.Minute, time.Second, 0), Panes()), now: fitWindows(Hopping(time.Minute, time.Second, 0)),
		want: []string{`store "w": it was a window of panes store and is a window store; leave it`},
	},
	{
		name: "panes of other windows", old: fitWindows(Hopping(time.Minute, time.Second, 0), Panes()), now: fitWindows(Hopping(time.Hour, time.Second, 0), Panes()),
		want: []string{`of panes of hopping windows of 1m0s every 1s and are of panes of hopping windows of 1h0m0s every 1s; leave it`}, json: true,
	},
	{
		name: "sliding windows", old: fitWindows(Tumbling(time.Minute, 0)), now: fitWindows(Sliding(time.Minute, 0)),
		want: []string{`are of sliding windows of 1m0s; leave it`}, json: true,
	},
	{
		name: "another ttl",
		old:  func(b *Builder) { b.Stream(fitIn).Dedup("ids", func(k string, _ int64) string { return k }, time.Hour) },
		now: func(b *Builder) {
			b.Stream(fitIn).Dedup("ids", func(k string, _ int64) string { return k }, time.Minute)
		},
		want: []string{`store "ids": its rows were of stretches of 1h0m0s and are of stretches of 1m0s; leave it`}, json: true,
	},
	{
		name: "what was no dedup", old: fitWindows(Tumbling(time.Minute, 0)), now: func(b *Builder) {
			b.Stream(fitIn).Dedup("w", func(k string, _ int64) string { return k }, time.Minute)
		},
		want: []string{`store "w": it was a window store and is a window in bundles store; leave it`},
	},
	{
		name: "no changelog any more", old: fitSums,
		now:  func(b *Builder) { b.Stream(fitIn).GroupByKey().Reduce("sums", plusInts, NoChangelog()) },
		want: []string{`store "sums": it had a changelog of its own and has no changelog, which lacks its rows; leave it`},
	},
	{
		name: "a table of another topic",
		old:  func(b *Builder) { b.Table(fitIn, "t") }, now: func(b *Builder) { b.Table(fitMore, "t") },
		want: []string{`store "t": it had topic "in" as its changelog and has topic "more" as its changelog, which lacks its rows`},
	},
	{
		name: "a table that becomes an aggregate",
		old:  func(b *Builder) { b.Table(fitIn, "t") },
		now:  func(b *Builder) { b.Stream(fitIn).GroupByKey().Reduce("t", plusInts) },
		want: []string{`store "t": it had topic "in" as its changelog and has a changelog of its own`},
	},
	{
		name: "without changelog in another sub-topology",
		old:  func(b *Builder) { b.Stream(fitIn).GroupByKey().Reduce("sums", plusInts, NoChangelog()) },
		now: func(b *Builder) {
			b.Stream(fitMore).GroupByKey().Count("counts")
			b.Stream(fitIn).GroupByKey().Reduce("sums", plusInts, NoChangelog())
		},
		want: []string{`store "sums": it has no changelog, and its rows are in the state directories of sub-topology 0, not of 1; declare the sources of the older version first`},
	},
	{
		name: "other inputs", old: fitSums,
		now:  func(b *Builder) { b.Stream(fitMore).GroupByKey().Reduce("sums", plusInts) },
		want: []string{`store "sums": it has rows of "in", and none of its inputs "more" was read before; leave it`},
	},
	{
		name: "an operator with timers has another number", old: fitProcess(0), now: fitProcess(1),
		want: []string{`store "seen": its operator was "process-values-1" and is "process-values-2", and times and timers are kept under that name; give it the option Name("process-values-1")`},
	},
	{
		name: "an operator with a time has another name", old: fitWindows(Tumbling(time.Minute, 0)), now: fitWindows(Tumbling(time.Minute, 0), Name("other")),
		want: []string{`store "w": its operator was "w" and is "other", and times and timers`},
	},
	{
		name: "a repartition topic that is gone", old: fitRekeyed(), now: fitSums,
		want: []string{`repartition topic "wide": it is read no more, and what was not processed yet would be lost; let the older version process it`},
	},
	{
		name: "a repartition topic of another size", old: fitRekeyed(),
		now: func(b *Builder) {
			b.Stream(fitIn).Map(func(k string, n int64) (string, int64) { return k, n }).Repartition("wide", Partitions(6)).
				GroupByKey().Reduce("sums", plusInts)
		},
		want: []string{`repartition topic "wide": it has 4 partitions and shall have 6; leave it as it was, or begin anew under another AppID`},
	},
	{
		name: "all at once",
		old:  func(b *Builder) { fitSums(b); b.Table(fitMore, "t") },
		now: func(b *Builder) {
			b.Stream(fitIn).GroupByKey().Reduce("t", plusInts)
			b.Stream(fitIn).GroupByKey().Windowed(Tumbling(time.Minute, 0)).Count("sums")
		},
		want: []string{`store "t": it had topic "more" as its changelog`, `store "sums": it was a key-value store`},
	},
}

func TestCompatibleWithNamesEveryMisfitAndTheWayOut(t *testing.T) {
	for _, f := range fits {
		t.Run(f.name, func(t *testing.T) {
			old, now := built(t, f.old), built(t, f.now)
			checkMisfits(t, now.CompatibleWith(string(old.DescribeJSON())), f.want)
			if f.json {
				f.want = nil
			}
			checkMisfits(t, now.CompatibleWith(old.Describe()), f.want)
		})
	}
}

func built(t *testing.T, define func(*Builder)) *Topology {
	t.Helper()
	top, err := Build(define)
	if err != nil {
		t.Fatal(err)
	}
	return top
}

func checkMisfits(t *testing.T, err error, want []string) {
	t.Helper()
	if (err != nil) != (len(want) > 0) {
		t.Fatalf("it says %v, want %q", err, want)
	}
	if err == nil {
		return
	}
	if !errors.Is(err, ErrIncompatible) {
		t.Errorf("the error is no ErrIncompatible: %v", err)
	}
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != len(want) {
		t.Fatalf("there are %d misfits, want %d:\n%v", len(lines), len(want), err)
	}
	for i := range want {
		if !strings.Contains(lines[i], want[i]) {
			t.Errorf("misfit %d is\n%s\nwant\n%s", i, lines[i], want[i])
		}
	}
}

// What is read back from text is compared with what is read back from JSON.
func TestDescriptionsOfEveryShapeFitThemselves(t *testing.T) {
	for name, define := range described {
		top := built(t, define)
		checkMisfits(t, top.CompatibleWith(top.Describe()), nil)
		checkMisfits(t, top.CompatibleWith(string(top.DescribeJSON())), nil)
		text, err := readDescription(top.Describe())
		if err != nil {
			t.Fatal(err)
		}
		full := describe(top.graph)
		if len(text.Subs) != len(full.Subs) || len(text.stores()) != len(full.stores()) || !slices.Equal(inputNames(text), inputNames(full)) {
			t.Errorf("%s: the text was read as %+v", name, text)
		}
		for i, st := range full.stores() {
			if got := text.stores()[i]; got.text() != strings.Split(st.text(), " cleanup.policy")[0] {
				t.Errorf("%s: store %q was read as %q", name, st.text(), got.text())
			}
		}
	}
}

func inputNames(d description) (names []string) {
	for _, sub := range d.Subs {
		names = append(names, sub.reads()...)
	}
	return names
}

func TestWhatIsNoDescriptionIsAnError(t *testing.T) {
	top := built(t, fitSums)
	for _, s := range []string{"something", "  source-1: source", `{"subTopologies": 7}`, "sub-topology 0\n  sums", "sub-topology 0\n  store \"w\": window, retention long"} {
		err := top.CompatibleWith(s)
		if err == nil || errors.Is(err, ErrIncompatible) || !strings.Contains(err.Error(), "give it what Topology.Describe or DescribeJSON returned") {
			t.Errorf("%q: %v", s, err)
		}
	}
}

// A store that left and comes back finds its changelog: it must fit, and is not
// taken for a new one.
func TestAStoreThatLeftIsRemembered(t *testing.T) {
	saved := func(define func(*Builder), before []byte) []byte {
		s, err := program{built(t, define), "app"}.Succeed(before)
		if err != nil || len(s.Misfits) > 0 {
			t.Fatal(err, s.Misfits)
		}
		return s.Saved
	}
	none := func(b *Builder) { b.Stream(fitIn).GroupByKey().Count("counts") }
	gone := saved(none, saved(none, saved(fitSums, nil))) // and after one more start
	back, err := program{built(t, func(b *Builder) { none(b); fitSums(b) }), "app"}.Succeed(gone)
	if err != nil || len(back.Misfits) > 0 || !strings.Contains(strings.Join(back.Notes, "\n"), `store "sums" is back`) {
		t.Errorf("as it was: %v, %q, notes %q", err, back.Misfits, back.Notes)
	}
	other, err := program{built(t, fitWords("sums")), "app"}.Succeed(gone)
	if err != nil || len(other.Misfits) != 1 || !strings.Contains(other.Misfits[0], "values were written as int64 and are read as string") {
		t.Errorf("with other values: %v, %q", err, other.Misfits)
	}
}

func fitWords(store string) func(*Builder) {
	return func(b *Builder) {
		b.Stream(fitIn).GroupByKey().Aggregate(store, func(_ string, _ int64, s string) string { return s })
	}
}
