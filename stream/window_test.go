package stream

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/stream/internal/graph"
)

var (
	windowCounts = NewTopic("windows", WindowKey(codec.String, 10*time.Millisecond), codec.Int64)
	windowTexts  = NewTopic("windows", WindowKey(codec.String, 10*time.Millisecond), codec.String)
)

// short is a windowed key as tests print it: a[0,10).
func (w Windowed[K]) short() string {
	return fmt.Sprintf("%v[%d,%d)", w.Key, w.Start.UnixMilli(), w.End.UnixMilli())
}

// windows are the records written to topic since the last look, as
// "key[start,end)=value@ms".
func windows[K, V any](r *rig, topic Topic[Windowed[K], V]) []string {
	r.t.Helper()
	var got []string
	for _, rec := range received(r, topic) {
		v := fmt.Sprint(rec.Value)
		if rec.NoValue {
			v = "-"
		}
		got = append(got, fmt.Sprintf("%s=%s@%d", rec.Key.short(), v, rec.Time.UnixMilli()))
	}
	return got
}

func expectSpans[K, V any](r *rig, topic Topic[Windowed[K], V], want ...string) {
	r.t.Helper()
	if got := windows(r, topic); !slices.Equal(got, want) {
		r.t.Errorf("%s got\n\t%q, want\n\t%q", topic.Name, got, want)
	}
}

// countIn is a count of texts in windows, each update told.
func countIn(w Windows, opts ...WindowOption) func(b *Builder) {
	return func(b *Builder) {
		b.Stream(texts).GroupByKey().Windowed(w).Count("n", append(opts, EmitEach())...).To(windowCounts)
	}
}

func finalIn(w Windows, opts ...BufferOption) func(b *Builder) {
	return func(b *Builder) {
		b.Stream(texts).GroupByKey().Windowed(w).Count("n").Final(opts...).To(windowCounts)
	}
}

// sendAt sends records of key at times, with the value "x".
func sendAt(r *rig, key string, times ...int64) {
	r.t.Helper()
	for _, ms := range times {
		send(r, texts, rec(key, "x", ms))
	}
}

func TestWIN01TumblingEdges(t *testing.T) {
	seconds := NewTopic("windows", WindowKey(codec.String, 10*time.Second), codec.Int64)
	r := newRig(t, func(b *Builder) {
		b.Stream(texts).GroupByKey().Windowed(Tumbling(10*time.Second, 0)).Count("n", EmitEach()).To(seconds)
	})
	sendAt(r, "k", 0, 9999, 10000, 9999)
	expectSpans(r, seconds, "k[0,10000)=1@0", "k[0,10000)=2@9999", "k[10000,20000)=1@10000")
	r.dropped("n: late")
}

func TestWIN02GraceEdge(t *testing.T) {
	r := newRig(t, countIn(Tumbling(10*ms, 5*ms)))
	sendAt(r, "k", 9, 14, 9, 15, 9)
	expectSpans(r, windowCounts, "k[0,10)=1@9", "k[10,20)=1@14", "k[0,10)=2@9", "k[10,20)=2@15")
	r.dropped("n: late")
}

func TestWIN03HoppingNearZeroAndANonDividingAdvance(t *testing.T) {
	r := newRig(t, countIn(Hopping(10*ms, 5*ms, 0)))
	sendAt(r, "k", 0, 3, 5, 10, 12)
	expectSpans(r, windowCounts, "k[0,10)=1@0", "k[0,10)=2@3", "k[0,10)=3@5", "k[5,15)=1@5",
		"k[5,15)=2@10", "k[10,20)=1@10", "k[5,15)=3@12", "k[10,20)=2@12")
	r = newRig(t, countIn(Hopping(10*ms, 3*ms, 0)))
	sendAt(r, "k", 10)
	expectSpans(r, windowCounts, "k[3,13)=1@10", "k[6,16)=1@10", "k[9,19)=1@10")
}

