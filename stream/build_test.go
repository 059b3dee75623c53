package stream

import (
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/semelstream/semel/codec"
)

func windowsOf(w Windows, opts ...WindowOption) func(*Builder) {
	return func(b *Builder) {
		b.Stream(texts).GroupByKey().Windowed(w).Count("n", opts...).Unwindowed().To(intOut)
	}
}

// Mistakes, by what is wrong. What Build says of each is in
// testdata/mistakes.txt.
var mistakes = []struct {
	name   string
	define func(*Builder)
}{
	{"nothing", func(b *Builder) {}},
	{"a name twice", func(b *Builder) {
		b.Stream(texts).Filter(long, Name("x")).Peek(func(string, string) {}, Name("x")).To(out)
	}},
	{"a store name twice", func(b *Builder) {
		b.Stream(texts).GroupByKey().Count("n").To(intOut)
		b.Stream(texts2).ToTable("n").To(out)
	}},
	{"no store name", func(b *Builder) { b.Stream(texts).GroupByKey().Count("") }},
	{"a store name that is none", func(b *Builder) { b.Stream(texts).GroupByKey().Count("a b") }},
	{"a store name too long", func(b *Builder) { b.Stream(texts).GroupByKey().Count(strings.Repeat("x", 201)) }},
	{"an unused store", func(b *Builder) {
		b.Store("lonely", codec.String, codec.String)
		b.Stream(texts).To(out)
	}},
	{"windows that are not kept", func(b *Builder) {
		useAll(b, b.WindowStore("w", codec.String, codec.String, time.Minute, time.Second))
		useAll(b, b.WindowStore("v", codec.String, codec.String, 0, time.Second))
		useAll(b, b.SessionStore("s", codec.String, codec.String, 0))
		useAll(b, b.VersionedStore[string, string]("n", nil, nil, time.Second))
	}},
	{"panes of windows that have none", func(b *Builder) {
		in := b.Stream(texts).GroupByKey()
		in.Windowed(Tumbling(time.Minute, 0)).Count("tumbling", Panes())
		in.Windowed(Sliding(time.Minute, 0)).Count("sliding", Panes())
		in.Windowed(Unlimited(time.UnixMilli(0))).Count("unlimited", Panes())
		in.Windowed(Custom(time.Minute, 0, func(time.Time) []Window { return nil })).Count("custom", Panes())
		in.Sessions(time.Minute, 0).Count("sessions", Panes())
	}},
	{"panes that cannot be merged", func(b *Builder) {
		in := b.Stream(texts).GroupByKey()
		w := Hopping(time.Minute, time.Second, 0)
		update := func(_, v, _ string, _ bool) (string, bool) { return v, true }
		in.Windowed(w).Aggregate("unknown", func(_, v, row string) string { return row + v }, Panes())
		in.Windowed(w).Aggregate("other", func(_, v, row string) string { return row + v }, PanesBy(sum))
		in.Windowed(w).Aggregate("nil", func(_, v, row string) string { return row + v }, PanesBy[string](nil))
		in.Windowed(w).Update("update", update, PanesBy(func(a, b string) string { return a + b }))
		in.Cogroup(update).ToWindows("cogroup", w, Panes())
	}},
	{"an unused output", func(b *Builder) {
		b.Output[string, string]("side").Stream().To(out)
		b.Stream(texts).To(out2)
	}},
	{"a repartition name twice", func(b *Builder) {
		b.Stream(texts).Repartition("r").To(out)
		b.Stream(texts).Repartition("r").To(out2)
	}},
	{"no partitions", func(b *Builder) { b.Stream(texts).Repartition("r", Partitions(0)).To(out) }},
	{"no topic name", func(b *Builder) { b.Stream(texts).To(out.Named("")) }},
	{"a topic without codecs", func(b *Builder) { b.Stream(Topic[string, int64]{Name: "bare"}).To(intOut) }},
	{"a pattern that matches another source's topic", func(b *Builder) {
		b.Stream(texts).To(out)
		b.Stream(texts2, Matching(regexp.MustCompile("te.*"))).To(out)
		b.Stream(texts2, Matching(regexp.MustCompile("t"))).To(out) // the whole name has to match
	}},
	{"a pattern that is none", func(b *Builder) { b.Stream(texts, Matching(nil)).To(out) }},
	{"a pattern twice with other codecs", func(b *Builder) {
		b.Stream(texts, Matching(regexp.MustCompile("t.*"))).To(out)
		b.Stream(NewTopic("x", codec.String, codec.Int64), Matching(regexp.MustCompile("t.*"))).To(intOut)
	}},
	{"a codec of another type", func(b *Builder) {
		b.Stream(texts).Repartition("r", KeyCodec(codec.Int64)).To(out)
	}},
	{"a nil codec", func(b *Builder) {
		b.Stream(texts).Repartition("r", ValueCodec[string](nil)).To(out)
		b.Codec[int64](nil)
	}},
	{"a type without a codec", func(b *Builder) {
		b.Stream(texts).MapValues(func(string) func() { return nil }).Repartition("r")
	}},
	{"windows that say nothing", windowsOf(Windows{})},
	{"windows of no size", windowsOf(Tumbling(0, 0))},
	{"windows of half a millisecond", windowsOf(Hopping(time.Second, 500*time.Microsecond, 0))},
	{"windows with gaps", windowsOf(Hopping(time.Second, 2*time.Second, 0))},
	{"a grace before the end", windowsOf(Tumbling(time.Second, -1))},
	{"an unlimited window before time", windowsOf(Unlimited(time.Time{}))},
	{"custom windows without a function", windowsOf(Custom(time.Second, 0, nil))},
	{"windows that go too soon", windowsOf(Tumbling(time.Second, time.Second), Retain(time.Second))},
	{"an aggregate of windows without a function", func(b *Builder) {
		b.Stream(texts).GroupByKey().Windowed(Tumbling(time.Second, 0)).Reduce("r", nil).Unwindowed().To(out)
	}},
	{"finals of finals", func(b *Builder) {
		b.Stream(texts).GroupByKey().Windowed(Tumbling(time.Second, 0)).Count("n").Final().Final().Unwindowed().To(intOut)
	}},
	{"finals of a window without end", func(b *Builder) {
		b.Stream(texts).GroupByKey().Windowed(Unlimited(time.UnixMilli(0))).Count("n").Final().Unwindowed().To(intOut)
	}},
	{"a limit that is none", func(b *Builder) {
		b.Stream(texts).GroupByKey().Windowed(Tumbling(time.Second, 0)).Count("n").Final(MaxKeys(-1)).Unwindowed().To(intOut)
	}},
	{"one topic as two types", func(b *Builder) {
		b.Stream(texts).To(out)
		b.Stream(NewTopic("texts", codec.String, codec.Int64)).To(intOut)
	}},
	{"one topic with two codecs", func(b *Builder) {
		b.Stream(texts).To(out)
		b.Stream(NewTopic("texts", codec.String, codec.JSON[string]())).To(out2)
	}},
	{"one topic with two event times", func(b *Builder) {
		b.Stream(texts).To(out)
		b.Stream(texts.EventTime(byDigits)).To(out2)
	}},
	{"one topic with two partition functions", func(b *Builder) {
		b.Stream(texts).To(out)
		b.Stream(texts2).To(out.PartitionBy(byRegion))
	}},
	{"options on the second reading", func(b *Builder) {
		b.Stream(texts).To(out)
		b.Stream(texts, FromEnd()).To(out2)
	}},
	{"a negative join window", func(b *Builder) { joinOf(inner, Within(-time.Second, 0))(b) }},
	{"a join window that ends before it begins", func(b *Builder) { joinOf(left, Between(2*time.Second, time.Second, 0))(b) }},
	{"a negative grace of a join", func(b *Builder) { joinOf(outer, Within(time.Second, -time.Second))(b) }},
	{"a join window of half a millisecond", func(b *Builder) { joinOf(inner, Within(500*time.Microsecond, 0))(b) }},
	{"a join window too large", func(b *Builder) { joinOf(inner, Between(0, 200*365*24*time.Hour, 0))(b) }},
	{"a join of streams without a function", func(b *Builder) {
		b.Stream(texts).JoinStream[string, string]("j", b.Stream(texts2), Within(0, 0), nil).To(out)
	}},
	{"a join of streams without a store name", func(b *Builder) {
		b.Stream(texts).JoinStream("", b.Stream(texts2), Within(0, 0), func(l, r string) string { return l + r }).To(out)
	}},
	{"a join of streams with a codec of neither", func(b *Builder) { joinOf(inner, Within(0, 0), ValueCodec(codec.Int64))(b) }},
	{"a join of streams partitioned differently", func(b *Builder) {
		b.Stream(texts).JoinStream("j", b.Stream(texts2.PartitionBy(byRegion)), Within(0, 0), func(l, r string) string { return l + r }).To(out)
	}},
	{"a negative FromAgo", func(b *Builder) { b.Stream(texts, FromAgo(-time.Second)).To(out) }},
	{"a table that begins late", func(b *Builder) {
		b.Stream(texts, FromEnd()).To(out)
		b.Table(texts, "rows")
	}},
	{"a nil function", func(b *Builder) {
		in := b.Stream(texts)
		in.Filter(nil).To(out)
		in.ForEach(nil)
		in.MapValues[string](nil)
		in.Route(nil)
		match, _ := in.Split(nil)
		match.To(out)
	}},
	{"changelog settings without a changelog", func(b *Builder) {
		b.Stream(texts).GroupByKey().Count("n", NoChangelog(), ChangelogConfig(map[string]string{}))
	}},
	{"a stream of another builder", func(b *Builder) {
		var other Stream[string, string]
		_, _ = Build(func(b *Builder) { other = b.Stream(texts2) })
		b.Stream(texts).Merge(other).To(out)
	}},
	{"a loop", func(b *Builder) {
		back := b.Output[string, string]("back")
		b.Stream(texts).Merge(back.Stream()).
			Process(func(c *Context[string, string], r Record[string, string]) error { return back.Emit(c, r) }, Uses(back))
	}},
	{"joined topics with two partition functions", func(b *Builder) {
		b.Stream(texts.PartitionBy(byRegion)).Join(b.Table(texts2, "rows"), func(a, b string) string { return a + b }).To(out)
	}},
	{"a joined multicast topic", func(b *Builder) {
		many := texts.Multicast(func(Record[string, string], int) []int { return nil })
		b.Stream(many).Join(b.Table(texts2, "rows"), func(a, b string) string { return a + b }).To(out)
	}},
	{"joined repartition topics with two partition counts", func(b *Builder) {
		rows := b.Stream(texts).Repartition("left", Partitions(3)).ToTable("rows")
		b.Stream(texts2).Repartition("right", Partitions(4)).Join(rows, func(a, b string) string { return a + b }).To(out)
	}},
	{"tables joined that are partitioned by two functions", func(b *Builder) {
		b.Table(texts.PartitionBy(byRegion), "left").Join(b.Table(texts2, "right"), func(a, b string) string { return a + b })
	}},
	{"a nil function of a join or a cogroup", func(b *Builder) {
		left := b.Table(texts, "left")
		left.Join[string, string](left, nil)
		b.Stream(texts2).GroupByKey().Cogroup[string](nil).ToTable("rows")
	}},
	{"rows of a foreign-key join that are not kept", func(b *Builder) {
		left, right := b.Table(texts, "left"), b.Table(texts2, "right")
		named := func(_, v string) (string, bool) { return v, true }
		joined := left.JoinOn("on", right, named, func(a, b string) string { return a + b })
		joined.Join(left, func(a, b string) string { return a + b })
		joined.GroupBy(func(k, v string) (string, string) { return v, k }).Count("n")
	}},
	{"a foreign-key join without functions, with a codec of neither side", func(b *Builder) {
		left, right := b.Table(texts, "left"), b.Table(ints, "right")
		left.JoinOn[string, int64, string]("on", right, nil, nil, ValueCodec(codec.Bool))
	}},
	{"a foreign-key join without a name", func(b *Builder) {
		left, right := b.Table(texts, "left"), b.Table(texts2, "right")
		left.JoinOn("", right, func(_, v string) (string, bool) { return v, true }, func(a, b string) string { return a + b })
	}},
	{"a foreign-key join with a table of another partition function", func(b *Builder) {
		left, right := b.Table(texts, "left"), b.Table(texts2.PartitionBy(byRegion), "right")
		left.JoinOn("on", right, func(_, v string) (string, bool) { return v, true }, func(a, b string) string { return a + b })
	}},
	{"a join that must repartition without a name", func(b *Builder) {
		rekeyed := b.Stream(texts).SelectKey(func(_, v string) string { return v })
		rekeyed.Join(b.Table(texts2, "rows"), func(a, b string) string { return a + b }).To(out)
	}},
}

