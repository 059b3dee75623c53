package stream

import (
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
	"pgregory.net/rapid"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/state"
)

// named is the foreign key of a text, the part before the bar.
func named(_, v string) (string, bool) {
	k, _, _ := strings.Cut(v, "|")
	return k, k != ""
}

const (
	registrations2 = "app-on-subscription-registration-topic"
	responses2     = "app-on-subscription-response-topic"
)

// A tap keeps what a rig sends between tasks.
func tap(r *rig, topic string) *[]string {
	var seen []string
	r.tap = func(k *kgo.Record) {
		if k.Topic == topic {
			partition := fmt.Sprint(k.Partition)
			if k.Key == nil {
				partition = "any"
			}
			seen = append(seen, fmt.Sprintf("%s %x %x %d", partition, k.Key, k.Value, k.Timestamp.UnixMilli()))
		}
	}
	return &seen
}

// What one run of Kafka Streams 4.4.0 with two partitions wrote: partition, key
// and value of each record, and its time behind 1795996800000.
var (
	recordedInner = []string{
		"0 6339 01038df8df922db8d916004aef1ffe8b28266f3300000001 120",
		"0 6339 01034b69be4166178e8545e70d4ced6bc8676f3300000001 240",
		"1 6332 010381598686f55acba3e467cc430014eeba6f3200000000 110",
		"1 6332 81016f3200000000 220",
		"1 6331 0103d2b2a00f7b845cdab560c53012c225766f3400000000 250",
		"1 6331 0103d9435bab3891beb70f9e31245471911f6f3100000001 100",
		"1 6331 01004be701d9ee83fd5d857eb7ccf97446e26f3100000001 200",
		"1 6332 01024be701d9ee83fd5d857eb7ccf97446e26f3100000001 200",
	}
	recordedLeft = []string{
		"any  01022b001613b657b16726a16a62d4bf49076f3400000000 130",
		"any  81026f3200000000 220",
		"0 6339 01028df8df922db8d916004aef1ffe8b28266f3300000001 120",
		"0 6339 01024b69be4166178e8545e70d4ced6bc8676f3300000001 240",
		"1 6332 010281598686f55acba3e467cc430014eeba6f3200000000 110",
		"1 6332 81006f3200000000 220",
		"1 6331 0102d2b2a00f7b845cdab560c53012c225766f3400000000 250",
		"1 6331 0102d9435bab3891beb70f9e31245471911f6f3100000001 100",
		"1 6331 01004be701d9ee83fd5d857eb7ccf97446e26f3100000001 200",
		"1 6332 01024be701d9ee83fd5d857eb7ccf97446e26f3100000001 200",
	}
	recordedInnerAnswers = []string{
		"0 6f32 0081598686f55acba3e467cc430014eeba426f62 110",
		"0 6f32 0081598686f55acba3e467cc430014eeba426f626279 210",
		"0 6f32 80 220",
		"1 6f31 004be701d9ee83fd5d857eb7ccf97446e2426f626279 210",
	}
	recordedLeftAnswers = []string{
		"0 6f34 002b001613b657b16726a16a62d4bf4907 130",
		"0 6f32 80 220",
		"0 6f32 0081598686f55acba3e467cc430014eeba426f62 110",
		"0 6f32 0081598686f55acba3e467cc430014eeba426f626279 210",
		"0 6f34 00d2b2a00f7b845cdab560c53012c22576 250",
		"1 6f33 008df8df922db8d916004aef1ffe8b2826 120",
		"1 6f33 004b69be4166178e8545e70d4ced6bc867 240",
		"1 6f31 00d9435bab3891beb70f9e31245471911f 100",
		"1 6f31 004be701d9ee83fd5d857eb7ccf97446e2426f626279 210",
	}
	recordedStore = []string{
		"0000000263396f33 01034b69be4166178e8545e70d4ced6bc8676f3300000001 240",
		"0000000263316f34 0103d2b2a00f7b845cdab560c53012c225766f3400000000 250",
		"0000000263326f31 01024be701d9ee83fd5d857eb7ccf97446e26f3100000001 200",
	}
)

