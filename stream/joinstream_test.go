package stream

import (
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/state"
)

const (
	inner = "join-stream"
	left  = "left-join-stream"
	outer = "outer-join-stream"
)

// joinOf is a join of texts with texts2 to out, with + between the values and
// null for the missing one.
func joinOf(kind string, w JoinWindow, opts ...StoreOption) func(*Builder) {
	return func(b *Builder) {
		l, r := b.Stream(texts), b.Stream(texts2)
		var s Stream[string, string]
		switch kind {
		case inner:
			s = l.JoinStream("j", r, w, func(l, r string) string { return l + "+" + r }, opts...)
		case left:
			s = l.LeftJoinStream("j", r, w, func(l, r string, ok bool) string { return l + "+" + orNull(r, ok) }, opts...)
		default:
			s = l.OuterJoinStream("j", r, w, func(l string, lok bool, r string, rok bool) string {
				return orNull(l, lok) + "+" + orNull(r, rok)
			}, opts...)
		}
		s.To(out)
	}
}

func orNull(s string, ok bool) string {
	if !ok {
		return "null"
	}
	return s
}

func TestJOI01BothEdgesOfTheWindow(t *testing.T) {
	r := newRig(t, joinOf(inner, Within(10*ms, 11*ms)))
	send(r, texts, rec("k", "L100", 100))
	send(r, texts2, rec("k", "R110", 110), rec("k", "R111", 111), rec("k", "R90", 90), rec("k", "R89", 89))
	expect(r, out, "k=L100+R110@110", "k=L100+R90@100")
	send(r, texts, rec("k", "dup100", 100))
	expect(r, out, "k=dup100+R90@100", "k=dup100+R110@110")
	r.dropped("j: late") // R89, which is 22 behind R111
}

func TestJOI02OneSidedWindow(t *testing.T) {
	r := newRig(t, joinOf(inner, Between(0, 10*ms, 50*ms)))
	send(r, texts, rec("k", "L100", 100))
	send(r, texts2, rec("k", "R100", 100), rec("k", "R99", 99), rec("k", "R110", 110))
	expect(r, out, "k=L100+R100@100", "k=L100+R110@110")
}

func TestJOI03ZeroWidthWindow(t *testing.T) {
	for _, grace := range []time.Duration{5 * ms, 0} {
		r := newRig(t, joinOf(inner, Within(0, grace)))
		send(r, texts, rec("k", "L5", 5))
		send(r, texts2, rec("k", "R5", 5), rec("k", "R5b", 5))
		send(r, texts, rec("k", "L5b", 5))
		send(r, texts2, rec("k", "R6", 6))
		expect(r, out, "k=L5+R5@5", "k=L5+R5b@5", "k=L5b+R5@5", "k=L5b+R5b@5")
		r.dropped()
	}
}

func TestJOI04LeftJoinWaitsForTheWindowToClose(t *testing.T) {
	r := newRig(t, joinOf(left, Within(10*ms, 5*ms)))
	send(r, texts, rec("k", "L0", 0))
	send(r, texts2, rec("k", "R5", 5))
	expect(r, out, "k=L0+R5@5")
	send(r, texts, rec("q", "Q1", 1), rec("k", "x", 16))
	expect(r, out)
	send(r, texts, rec("k", "x2", 17))
	expect(r, out, "q=Q1+null@1")
}

func TestJOI06EachTaskHasATimeOfItsOwn(t *testing.T) {
	r := newRigOf(t, joinOf(outer, Within(10*ms, 0)), map[string]int32{"texts": 2, "texts2": 2})
	a, b := keyIn(0), keyIn(1)
	send(r, texts, rec(a, "a", 0), rec(b, "b", 0), rec(a, "tick", 1000))
	send(r, texts2, rec(b, "b'", 5))
	expect(r, out, a+"=a+null@0", b+"=b+b'@5")
}

// keyIn is a key of a partition of two.
func keyIn(partition int32) string {
	for c := 'a'; ; c++ {
		if partitionOf([]byte(string(c)), 2) == partition {
			return string(c)
		}
	}
}

func TestJOI07NullKeysAndNullValues(t *testing.T) {
	r := newRig(t, joinOf(left, Within(10*ms, 5*ms)))
	send(r, texts, unkeyed[string]("L0", 0), del[string]("k", 1))
	send(r, texts2, unkeyed[string]("R", 2), del[string]("k", 3))
	send(r, texts, rec("t", "tick", 40))
	expect(r, out, "-=L0+null@0")
	r.dropped("j: tombstone", "j: no key", "j: tombstone")

	r = newRig(t, joinOf(inner, Within(10*ms, 5*ms)))
	send(r, texts, rec("k", "", 1))
	send(r, texts2, rec("k", "", 2))
	expect(r, out, "k=+@2")
	r.dropped()
}

