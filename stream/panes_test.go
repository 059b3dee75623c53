package stream

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/semelstream/semel/codec"
)

func TestAllTimesOfAPaneAreInTheSameWindows(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		size := rapid.Int64Range(2, 30).Draw(rt, "size")
		every := rapid.Int64Range(1, size-1).Draw(rt, "every")
		w := Hopping(time.Duration(size)*ms, time.Duration(every)*ms, 0)
		of := func(at int64) []span {
			spans, err := w.of(at, nil)
			if err != nil {
				rt.Fatal(err)
			}
			return spans
		}
		pane := int64(0)
		for at := range int64(100) {
			if at == w.nextPane(pane) {
				pane = at
				if at > size && slices.Equal(of(at), of(at-1)) {
					rt.Fatalf("%v: %d begins a pane, and no window begins or ends there", w, at)
				}
			}
			if got := w.pane(at); got != pane {
				rt.Fatalf("%v: the pane of %d begins at %d, want %d", w, at, got, pane)
			}
			spans := of(at)
			if !slices.Equal(spans, of(pane)) || w.first(at) != spans[0].start || w.last(at) != spans[len(spans)-1].start {
				rt.Fatalf("%v: windows of %d are %v, those of its pane %v", w, at, spans, of(pane))
			}
		}
	})
}

// paneTexts joins texts: what comes first shows.
func paneTexts(w Windows, opts ...WindowOption) func(*Builder) {
	return func(b *Builder) {
		join := func(a, b string) string { return a + b }
		n := b.Stream(texts).GroupByKey().Windowed(w).Reduce("n", join, append(opts, Panes())...)
		n.To(windowTexts)
		n.Final().To(NewTopic("finals", windowTexts.Key, codec.String))
	}
}

func TestARecordChangesOneRowOfPanes(t *testing.T) {
	r := newRig(t, paneTexts(Hopping(10*ms, 2*ms, 0)))
	send(r, texts, rec("k", "a", 20), rec("k", "b", 21))
	r.commit()
	if n := r.writes["n"]; n != 1 {
		t.Errorf("%d changelog records", n)
	}
	if got := len(windows(r, windowTexts)); got != 5 {
		t.Errorf("%d windows were sent", got)
	}
}

func TestEarlierPanesCountFirst(t *testing.T) {
	r := newRig(t, paneTexts(Hopping(10*ms, 5*ms, 10*ms), EmitEach()))
	send(r, texts, rec("k", "late", 7), rec("k", "first", 1), rec("k", "more", 6))
	expectSpans(r, windowTexts, "k[0,10)=late@7", "k[5,15)=late@7", "k[0,10)=firstlate@7", "k[0,10)=firstlatemore@7", "k[5,15)=latemore@7")
}

// A record at 4 comes too late for [0,5), which has changed in this transaction,
// and in time for [4,9).
func TestAClosedWindowIsSentWithoutWhatCameTooLate(t *testing.T) {
	r := newRig(t, paneTexts(Hopping(5*ms, 4*ms, 0)))
	send(r, texts, rec("k", "a", 4), rec("k", "z", 6), rec("k", "b", 4))
	r.commit()
	expectSpans(r, windowTexts, "k[0,10)=a@4", "k[4,14)=abz@6") // the topic believes in windows of 10
	if !slices.Contains(r.drops, "n: late") {
		t.Errorf("dropped %q", r.drops)
	}
}

func TestLimitsOfFinalCountPanes(t *testing.T) {
	define := func(b *Builder) {
		b.Stream(texts).GroupByKey().Windowed(Hopping(10*ms, 5*ms, 0)).Count("n", Panes()).Final(MaxKeys(2)).To(windowCounts)
	}
	r := newRig(t, define)
	sendAt(r, "k", 1, 2, 6, 11, 12, 16, 21) // two panes of five milliseconds wait at a time
	var failed error
	for _, at := range []int64{22, 23, 24} {
		if failed = feed(r, texts, rec(string(rune('a'+at-22)), "x", at)); failed != nil {
			break
		}
	}
	if failed == nil || !strings.Contains(failed.Error(), "3 rows wait for their windows to close, MaxKeys allows 2") {
		t.Errorf("%v", failed)
	}
}