// The same input gives the bytes that Kafka Streams wrote. It answered o1 once
// only, with the row of 210, since that was there when o1 subscribed.
func TestForeignKeyJoinWritesTheBytesOfKafkaStreams(t *testing.T) {
	const begin = 1795996800000
	left, right := NewTopic("left", codec.String, codec.String), NewTopic("right", codec.String, codec.String)
	for _, topic := range []string{registrations2, responses2} {
		for _, outer := range []bool{false, true} {
			r := newRigOf(t, func(b *Builder) {
				l, r := b.Table(left, "l"), b.Table(right, "r")
				if outer {
					l.LeftJoinOn("on", r, named, leftOptional).To(out)
				} else {
					l.JoinOn("on", r, named, pair).To(out)
				}
			}, map[string]int32{"left": 2, "right": 2, registrations2: 2, responses2: 2})
			seen := tap(r, topic)
			send(r, right, rec("c2", "Bob", begin+50))
			send(r, left, rec("o1", "c1|5", begin+100), rec("o2", "c2|7", begin+110), rec("o3", "c9|9", begin+120), rec("o4", "|1", begin+130))
			send(r, right, rec("c2", "Bobby", begin+210))
			send(r, left, rec("o1", "c2|6", begin+200), del[string]("o2", begin+220), rec("o3", "c9|10", begin+240), rec("o4", "c1|2", begin+250))

			var got []string
			for _, line := range *seen {
				at := strings.LastIndex(line, " ")
				var ms int64
				fmt.Sscan(line[at+1:], &ms)
				got = append(got, fmt.Sprintf("%s %d", line[:at], ms-begin))
			}
			want := map[bool]map[string][]string{
				false: {registrations2: recordedInner, responses2: recordedInnerAnswers},
				true:  {registrations2: recordedLeft, responses2: recordedLeftAnswers},
			}[outer][topic]
			if slices.Sort(got); !slices.Equal(got, slices.Sorted(slices.Values(want))) {
				t.Errorf("%s (left: %v): wrote\n\t%s\nwant\n\t%s", topic, outer, strings.Join(got, "\n\t"), strings.Join(slices.Sorted(slices.Values(want)), "\n\t"))
			}
			if outer {
				continue
			}
			var rows []string
			for _, task := range r.sorted() {
				if task.db.Part("on-subscription-store") == nil {
					continue
				}
				kv, err := state.OpenKV(task.db, "on-subscription-store", codec.Bytes, codec.Bytes)
				r.must(err)
				for e, err := range kv.All() {
					r.must(err)
					rows = append(rows, fmt.Sprintf("%x %x %d", e.Key, e.Value, e.Time.UnixMilli()-begin))
				}
			}
			if !slices.Equal(rows, recordedStore) {
				t.Errorf("the store holds %q, want %q", rows, recordedStore)
			}
		}
	}
}

func TestSubscriptionsAndResponsesThatAreNoneAreRefused(t *testing.T) {
	for _, text := range []string{"", "01", "0103", "0203" + strings.Repeat("0", 40), "0104" + strings.Repeat("0", 40), "8101000000", "0103" + strings.Repeat("0", 38)} {
		b, err := hex.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		if s, err := parseSubscription(b); err == nil {
			t.Errorf("%q is taken for %v", text, s)
		}
	}
	for _, b := range [][]byte{{}, {1}, {0, 1, 2}} {
		if r, err := (responses{}).Decode(b); err == nil {
			t.Errorf("%x is taken for %v", b, r)
		}
	}
}

// A row may be named before it is there, and by rows in other partitions.
func TestForeignKeyJoinNamesItsTopicsAndStoreAsKafkaStreams(t *testing.T) {
	top, err := Build(func(b *Builder) {
		b.Table(texts, "l").JoinOn("on", b.Table(texts2, "r"), named, pair).To(out)
	})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, topic := range top.graph.Topics {
		if topic.Internal {
			names = append(names, topic.FullName("app"))
		}
	}
	for _, s := range top.graph.Stores {
		if s.Source == nil {
			names = append(names, s.ChangelogName("app"))
		}
	}
	want := []string{registrations2, responses2, "app-on-subscription-store-changelog"}
	if !slices.Equal(names, want) {
		t.Errorf("names are %q, want %q", names, want)
	}
}