func TestOuterJoinPassesRecordsWithoutKeyOfBothSides(t *testing.T) {
	r := newRig(t, joinOf(outer, Within(10*ms, 5*ms)))
	send(r, texts, unkeyed[string]("L", 100), unkeyed[string]("late", 1))
	send(r, texts2, unkeyed[string]("R", 0))
	expect(r, out, "-=L+null@100", "-=late+null@1", "-=null+R@0")
	r.dropped()
	send(r, texts, rec("k", "late", 84)) // time is 100 by the record without key
	r.dropped("j: late")
}

// PAY-style: an authorization without a capture, and one with two.
func TestALeftJoinSendsEachPairOnceAndTheRestOnce(t *testing.T) {
	r := newRig(t, joinOf(left, Within(100*ms, 0)))
	send(r, texts, rec("p1", "auth", 1000))
	send(r, texts2, rec("p1", "cap1", 1050), rec("p1", "cap2", 1060))
	send(r, texts, rec("p2", "auth", 1070), rec("t", "tick", 1171), rec("t", "tick2", 1300))
	expect(r, out, "p1=auth+cap1@1050", "p1=auth+cap2@1060", "p2=auth+null@1070", "t=tick+null@1171")
}

func TestALateRecordJoinsNothingAndIsNotKept(t *testing.T) {
	for _, kind := range []string{inner, left, outer} {
		r := newRig(t, joinOf(kind, Within(10*ms, 5*ms)))
		send(r, texts, rec("k", "L0", 0))
		send(r, texts2, rec("k", "R0", 0), rec("j", "now", 16))
		expect(r, out, "k=L0+R0@0")
		send(r, texts, rec("k", "late", 0))
		send(r, texts2, rec("k", "in time", 1))
		expect(r, out, "k=L0+in time@1")
		r.dropped("j: late")
	}
}

func TestAnOutOfOrderRecordInGraceWaits(t *testing.T) { // KAFKA-19536
	r := newRig(t, joinOf(left, Within(10*ms, 100*ms)))
	send(r, texts, rec("k1", "L", 50), rec("k2", "L", 0))
	expect(r, out)
	send(r, texts2, rec("k2", "R", 5))
	expect(r, out, "k2=L+R@5")
	send(r, texts2, rec("t", "tick", 161))
	expect(r, out, "k1=L+null@50")
}