func TestBuildSaysWhatIsWrongWhereAndWhatToWrite(t *testing.T) {
	var all strings.Builder
	for _, m := range mistakes {
		top, err := Build(m.define)
		if err == nil || top != nil {
			t.Errorf("%s: nothing was said", m.name)
			continue
		}
		all.WriteString("# " + m.name + "\n" + err.Error() + "\n\n")
	}
	// Lines of this file come and go.
	golden(t, "mistakes.txt", regexp.MustCompile(`_test\.go:\d+`).ReplaceAllString(all.String(), "_test.go:N"))
}

func TestBuildReportsEveryMistakeAtOnce(t *testing.T) {
	_, err := Build(func(b *Builder) {
		for _, m := range mistakes[1:5] {
			m.define(b)
		}
	})
	if n := len(err.(interface{ Unwrap() []error }).Unwrap()); n < 4 {
		t.Errorf("%d mistakes were reported:\n%v", n, err)
	}
}

func TestMistakesNameTheirLine(t *testing.T) {
	_, err := Build(func(b *Builder) {
		b.Stream(texts).
			Filter(long).
			To(out.Named("")) // this line
	})
	src, readErr := os.ReadFile("build_test.go")
	if readErr != nil {
		t.Fatal(readErr)
	}
	line := 1 + slices.IndexFunc(strings.Split(string(src), "\n"), func(l string) bool { return strings.HasSuffix(l, "// this line") })
	if want := "stream/build_test.go:" + strconv.Itoa(line) + ": "; !strings.HasPrefix(err.Error(), want) {
		t.Errorf("%v does not begin with %s", err, want)
	}
}