func TestWIN04HoppingPartlyLate(t *testing.T) {
	r := newRig(t, countIn(Hopping(10*ms, 5*ms, 0)))
	sendAt(r, "k", 10, 8, 4)
	expectSpans(r, windowCounts, "k[5,15)=1@10", "k[10,20)=1@10", "k[5,15)=2@10")
	r.dropped("n: late", "n: late") // [0,10) twice
}

// What WIN-10 asks for beyond this, a bound to the future, is Topic.EventTime's
// to set: false drops the record.
func TestWIN10OneRecordFromTheFarFutureMakesOthersLate(t *testing.T) {
	minutes := NewTopic("windows", WindowKey(codec.String, time.Minute), codec.Int64)
	define := func(from Topic[string, string]) func(*Builder) {
		return func(b *Builder) {
			b.Stream(from).GroupByKey().Windowed(Tumbling(time.Minute, time.Minute)).Count("n", EmitEach()).To(minutes)
		}
	}
	feedAll := func(r *rig) {
		sendAt(r, "k", 1700000000000)
		sendAt(r, "bad", 1700000000000000) // microseconds
		sendAt(r, "k", 1700000030000, 1700000060000)
	}
	r := newRig(t, define(texts))
	feedAll(r)
	expectSpans(r, minutes, "k[1699999980000,1700000040000)=1@1700000000000", "bad[1699999999980000,1700000000040000)=1@1700000000000000")
	r.dropped("n: late", "n: late")

	r = newRig(t, define(texts.EventTime(func(rec Record[string, string], latest time.Time) (time.Time, bool) {
		return rec.Time, latest.IsZero() || rec.Time.Sub(latest) <= time.Hour
	})))
	feedAll(r)
	expectSpans(r, minutes, "k[1699999980000,1700000040000)=1@1700000000000",
		"k[1699999980000,1700000040000)=2@1700000030000", "k[1700000040000,1700000100000)=1@1700000060000")
	r.dropped("source-1: no time")
}

func TestWIN11SecondsSentAsMilliseconds(t *testing.T) {
	hours := NewTopic("windows", WindowKey(codec.String, time.Hour), codec.Int64)
	r := newRig(t, func(b *Builder) {
		b.Stream(texts).GroupByKey().Windowed(Tumbling(time.Hour, 5*time.Minute)).Count("n", EmitEach()).To(hours)
	})
	sendAt(r, "k", 1700000000000, 1700000000, 1700000001000)
	expectSpans(r, hours, "k[1699999200000,1700002800000)=1@1700000000000", "k[1699999200000,1700002800000)=2@1700000001000")
	r.dropped("n: late")
}

func TestWIN12FinalResultsOnlyWhenClosed(t *testing.T) {
	r := newRig(t, finalIn(Tumbling(10*ms, 5*ms)))
	sendAt(r, "k", 1, 9, 14, 8)
	expectSpans(r, windowCounts)
	sendAt(r, "z", 15)
	expectSpans(r, windowCounts, "k[0,10)=3@9")
	sendAt(r, "z", 24)
	expectSpans(r, windowCounts)
	sendAt(r, "z", 25)
	expectSpans(r, windowCounts, "k[10,20)=1@14", "z[10,20)=1@15")
	r.must(r.advance(10 * time.Second)) // nothing closes without records
	r.commit()
	expectSpans(r, windowCounts)
}

func TestWIN13NoSecondFinalForLateRecords(t *testing.T) {
	r := newRig(t, finalIn(Tumbling(10*ms, 5*ms)))
	sendAt(r, "k", 1)
	sendAt(r, "z", 15)
	sendAt(r, "k", 2)
	sendAt(r, "z", 16)
	r.commit()
	expectSpans(r, windowCounts, "k[0,10)=1@1")
	r.dropped("n: late")
}