// A window closes for the older of two records first. What was sent alone then
// is sent in no pair, in this transaction or a later one, and no less when the
// task was moved in between.
func TestNoPairComesAfterItsHalfWasSentAlone(t *testing.T) {
	for _, between := range []func(*history){
		func(*history) {}, (*history).close, func(h *history) { h.close(); h.move() },
	} {
		h := newHistory(t, joinOf(outer, Within(10*ms, 0)))
		put(h, texts, rec("k", "L0", 0))
		put(h, texts2, rec("k", "paired", 0))
		put(h, texts, rec("k", "L8", 8))
		put(h, texts, rec("q", "L1", 1))
		between(h)
		put(h, texts, rec("t", "tick", 12)) // L1 is closed
		between(h)
		put(h, texts2, rec("q", "R11", 11))
		put(h, texts2, rec("k", "R10", 10)) // L0 is closed, but was in a pair
		between(h)
		put(h, texts, rec("t", "tock", 100))
		h.close()
		want := []string{"k=L0+paired@0", "k=L8+paired@8", "q=L1+null@1", "k=L0+R10@10", "k=L8+R10@10", "q=null+R11@11", "t=tick+null@12"}
		if got := sent(h, out); !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestWhatIsSentAloneHasItsOwnHeadersAndPairsThoseOfTheSecond(t *testing.T) { // KAFKA-20413
	for _, kind := range []string{left, outer} {
		h := newHistory(t, joinOf(kind, Within(10*ms, 0)))
		from := func(r Record[string, string], v string) Record[string, string] {
			return r.WithHeader("from", []byte(v)).WithHeader("null", nil)
		}
		put(h, texts, from(rec("k", "a", 0), "a"))
		put(h, texts, rec("k", "none", 0))
		put(h, texts, from(rec("k", "b", 0), "b"))
		put(h, texts, from(rec("p", "p", 0), "p"))
		h.close()
		h.move()
		put(h, texts2, from(rec("p", "q", 11), "late q"))
		put(h, texts, from(rec("p", "r", 12), "r"))
		h.close()
		var got []string
		for _, k := range h.committed {
			r := decode(h.rig, out, k)
			v, _ := r.Headers.Last("from")
			got = append(got, fmt.Sprintf("%s %s %d", text(r), v, len(r.Headers)))
		}
		want := []string{"k=a+null@0 a 2", "k=none+null@0  0", "k=b+null@0 b 2", "p=p+null@0 p 2", "p=r+q@12 r 2"}
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", kind, got, want)
		}
	}
}

func TestASelfJoinPairsARecordWithItselfAndAllOthers(t *testing.T) {
	r := newRig(t, func(b *Builder) {
		s := b.Stream(texts)
		s.JoinStream("j", s, Within(10*ms, 5*ms), func(l, r string) string { return l + "+" + r }).To(out)
		s.OuterJoinStream("o", s, Between(1*ms, 10*ms, 0), func(l string, lok bool, r string, rok bool) string {
			return orNull(l, lok) + "+" + orNull(r, rok)
		}).To(out2)
	})
	send(r, texts, rec("k", "A", 10), rec("k", "B", 15), rec("k", "C", 100))
	expect(r, out, "k=A+A@10", "k=B+A@15", "k=A+B@15", "k=B+B@15", "k=C+C@100")
	expect(r, out2, "k=null+A@10", "k=A+B@15", "k=B+null@15")
}

// In a window that lies all before or after a record that record is not late
// when it comes in order.
func TestPartnersMayBeAskedToBeOlder(t *testing.T) {
	r := newRig(t, joinOf(outer, Between(2*ms, 10*ms, 0)))
	send(r, texts, rec("k", "L0", 0))
	send(r, texts2, rec("k", "R1", 1), rec("k", "R2", 2), rec("k", "R10", 10), rec("k", "R11", 11))
	expect(r, out, "k=null+R1@1", "k=L0+R2@2", "k=L0+R10@10")
	send(r, texts2, rec("k", "R12", 12))
	expect(r, out, "k=null+R11@11")
	r.dropped()
}

func TestAJoinWithNoMoreRoomInTime(t *testing.T) {
	const last = 1<<63 - 1
	r := newRig(t, joinOf(outer, Within(10*ms, 5*ms)))
	send(r, texts, rec("k", "first", 0))
	send(r, texts2, rec("k", "first", 3))
	expect(r, out, "k=first+first@3")
	max := time.UnixMilli(last)
	send(r, texts, Record[string, string]{Key: "k", Value: "last", Time: max})
	send(r, texts2, Record[string, string]{Key: "k", Value: "last", Time: max})
	if got := received(r, out); len(got) != 1 || got[0].Value != "last+last" {
		t.Errorf("got %v", got)
	}
}

func TestAFailedRecordLeavesTheJoinAsItWas(t *testing.T) {
	fails := func(l, r string, ok bool) string {
		if r == "bad" {
			panic("as told")
		}
		return l + "+" + orNull(r, ok)
	}
	h := newHistory(t, func(b *Builder) {
		b.Stream(texts).LeftJoinStream("j", b.Stream(texts2), Within(10*ms, 0), fails, OnError(Skip)).To(out)
	})
	put(h, texts, rec("a", "A", 0))
	put(h, texts, rec("b", "B", 10))
	put(h, texts2, rec("b", "bad", 11)) // it has sent A by then
	put(h, texts2, rec("b", "good", 11))
	put(h, texts, rec("t", "tick", 30))
	h.close()
	want := []string{"a=A+null@0", "b=B+good@11"}
	if got := sent(h, out); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestStreamsThatChangedTheirKeyAreRepartitionedUnderTheStoresName(t *testing.T) {
	byValue := func(r Record[string, string]) Record[string, string] {
		if r.Value == "" {
			return r.WithoutKey()
		}
		return r.WithKey(r.Value[:1])
	}
	r := newRig(t, func(b *Builder) {
		l, r := b.Stream(texts).MapRecords(byValue), b.Stream(texts2).MapRecords(byValue)
		l.LeftJoinStream("j", r, Within(10*ms, 0), func(l, r string, ok bool) string { return l + "+" + orNull(r, ok) }).To(out)
	})
	send(r, texts, rec("", "xl", 0), rec("", "", 1))
	send(r, texts2, rec("", "xr", 2), rec("", "", 3))
	expect(r, out, "-=+null@1", "x=xl+xr@2")
	var internal []string
	for _, topic := range r.top.graph.Topics {
		if topic.Internal {
			internal = append(internal, topic.FullName("app"))
		}
	}
	if want := []string{"app-j-left-repartition", "app-j-right-repartition"}; !slices.Equal(internal, want) {
		t.Errorf("topics %q", internal)
	}
	if groups := r.top.graph.Subs; len(groups[len(groups)-1].Copart) != 1 {
		t.Errorf("not partitioned alike: %v", groups)
	}
}

func TestTheStoresOfJoinsHaveTheNamesOfKafkaStreams(t *testing.T) {
	for kind, want := range map[string]string{
		inner: "j-this-join-store j-other-join-store",
		left:  "j-this-join-store j-outer-other-join-store j-left-shared-join-store",
		outer: "j-outer-this-join-store j-outer-other-join-store j-outer-shared-join-store",
	} {
		top, err := Build(joinOf(kind, Between(-3*ms, 12*ms, 4*ms)))
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, s := range top.graph.Stores {
			names = append(names, s.Name)
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%s: stores %s, want %s", kind, got, want)
		}
		if s := top.graph.Stores[0]; s.Retain != 3+12+4 || !s.Duplicates || !s.ByKey {
			t.Errorf("%s: store %+v", kind, s)
		}
	}
}

func TestCodecsOfAJoinAreForTheSidesTheyFit(t *testing.T) {
	reversed := codec.Via(codec.Int64, func(n int64) int64 { return -n }, func(n int64) (int64, error) { return -n, nil })
	r := newRig(t, func(b *Builder) {
		b.Stream(texts).JoinStream("j", b.Stream(ints), Within(10*ms, 0), func(l string, r int64) string { return l + fmt.Sprint(r) },
			ValueCodec(reversed)).To(out)
	})
	send(r, ints, rec("k", int64(7), 1))
	for _, task := range r.sorted() {
		r.must(task.db.Changes(func(p *state.Part, key, value []byte, ms int64) error {
			if got := hex.EncodeToString(value); got != "fffffffffffffff9" {
				t.Errorf("the right side was written as %s", got)
			}
			return nil
		}))
	}
	send(r, texts, rec("k", "x", 1))
	expect(r, out, "k=x7@1")
}

// The same input as that of Kafka Streams gives the same changelogs, and what
// it left behind goes on.
func TestAJoinWritesTheChangelogsOfKafkaStreams(t *testing.T) {
	stores := map[string]string{
		"j-this-join-store": "join-window-left", "j-outer-other-join-store": "join-window-right", "j-left-shared-join-store": "join-left-shared",
	}
	r := newRig(t, joinOf(left, Within(5*time.Second, 3*time.Second)))
	got := map[string][]string{}
	at := func(ms int64) int64 { return 1795996800000 + ms }
	feed := func(topic Topic[string, string], key, value string, ms int64) {
		send(r, topic, rec(key, value, at(ms)))
		task := r.sorted()[0]
		r.must(task.db.Changes(func(p *state.Part, key, value []byte, ms int64) error {
			name := stores[storeName(task.db, task.Sub(), p)]
			got[name] = append(got[name], showLogged(hex.EncodeToString(key), value, ms))
			return nil
		}))
		r.commit()
	}
	feed(texts, "a", "la1", 1000)
	feed(texts, "a", "la2", 1000)
	feed(texts2, "a", "ra1", 1500)
	feed(texts, "b", "lb1", 2000)
	feed(texts, "b", "lb2", 2000)
	feed(texts2, "c", "rc1", 2500)
	feed(texts, "n1", "Nl", 2600)
	feed(texts2, "a", "ra2", 3000)
	for name, n := range map[string]int{"join-window-left": 5, "join-window-right": 3, "join-left-shared": 6} {
		var want []string
		for _, l := range logged(t, name)[:n] {
			var value []byte
			if l.Value != nil {
				value = unhex(t, *l.Value)
			}
			want = append(want, showLogged(l.Key, value, l.Ms))
		}
		if !slices.Equal(got[name], want) {
			t.Errorf("%s:\n got %q\nwant %q", name, got[name], want)
		}
	}
}

func showLogged(key string, value []byte, ms int64) string {
	if value == nil {
		return fmt.Sprintf("%s=null@%d", key, ms)
	}
	return fmt.Sprintf("%s=%x@%d", key, value, ms)
}

func TestAStreamOfAnotherBuilderCannotBeJoined(t *testing.T) {
	var other Stream[string, string]
	if _, err := Build(func(b *Builder) { other = b.Stream(texts2); other.To(out) }); err != nil {
		t.Fatal(err)
	}
	_, err := Build(func(b *Builder) {
		b.Stream(texts).JoinStream("j", other, Within(10*ms, 0), func(l, r string) string { return l + r }).To(out)
	})
	if err == nil || !strings.Contains(err.Error(), "another Builder") {
		t.Errorf("got %v", err)
	}
	if errors.Is(err, ErrIncompatible) {
		t.Error("it is a mistake of the topology")
	}
}