func TestGivenNamesTakePrecedenceOverGeneratedOnes(t *testing.T) {
	top, err := Build(func(b *Builder) {
		b.Stream(texts).Filter(long).Filter(long, Name("filter-1")).Filter(long).To(out, Name("source-1"))
	})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, n := range top.graph.Nodes {
		names = append(names, n.Name)
	}
	if want := []string{"source-2", "filter-2", "filter-1", "filter-3", "source-1"}; !slices.Equal(names, want) {
		t.Errorf("names are %q, want %q", names, want)
	}
}

func TestBuilderIsOfNoUseAfterBuild(t *testing.T) {
	var kept *Builder
	if _, err := Build(func(b *Builder) { kept = b; b.Stream(texts).To(out) }); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if recover() == nil {
			t.Error("it took another operator")
		}
	}()
	kept.Stream(texts2)
}

func TestBuilderCodecIsUsedWhereNoneIsInherited(t *testing.T) {
	type size int
	r := newRig(t, func(b *Builder) {
		b.Codec(codec.Via(codec.String,
			func(s size) string { return strings.Repeat("x", int(s)) },
			func(s string) (size, error) { return size(len(s)), nil }))
		b.Stream(texts).MapValues(func(v string) size { return size(len(v)) }).Repartition("sizes").
			MapValues(func(s size) string { return strconv.Itoa(int(s)) }).To(out)
	})
	var bytes string
	task := r.sorted()[0]
	r.must(task.in.Push(0, encode(r, texts, rec("a", "abc", 1))))
	for _, k := range task.Take() {
		bytes = string(k.Value)
	}
	if bytes != "xxx" {
		t.Errorf("the repartition topic got %q, want the Builder's codec", bytes)
	}
	send(r, texts, rec("a", "abcd", 1))
	expect(r, out, "a=4@1")
}

// useAll makes a processor that uses a store.
func useAll(b *Builder, h Handle) {
	b.Stream(texts).ProcessValues(func(*ValueContext[string], Record[string, string]) error { return nil }, Uses(h)).To(out)
}