func TestWIN14NullsAreNoPartOfAWindow(t *testing.T) {
	r := newRig(t, countIn(Tumbling(10*ms, 0)))
	send(r, texts, del[string]("k", 1), rec("k", "x", 100), del[string]("k", 105), unkeyed[string]("x", 500), rec("k", "x", 101))
	expectSpans(r, windowCounts, "k[100,110)=1@100", "k[100,110)=2@101") // what was dropped moved no time
	r.dropped("n: tombstone", "n: tombstone", "n: no key")
}

func days(zone *time.Location) func(time.Time) []Window {
	return func(t time.Time) []Window {
		y, m, d := t.In(zone).Date()
		return []Window{{time.Date(y, m, d, 0, 0, 0, 0, zone), time.Date(y, m, d+1, 0, 0, 0, 0, zone)}}
	}
}

func TestWIN15LocalTimeDays(t *testing.T) {
	winter := time.FixedZone("UTC+1", 3600)
	// The day on which the clock goes from UTC+1 to UTC+2 has 23 hours.
	cut := func(t time.Time) []Window {
		change, next := time.UnixMilli(1711839600000), time.UnixMilli(1711922400000)
		if !t.Before(change) && t.Before(next) {
			return []Window{{change, next}}
		}
		return days(winter)(t)
	}
	for _, c := range []struct {
		name string
		w    Windows
		want []string
	}{
		{"UTC", Tumbling(24*time.Hour, 0), []string{
			"k[1711756800000,1711843200000)=1@1711839600000", "k[1711756800000,1711843200000)=2@1711843199999", "k[1711843200000,1711929600000)=1@1711843200000",
		}},
		{"Paris", Custom(25*time.Hour, 0, cut), []string{
			"k[1711839600000,1711922400000)=1@1711839600000", "k[1711839600000,1711922400000)=2@1711843199999", "k[1711839600000,1711922400000)=3@1711843200000",
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, func(b *Builder) {
				b.Stream(texts).GroupByKey().Windowed(c.w).Count("n", EmitEach()).
					ToStream(func(w Windowed[string]) string { return w.short() }).To(intOut)
			})
			sendAt(r, "k", 1711839600000, 1711843199999, 1711843200000)
			expect(r, intOut, c.want...)
		})
	}
}

func TestWIN16EachPartitionHasItsOwnTime(t *testing.T) {
	r := newRigOf(t, countIn(Tumbling(10*ms, 0)), map[string]int32{"texts": 2, "windows": 2})
	a, b := inPartition(0), inPartition(1)
	sendAt(r, a, 0, 1000)
	sendAt(r, b, 5)
	expectSpans(r, windowCounts, a+"[0,10)=1@0", a+"[1000,1010)=1@1000", b+"[0,10)=1@5")
	r.dropped()
}

// inPartition is a key in partition p of 2.
func inPartition(p int32) string {
	for i := 0; ; i++ {
		if k := fmt.Sprint("k", i); partitionOf([]byte(k), 2) == p {
			return k
		}
	}
}

func TestWindowsAreToldOncePerTransaction(t *testing.T) {
	r := newRig(t, func(b *Builder) {
		b.Stream(texts).GroupByKey().Windowed(Hopping(10*ms, 5*ms, 10*ms)).Count("n").To(windowCounts)
	})
	sendAt(r, "k", 7, 3, 8)
	expectSpans(r, windowCounts)
	r.commit()
	expectSpans(r, windowCounts, "k[0,10)=3@8", "k[5,15)=2@8")
	sendAt(r, "k", 9)
	r.abort()
	sendAt(r, "k", 4)
	r.commit()
	expectSpans(r, windowCounts, "k[0,10)=4@8")
}

func TestWindowsKeepTheHeadersOfTheLastRecord(t *testing.T) {
	for _, opts := range [][]WindowOption{nil, {EmitEach()}} {
		r := newRig(t, func(b *Builder) {
			b.Stream(texts).GroupByKey().Windowed(Tumbling(10*ms, 0)).Count("n", opts...).To(windowCounts)
		})
		send(r, texts, rec("k", "x", 1).WithHeader("h", []byte("1")), rec("k", "x", 2).WithHeader("h", []byte("2")))
		r.commit()
		got := received(r, windowCounts)
		if h, _ := got[len(got)-1].Headers.Last("h"); string(h) != "2" {
			t.Errorf("headers are %v", got[len(got)-1].Headers)
		}
	}
}