func TestViewOfPanesIsOfWindows(t *testing.T) {
	r := newRig(t, countIn(Hopping(10*ms, 5*ms, 10*ms), Panes()))
	sendAt(r, "a", 7, 12)
	sendAt(r, "b", 3)
	r.commit()
	sendAt(r, "a", 8)
	v := viewed[int64](r, "n", false)
	sameTexts(t, viewText(v.FetchAll(time.UnixMilli(0), time.UnixMilli(5))), "a[0,10)=1@7 <nil>", "b[0,10)=1@3 <nil>", "a[5,15)=2@12 <nil>")
	sameTexts(t, viewText(v.Fetch("a", time.UnixMicro(1), time.UnixMilli(100))), "a[5,15)=2@12 <nil>", "a[10,20)=1@12 <nil>")
	if n, ok, err := v.Get("b", time.UnixMilli(0)); n != 1 || !ok || err != nil {
		t.Errorf("%d %v %v", n, ok, err)
	}
	for _, at := range []int64{3, 5} { // no window begins there, or none of b's
		if _, ok, err := v.Get("b", time.UnixMilli(at)); ok || err != nil {
			t.Errorf("%d: %v %v", at, ok, err)
		}
	}
	if _, _, err := viewed[string](r, "n", false).Get("b", time.UnixMilli(5)); err == nil {
		t.Error("a view of another type is none")
	}
}

// What is merged is kept from one window to the next, and does not matter.
func TestWindowsOfManyPanesAreThoseThatAreReadAnew(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := Hopping(time.Duration(rapid.Int64Range(20, 90).Draw(rt, "size"))*ms, time.Duration(rapid.Int64Range(1, 9).Draw(rt, "every"))*ms, time.Duration(rapid.Int64Range(0, 30).Draw(rt, "grace"))*ms)
		key := WindowKey(codec.String, time.Duration(w.size)*ms)
		r := newRig(t, func(b *Builder) {
			for _, store := range []string{"rows", "panes"} {
				var opts []WindowOption
				if store == "panes" {
					opts = append(opts, Panes())
				}
				b.Stream(texts.Named(store)).GroupByKey().Windowed(w).Reduce(store, bag, opts...).Final().To(NewTopic(store+"-final", key, codec.String))
			}
		})
		keys := rapid.IntRange(1, 40).Draw(rt, "keys")
		now := int64(0)
		for i := range rapid.IntRange(1, 300).Draw(rt, "records") {
			now += rapid.Int64Range(0, 8).Draw(rt, "later")
			k := rec(string(rune('A'+rapid.IntRange(0, keys-1).Draw(rt, "key"))), string(rune('a'+i%26)), max(0, now-rapid.Int64Range(0, 20).Draw(rt, "late")))
			send(r, texts.Named("rows"), k)
			send(r, texts.Named("panes"), k)
			if i%50 == 49 {
				r.commit()
			}
		}
		got, want := windows(r, NewTopic("panes-final", key, codec.String)), windows(r, NewTopic("rows-final", key, codec.String))
		if !slices.Equal(got, want) {
			rt.Fatalf("%v: panes sent\n\t%q, rows\n\t%q", w, got, want)
		}
	})
}

func TestTakeOverRefusesPanes(t *testing.T) {
	top, err := Build(countIn(Hopping(10*ms, 5*ms, 0), Panes()))
	if err != nil {
		t.Fatal(err)
	}
	if err := (&takeOver{t: top}).hasRows(); !errors.Is(err, ErrIncompatible) {
		t.Errorf("%v", err)
	}
	if err := (&takeOver{t: top, opts: TakeOverOptions{New: []string{"n"}}}).hasRows(); err != nil {
		t.Errorf("a new store: %v", err)
	}
}