func TestEmptyRightValueIsAValue(t *testing.T) {
	r := newRig(t, func(b *Builder) {
		b.Table(texts, "l").JoinOn("on", b.Table(texts2, "r"), named, pair).To(out)
	})
	send(r, texts2, rec("x", "", 1))
	send(r, texts, rec("k", "x|", 2).WithHeader("h", nil))
	send(r, texts2, rec("x", "full", 3), rec("x", "", 4), del[string]("x", 5))
	var got []string
	for _, rec := range received(r, out) {
		got = append(got, fmt.Sprint(text(rec), " ", len(rec.Headers)))
	}
	if want := []string{"k=x|@2 1", "k=x|full@3 0", "k=x|@4 0", "k=-@5 0"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Two changes of a row are under way at once, and the answers come in the
// other order: the first answer is not for the row any more.
func TestAnswerToARowThatHasChangedIsLeftOut(t *testing.T) {
	for name, second := range map[string]Record[string, string]{
		"k=b|2RB@4": rec("k", "b|2", 4),
		"k=a|3RA@4": rec("k", "a|3", 4),
		"k=-@4":     del[string]("k", 4),
		"":          rec("k", "|none", 4), // the result of the first was never told
	} {
		r := newRig(t, func(b *Builder) {
			b.Table(texts, "l").JoinOn("on", b.Table(texts2, "r"), named, pair).To(out)
		})
		send(r, texts2, rec("a", "RA", 1), rec("b", "RB", 2))
		var between []*kgo.Record
		hold := func(k *kgo.Record) {
			for _, task := range r.sorted() {
				for i, topic := range task.Sub().Sources {
					if topic.FullName(rigApp) == k.Topic {
						r.must(r.process(task, i, k))
					}
				}
			}
			for _, task := range r.sorted() {
				for _, k := range task.Take() {
					c := *k
					if r.internal(k.Topic) {
						between = append(between, &c)
					} else {
						r.out = append(r.out, &c)
					}
				}
			}
		}
		hold(encode(r, texts, rec("k", "a|1", 3)))
		hold(encode(r, texts, second))
		for len(between) > 0 {
			k := between[0]
			between = between[1:]
			hold(k)
		}
		var got []string
		for _, rec := range received(r, out) {
			got = append(got, text(rec))
		}
		// A delete of what was never told may be told.
		if name == "" && fmt.Sprint(got) == "[k=-@4]" {
			continue
		}
		if strings.Join(got, " ") != name {
			t.Errorf("got %q, want %q", got, name)
		}
	}
}

// After each record and all that follows from it, what was sent is the join of
// the tables as they are, whatever commits, aborts and restarts come between.
func TestForeignKeyJoinsAreWhatTheirTablesSay(t *testing.T) {
	keys := []string{"a", "b", "ab", "c"}
	seen := func(_, v string) bool { return v != "z" }
	odd := func(_, v string) bool { return !strings.HasSuffix(v, "2") }
	rapid.Check(t, func(rt *rapid.T) {
		name := rapid.SampledFrom([]string{"inner", "left", "self", "kept", "again"}).Draw(rt, "join")
		left, right := NewTopic("left", codec.String, codec.String), NewTopic("right", codec.String, codec.String)
		partitions := map[string]int32{"left": 3, "right": 2}
		for _, name := range []string{"inner", "left", "self", "kept", "again"} {
			partitions["app-"+name+"-subscription-registration-topic"] = 2
			partitions["app-"+name+"-subscription-response-topic"] = 3
		}
		partitions["app-self-subscription-registration-topic"] = 3
		h := &history{rig: newRigOf(t, func(b *Builder) {
			l, r := b.Table(left, "l"), b.Table(right, "r").Filter(seen)
			keep := func() Table[string, string] {
				kept := l.Filter(odd).JoinOn("kept", r, named, func(l, r string) string { return r + "|" + l }).Stored("kept-rows")
				kept.GroupBy(func(_, v string) (string, string) { return v, "" }).Count("sizes", EmitEach())
				return kept
			}
			switch name {
			case "inner":
				l.JoinOn(name, r, named, pair).To(out)
			case "left":
				l.LeftJoinOn(name, r, named, leftOptional).To(out)
			case "self":
				l.LeftJoinOn(name, l, named, leftOptional).To(out)
			case "kept":
				keep().To(out)
			case "again":
				keep().LeftJoinOn(name, r, named, leftOptional).To(out)
			}
		}, partitions)}
		lefts, rights := map[string]string{}, map[string]string{}
		for range rapid.IntRange(1, 30).Draw(rt, "records") {
			k := rapid.SampledFrom(keys).Draw(rt, "key")
			ms := rapid.Int64Range(0, 100).Draw(rt, "time")
			topic, rows := left, lefts
			v := rapid.SampledFrom(append([]string{""}, keys...)).Draw(rt, "names") + "|" + rapid.SampledFrom([]string{"1", "2", "3"}).Draw(rt, "value")
			if rapid.Bool().Draw(rt, "right") {
				topic, rows = right, rights
				v = rapid.SampledFrom([]string{"", "a", "b", "z"}).Draw(rt, "row")
			}
			r := rec(k, v, ms)
			rows[k] = v
			if rapid.IntRange(0, 4).Draw(rt, "delete") == 0 {
				r = r.WithoutValue()
				delete(rows, k)
			}
			put(h, topic, r)

			shown := visibleOf(rights, seen)
			kept := map[string]string{}
			for k, v := range joinMapsOn(visibleOf(lefts, odd), shown, false) {
				l := lefts[k]
				kept[k] = strings.TrimPrefix(v, l) + "|" + l
			}
			want := map[string]map[string]string{
				"inner": joinMapsOn(lefts, shown, false),
				"left":  joinMapsOn(lefts, shown, true),
				"self":  joinMapsOn(lefts, lefts, true),
				"kept":  kept,
				"again": joinMapsOn(kept, shown, true),
			}
			told := &history{rig: h.rig, committed: append(slices.Clip(h.committed), h.out...)}
			same(rt, name, last(told, out), want[name])
			h.event(rt)
		}
		h.close()
		sizes := map[string]int64{}
		for _, task := range h.sorted() {
			if task.db.Part("kept-rows") != nil {
				kv, err := state.OpenKV(task.db, "kept-rows", codec.String, codec.String)
				h.must(err)
				for e, err := range kv.All() {
					h.must(err)
					sizes[e.Value]++
				}
			}
		}
		got := values(kept(h, "sizes", codec.String, codec.Int64))
		maps.DeleteFunc(got, func(_ string, n int64) bool { return n == 0 })
		same(rt, "rows counted", got, sizes)
	})
}

// joinMapsOn is the definition of a foreign-key join.
func joinMapsOn(left, right map[string]string, outer bool) map[string]string {
	joined := map[string]string{}
	for k, l := range left {
		name, ok := named(k, l)
		r, rok := right[name]
		if rok = rok && ok; rok || outer {
			joined[k] = leftOptional(l, r, rok)
		}
	}
	return joined
}