func TestWindowRowThatIsDeletedLeavesAsATombstone(t *testing.T) {
	r := newRig(t, func(b *Builder) {
		b.Stream(texts).GroupByKey().Windowed(Tumbling(10*ms, 0)).Update("rows", appendOrDelete, EmitEach()).To(windowTexts)
	})
	send(r, texts, rec("a", "x", 9), rec("a", "-", 3), rec("a", "y", 4), rec("b", "-", 5))
	expectSpans(r, windowTexts, "a[0,10)=x@9", "a[0,10)=-@9", "a[0,10)=y@4", "b[0,10)=-@5")
}

func TestAWindowOfADeletedRowHasNoFinal(t *testing.T) {
	r := newRig(t, func(b *Builder) {
		b.Stream(texts).GroupByKey().Windowed(Tumbling(10*ms, 0)).Update("rows", appendOrDelete).Final().To(windowTexts)
	})
	send(r, texts, rec("a", "x", 9), rec("a", "-", 3), rec("b", "y", 4), rec("b", "z", 20))
	expectSpans(r, windowTexts, "b[0,10)=y@4")
}

func TestOneUnlimitedWindowTakesAllFromItsStartOn(t *testing.T) {
	r := newRig(t, func(b *Builder) {
		b.Stream(texts).GroupByKey().Windowed(Unlimited(time.UnixMilli(5))).Count("n", EmitEach()).
			ToStream(func(w Windowed[string]) string { return w.short() }).To(intOut)
	})
	sendAt(r, "k", 1<<50, 5, 4)
	expect(r, intOut, fmt.Sprintf("k[5,%d)=1@%d", int64(math.MaxInt64), int64(1)<<50), fmt.Sprintf("k[5,%d)=2@%d", int64(math.MaxInt64), int64(1)<<50))
	r.dropped("n: no window")
}

func TestCustomWindowsThatAreNoneFailTheRecord(t *testing.T) {
	at := func(from, to int64) Window { return Window{time.UnixMilli(from), time.UnixMilli(to)} }
	for name, cut := range map[string]func(time.Time) []Window{
		"longer than longest":     func(time.Time) []Window { return []Window{at(0, 101)} },
		"another time's":          func(time.Time) []Window { return []Window{at(0, 5)} },
		"no length":               func(time.Time) []Window { return []Window{at(5, 5)} },
		"before all time":         func(time.Time) []Window { return []Window{at(-5, 50)} },
		"two from one start":      func(time.Time) []Window { return []Window{at(0, 50), at(0, 60)} },
		"between milliseconds":    func(time.Time) []Window { return []Window{{time.UnixMicro(1), time.UnixMilli(50)}} },
		"another at its start":    func(t time.Time) []Window { return []Window{at(0, 50+t.UnixMilli())} },
		"none at its start":       func(t time.Time) []Window { return []Window{at(1, 50)}[:min(t.UnixMilli()/5, 1)] },
		"a function that panics":  func(time.Time) []Window { panic("no") },
		"a start that is not set": func(time.Time) []Window { return []Window{{End: time.UnixMilli(50)}} },
	} {
		r := newRig(t, func(b *Builder) {
			b.Stream(texts).GroupByKey().Windowed(Custom(100*ms, 0, cut)).Count("n").Unwindowed().To(intOut)
		})
		if err := feed(r, texts, rec("k", "x", 7)); err == nil {
			t.Errorf("%s: no failure", name)
		}
	}
}

// Shifts of different lengths, which overlap.
func TestCustomWindowsOfDifferentLengthsCloseInOrderOfTheirEnds(t *testing.T) {
	at := func(from, to int64) Window { return Window{time.UnixMilli(from), time.UnixMilli(to)} }
	cut := func(t time.Time) (ws []Window) {
		ms := t.UnixMilli()
		day := ms / 100 * 100
		ws = append(ws, at(day, day+100))
		if h := day + 10; ms >= h && ms < h+20 {
			ws = append(ws, at(h, h+20))
		}
		return ws
	}
	r := newRig(t, func(b *Builder) {
		b.Stream(texts).GroupByKey().Windowed(Custom(100*ms, 5*ms, cut)).Count("n").Final().
			ToStream(func(w Windowed[string]) string { return w.short() }).To(intOut)
	})
	sendAt(r, "k", 15, 34)
	expect(r, intOut)
	r.commit()
	r.move() // the hint of what closes next is found again
	sendAt(r, "k", 35)
	expect(r, intOut, "k[10,30)=1@15")
	sendAt(r, "k", 120, 290)
	expect(r, intOut, "k[0,100)=3@35", "k[110,130)=1@120", "k[100,200)=1@120")
}

func TestUnwindowedStaysInItsPartition(t *testing.T) {
	subs := func(define func(*Builder)) int {
		top, err := Build(define)
		if err != nil {
			t.Fatal(err)
		}
		return len(top.graph.Subs)
	}
	if n := subs(func(b *Builder) {
		b.Stream(texts).GroupByKey().Windowed(Tumbling(10*ms, 0)).Count("n").Unwindowed().GroupByKey().Count("m")
	}); n != 1 {
		t.Errorf("%d sub-topologies, want 1", n)
	}
	if n := subs(func(b *Builder) {
		b.Stream(texts).GroupByKey().Windowed(Tumbling(10*ms, 0)).Count("n").ToStream(KeepWindow).GroupByKey().Count("m")
	}); n != 2 {
		t.Errorf("%d sub-topologies behind a key of the user's, want 2", n)
	}
}

// The windows of a key are together in a topic of the user's, and spread in a
// repartition topic.
func TestWindowedKeysGoToThePartitionOfTheirKey(t *testing.T) {
	r := newRigOf(t, func(b *Builder) {
		n := b.Stream(texts).GroupByKey().Windowed(Tumbling(10*ms, 0)).Count("n", EmitEach())
		n.To(windowCounts)
		n.ToStream(KeepWindow).Repartition("spread").To(windowCounts.Named("spread"))
	}, map[string]int32{"windows": 7, "app-spread-repartition": 7, "spread": 7})
	seen := map[string]map[int32]bool{}
	for _, sub := range r.top.graph.Subs {
		for _, s := range sub.Sinks {
			seen[s.FullName(rigApp)] = map[int32]bool{}
		}
	}
	task := r.sorted()[0]
	for ms := int64(0); ms < 300; ms += 10 {
		r.must(task.Process(task.in, 0, encode(r, texts, rec("k", "x", ms)), ms))
		for _, k := range task.Take() {
			seen[k.Topic][k.Partition] = true
		}
	}
	want := partitionOf([]byte("k"), 7)
	if got := seen["windows"]; len(got) != 1 || !got[want] {
		t.Errorf("the user's topic has them in partitions %v, want %d", got, want)
	}
	if got := seen["app-spread-repartition"]; len(got) < 3 {
		t.Errorf("the repartition topic has them in partitions %v only", got)
	}
}

// A change of windows is told with the value before, so that groups add up.
func TestWindowsGroupedAnewTakeBackWhatTheyWere(t *testing.T) {
	r := newRig(t, func(b *Builder) {
		b.Stream(texts).GroupByKey().Windowed(Hopping(10*ms, 5*ms, 10*ms)).Count("n").
			Filter(func(_ Windowed[string], n int64) bool { return n > 1 }).
			MapValues(func(n int64) int64 { return n * 10 }).
			GroupBy(func(w Windowed[string], n int64) (string, int64) { return w.Key, n }).
			Reduce("sum", func(a, b int64) int64 { return a + b }, func(a, b int64) int64 { return a - b }).
			To(intOut)
	})
	sendAt(r, "k", 7, 8, 3)
	r.commit()
	expect(r, intOut, "k=50@8")
	sendAt(r, "k", 4)
	r.commit()
	expect(r, intOut, "k=60@8")
}

func TestRowsMakesWindowsATable(t *testing.T) {
	r := newRig(t, func(b *Builder) {
		Rows(b.Stream(texts).GroupByKey().Windowed(Tumbling(10*ms, 0)).Count("n")).
			MapOrDelete(func(w Windowed[string], n int64) (string, bool) { return w.short(), n > 1 }).
			Stored("kept").
			ToStream().SelectKey(func(_ Windowed[string], v string) string { return v }).To(out)
	})
	sendAt(r, "k", 1, 2)
	sendAt(r, "l", 3)
	r.commit()
	expect(r, out, "k[0,10)=k[0,10)@2")
}

func TestProcessorsReadWindowsOnlyThroughAStoreOfTheirOwn(t *testing.T) {
	_, err := Build(func(b *Builder) {
		n := Rows(b.Stream(texts).GroupByKey().Windowed(Tumbling(10*ms, 0)).Count("n"))
		b.Stream(texts).Process(func(*Context[string, string], Record[string, string]) error { return nil }, Uses(n)).To(out)
	})
	if err == nil || !strings.Contains(err.Error(), ".Stored(") {
		t.Errorf("%v", err)
	}
}

// A record that fails behind a window takes the window's time back with it.
func TestARecordThatFailsBehindAWindowChangesNothing(t *testing.T) {
	r := newRig(t, func(b *Builder) {
		n := b.Stream(texts).GroupByKey().Windowed(Tumbling(10*ms, 0)).Count("n", EmitEach())
		n.MapValues(func(v int64) int64 {
			if v == 3 {
				panic("three")
			}
			return v
		}).To(windowCounts)
		n.Final().Unwindowed().To(intOut)
	})
	r.policy = ErrorPolicy(Skip).runtime(rigApp)
	sendAt(r, "k", 1, 2, 3)
	expectSpans(r, windowCounts, "k[0,10)=1@1", "k[0,10)=2@2")
	sendAt(r, "l", 10)
	expect(r, intOut, "k=2@2")
}

func TestAFinalThatFailsIsTakenBackAlone(t *testing.T) {
	boom := errors.New("no")
	r := newRig(t, func(b *Builder) {
		b.Stream(texts).GroupByKey().Windowed(Tumbling(10*ms, 0)).Count("n").Final().Unwindowed().
			Process(func(c *Context[string, int64], rec Record[string, int64]) error {
				if rec.Key == "bad" {
					return boom
				}
				return c.Emit(rec)
			}).To(intOut)
	})
	sendAt(r, "bad", 1)
	err := feed(r, texts, rec("l", "x", 10))
	if !errors.Is(err, boom) {
		t.Errorf("%v", err)
	}
}

func TestFinalsAreSentOnceWhateverIsLost(t *testing.T) {
	r := newRig(t, finalIn(Tumbling(10*ms, 0)))
	sendAt(r, "a", 1)
	sendAt(r, "b", 11)
	expectSpans(r, windowCounts, "a[0,10)=1@1")
	r.abort() // it comes again
	sendAt(r, "a", 1)
	sendAt(r, "b", 11)
	r.commit()
	expectSpans(r, windowCounts, "a[0,10)=1@1")
	r.move()
	sendAt(r, "a", 21)
	r.commit()
	expectSpans(r, windowCounts, "b[10,20)=1@11")
}

// The reference loses a final whose window expires by the record that closes
// it.
func TestAFinalIsNotLostToTheExpiryOfItsWindow(t *testing.T) {
	r := newRig(t, finalIn(Hopping(10*ms, ms, 0)))
	sendAt(r, "k", 20, 100000)
	r.commit()
	if got := windows(r, windowCounts); len(got) != 10 {
		t.Errorf("%d finals, want 10: %q", len(got), got)
	}
}

func TestKafkaStreamsTimeOfLastFinalsIsKept(t *testing.T) {
	r := newRig(t, finalIn(Tumbling(10*ms, 5*ms)))
	sendAt(r, "k", 1, 26)
	r.commit()
	if got := r.sorted()[0].kept["n"]; got != 21 { // as Kafka Streams would, under the store's name
		t.Errorf("kept %d, want 21", got)
	}
}

func TestExpiredWindowsAreGoneAndOpenOnesAreNot(t *testing.T) {
	r := newRig(t, countIn(Tumbling(10*ms, 5*ms), Retain(30*ms)))
	sendAt(r, "k", 1, 11, 29)
	sendAt(r, "l", 35)
	if got, want := starts(r), []int64{10, 20, 30}; !slices.Equal(got, want) { // 0 began 30 before 30
		t.Errorf("kept %v, want %v", got, want)
	}
	r.commit()
	r.move()
	if got, want := starts(r), []int64{10, 20, 30}; !slices.Equal(got, want) {
		t.Errorf("kept %v after a restore, want %v", got, want)
	}
	if n := len(r.sorted()[0].log["n"]); n != 4 {
		t.Errorf("%d changelog records, want 4: nothing is deleted there", n)
	}
}

// starts are the starts of the windows in store n.
func starts(r *rig) (all []int64) {
	kept := &keptWindows[string, int64]{store: &graph.Store{Name: "n"}, id: -1, key: codec.String, value: codec.Int64}
	s, err := kept.open(r.sorted()[0].in.(*instance).o)
	r.must(err)
	for row, err := range s.All() {
		r.must(err)
		all = append(all, row.Start)
	}
	return all
}

func TestFinalsBesideUpdatesAndThroughFilters(t *testing.T) {
	r := newRig(t, func(b *Builder) {
		n := b.Stream(texts).GroupByKey().Windowed(Tumbling(10*ms, 0)).Count("n", EmitEach())
		n.To(windowCounts)
		n.Filter(func(w Windowed[string], n int64) bool { return n > 1 }).MapValues(func(n int64) int64 { return -n }).Final().Unwindowed().To(intOut)
	})
	sendAt(r, "k", 1, 2)
	sendAt(r, "l", 3, 12)
	expectSpans(r, windowCounts, "k[0,10)=1@1", "k[0,10)=2@2", "l[0,10)=1@3", "l[10,20)=1@12")
	expect(r, intOut, "k=-2@2")
}

// Groups of finals are never taken back: each comes once.
func TestFinalsGroupedAnewAddUp(t *testing.T) {
	r := newRig(t, func(b *Builder) {
		b.Stream(texts).GroupByKey().Windowed(Tumbling(10*ms, 0)).Count("n").Final().
			GroupBy(func(w Windowed[string], n int64) (string, int64) { return "all", n }).
			Reduce("sum", func(a, b int64) int64 { return a + b }, func(a, b int64) int64 { return a - b }).
			To(intOut)
	})
	sendAt(r, "k", 1, 2, 11, 25)
	r.commit()
	expect(r, intOut, "all=3@11")
}

// Windows of final results of windows.
func TestFinalsMayBeWindowedAgain(t *testing.T) {
	r := newRig(t, func(b *Builder) {
		b.Stream(texts).GroupByKey().Windowed(Tumbling(10*ms, 0)).Count("n").Final().Unwindowed().
			GroupByKey().Windowed(Tumbling(20*ms, 0)).Reduce("sum", func(a, b int64) int64 { return a + b }).Final().
			Unwindowed().To(intOut)
	})
	sendAt(r, "k", 1, 2, 11, 25, 41, 61)
	r.commit()
	expect(r, intOut, "k=3@11", "k=1@25")
}

// Whoever looks at finals as a table sees those that were sent.
func TestFinalsAreRowsOnceTheyWereSent(t *testing.T) {
	r := newRig(t, func(b *Builder) {
		n := b.Stream(texts).GroupByKey().Windowed(Tumbling(10*ms, 20*ms)).Count("n", EmitEach())
		Rows(n).ToStream().
			LeftJoin(Rows(n.Final()), func(now, final int64, ok bool) string { return fmt.Sprint(now, final, ok) }).
			SelectKey(func(w Windowed[string], _ string) string { return w.short() }).
			To(out)
	})
	sendAt(r, "k", 1, 2, 40, 3) // [0,10) is final when 3 comes, which is late
	sendAt(r, "k", 41)
	expect(r, out, "k[0,10)=1 0 false@1", "k[0,10)=2 0 false@2", "k[40,50)=1 0 false@40", "k[40,50)=2 0 false@41")
	r.dropped("n: late")
}

func TestFinalFailsWhenMoreRowsWaitThanAllowed(t *testing.T) {
	for name, c := range map[string]struct {
		limit BufferOption
		want  string
	}{
		"keys":  {MaxKeys(2), "3 rows wait for their windows to close, MaxKeys allows 2"},
		"bytes": {MaxBytes(18), "27 bytes of rows wait for their windows to close, MaxBytes allows 18"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, finalIn(Tumbling(10*ms, 5*ms), c.limit))
			sendAt(r, "a", 1, 2, 3)
			sendAt(r, "b", 4)
			r.commit()
			r.move() // they are counted again
			sendAt(r, "b", 5)
			err := feed(r, texts, rec("c", "x", 14))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v", err)
			}
			r = newRig(t, finalIn(Tumbling(10*ms, 5*ms), c.limit))
			sendAt(r, "a", 1, 12)
			sendAt(r, "c", 15) // [0,10) closes, and leaves room
			if err := feed(r, texts, rec("d", "x", 15)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v", err)
			}
		})
	}
}

// Times near the end of int64 wrap nothing around.
func TestWindowsAtTheEndOfAllTime(t *testing.T) {
	r := newRig(t, finalIn(Hopping(10*ms, 5*ms, 0)))
	sendAt(r, "k", 3, 1<<52)
	expectSpans(r, windowCounts, "k[0,10)=1@3")
	for _, now := range []int64{math.MaxInt64, math.MaxInt64 - 7} {
		w := Hopping(10*ms, 5*ms, 0)
		spans, err := w.of(now, nil)
		if err != nil || len(spans) != 2 || spans[1].start > now || spans[1].end < now {
			t.Errorf("%v %v", spans, err)
		}
		if got := w.nextEnd(now); got <= now && got != math.MaxInt64 {
			t.Errorf("the next end is %d", got)
		}
	}
}

// Names of operators, stores and times are not mistaken for each other.
func TestTimesOfAStoreAndAnOperatorHaveDifferentNames(t *testing.T) {
	r := newRig(t, func(b *Builder) {
		in := b.Stream(texts).GroupByKey().Windowed(Tumbling(10*ms, 0))
		in.Count("a").Final().To(windowCounts)
		in.Count("a.time").Final().Unwindowed().To(intOut)
	})
	sendAt(r, "k", 1, 11)
	expect(r, intOut, "k=1@1")
}

func TestHoppingWindowsOfATimeAreFoundWithoutLookingAtOthers(t *testing.T) {
	w := Hopping(time.Hour, time.Minute, 0)
	spans, err := w.of(1700000000000, nil)
	if err != nil || len(spans) != 60 || spans[59].start > 1700000000000 || spans[0].end <= 1700000000000 {
		t.Errorf("%v %v", spans, err)
	}
	if w.nextEnd(0) != 3600000 || w.nextEnd(3600000) != 3660000 || w.nextEnd(3659999) != 3660000 {
		t.Errorf("ends are %d, %d, %d", w.nextEnd(0), w.nextEnd(3600000), w.nextEnd(3659999))
	}
}
