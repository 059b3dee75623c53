package stream

import (
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/stream/internal/runtime"
)

const heldMs = 10

func holding(opts ...BufferOption) func(b *Builder) {
	return func(b *Builder) {
		b.Table(texts, "rows").Suppress("held", heldMs*time.Millisecond, opts...).To(out)
	}
}

func TestSuppressLetsTheLastChangeThroughAfterTheWaitOfTheFirst(t *testing.T) {
	r := newRig(t, holding())
	send(r, texts, rec("a", "1", 0), rec("a", "2", 9))
	expect(r, out)
	send(r, texts, rec("b", "x", 10))
	expect(r, out, "a=2@9")
	send(r, texts, rec("a", "3", 11), rec("b", "y", 20))
	expect(r, out, "b=y@20")
}

func TestWhatIsHeldBackSurvivesAnAbort(t *testing.T) {
	r := newRig(t, holding())
	send(r, texts, rec("a", "1", 0), rec("b", "1", 5))
	r.commit()
	send(r, texts, rec("c", "1", 10))
	expect(r, out, "a=1@0")
	r.abort()
	r.out = nil
	send(r, texts, rec("c", "1", 15))
	expect(r, out, "a=1@0", "b=1@5")
}

func TestARecordThatFailsBehindSuppressReleasesNothing(t *testing.T) {
	fail := true
	r := newRig(t, func(b *Builder) {
		b.Table(texts, "rows").Suppress("held", heldMs*time.Millisecond).ToStream().MapValues(func(v string) string {
			if fail && v == "bad" {
				panic("bad")
			}
			return v
		}).To(out)
	})
	r.policy = ErrorPolicy(Skip).runtime(rigApp)
	send(r, texts, rec("a", "good", 0), rec("b", "bad", 1))
	send(r, texts, rec("c", "x", 11)) // releases a, then fails with b: skipped with all its effects
	expect(r, out)
	fail = false
	send(r, texts, rec("d", "x", 12))
	expect(r, out, "a=good@0", "b=bad@1")
}

func TestSuppressIsFullByBytes(t *testing.T) {
	row := func(v string) int {
		b, err := heldCodec[string]{codec.String}.Append([]byte("a"), held[string]{topic: "texts", new: v, hasNew: true})
		if err != nil {
			t.Fatal(err)
		}
		return len(b)
	}
	r := newRig(t, holding(MaxBytes(int64(row("1")+row("1")))))
	send(r, texts, rec("a", "1", 0), rec("b", "1", 1))
	expect(r, out)
	send(r, texts, rec("b", "12", 2)) // one byte, and the prior value, too many
	expect(r, out, "a=1@0")
}

func TestFailWhenFullStopsTheTaskWhateverThePolicy(t *testing.T) {
	r := newRig(t, holding(MaxKeys(1), FailWhenFull()))
	r.policy = ErrorPolicy(Skip).runtime(rigApp)
	send(r, texts, rec("a", "1", 0))
	err := feed(r, texts, rec("b", "1", 1))
	f, ok := errors.AsType[*runtime.Failure](err)
	if !ok || !strings.Contains(err.Error(), "MaxKeys(1)") || f.Operator != "held" {
		t.Errorf("got %v", err)
	}
	r = newRig(t, holding(MaxKeys(1), FailWhenFull()))
	send(r, texts, rec("a", "1", 0), rec("b", "1", 10)) // a has waited long enough
	expect(r, out, "a=1@0")
}

func TestWhatFollowsSuppressIsToldWhatItWasToldBefore(t *testing.T) {
	r := newRig(t, func(b *Builder) {
		b.Table(texts, "rows").Suppress("held", heldMs*time.Millisecond).
			GroupBy(func(_, v string) (string, string) { return v, v }).Count("groups", EmitEach()).To(intOut)
	})
	send(r, texts, rec("k", "g", 0), rec("z", "z", 10))
	send(r, texts, rec("k", "h", 11), rec("k", "i", 12), rec("z", "z", 21))
	// k was told in g, and never in h.
	expect(r, intOut, "g=1@0", "z=1@21", "g=0@12", "i=1@12")
}

func TestHeldChangesAreWrittenAsKafkaStreamsWritesThem(t *testing.T) {
	c := heldCodec[int64]{codec.Int64}
	for _, name := range []string{"suppress-time-limit.txt", "suppress-window.txt"} {
		text, err := os.ReadFile("testdata/" + name)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			want := strings.TrimSpace(line)
			src, err := hex.DecodeString(want)
			if err != nil {
				t.Fatal(err)
			}
			h, err := c.Decode(src)
			if err != nil {
				t.Fatalf("%s: %v", want, err)
			}
			got, err := c.Append(nil, h)
			if err != nil || hex.EncodeToString(got) != want {
				t.Errorf("got  %x (%v)\nwant %s", got, err, want)
			}
		}
	}
}

func FuzzHeldChangesAreDecodedOrRefused(f *testing.F) {
	c := heldCodec[string]{codec.String}
	for _, h := range []held[string]{
		{}, {topic: "t", prior: "a", hasPrior: true, old: "a", hasOld: true},
		{headers: Headers{{"h", nil}, {"i", []byte{}}}, new: "x", hasNew: true, since: 7},
	} {
		b, err := c.Append(nil, h)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		h, err := c.Decode(src)
		if err != nil {
			return
		}
		b, err := c.Append(nil, h)
		if err != nil {
			t.Fatal(err)
		}
		again, err := c.Decode(b)
		if err != nil || fmt.Sprintf("%#v", again) != fmt.Sprintf("%#v", h) {
			t.Errorf("%#v became %#v (%v)", h, again, err)
		}
	})
}

// A naiveHold is Suppress by its definition.
type naiveHold struct {
	now    int64
	since  map[string]int64
	latest map[string]string
}

func (n *naiveHold) add(key, value string, ms int64) (out []string) {
	n.now = max(n.now, ms)
	if _, ok := n.since[key]; !ok {
		n.since[key] = ms
	}
	n.latest[key] = fmt.Sprintf("%s=%s@%d", key, value, ms)
	keys := slices.SortedFunc(maps.Keys(n.since), func(a, b string) int {
		return cmp.Or(cmp.Compare(n.since[a], n.since[b]), cmp.Compare(a, b))
	})
	for _, k := range keys {
		if n.since[k] <= n.now-heldMs {
			out = append(out, n.latest[k])
			delete(n.since, k)
			delete(n.latest, k)
		}
	}
	return out
}

func TestSuppressDoesWhatItsDefinitionSaysWhateverIsAborted(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		r, naive := newRig(t, holding()), &naiveHold{since: map[string]int64{}, latest: map[string]string{}}
		now := int64(0)
		for range rapid.IntRange(1, 8).Draw(rt, "transactions") {
			var recs []Record[string, string]
			for range rapid.IntRange(1, 6).Draw(rt, "records") {
				now += rapid.Int64Range(0, 6).Draw(rt, "step")
				ms := max(0, now-rapid.Int64Range(0, 8).Draw(rt, "late"))
				key := rapid.SampledFrom([]string{"a", "aa", "b", "c"}).Draw(rt, "key")
				recs = append(recs, rec(key, fmt.Sprint(now), ms))
			}
			if rapid.Bool().Draw(rt, "abort") {
				send(r, texts, recs[:len(recs)/2]...)
				r.abort()
				r.out = nil
			}
			var want []string
			for _, k := range recs {
				want = append(want, naive.add(k.Key, k.Value, k.Time.UnixMilli())...)
			}
			send(r, texts, recs...)
			expect(r, out, want...)
			r.commit()
		}
	})
}

func TestMistakesWithSuppress(t *testing.T) {
	for text, define := range map[string]func(*Builder){
		"its wait of 0s": func(b *Builder) { b.Table(texts, "rows").Suppress("held", 0).To(out) },
		"is no limit":    func(b *Builder) { b.Table(texts, "rows").Suppress("held", time.Second, MaxKeys(-1)).To(out) },
		"is never full":  func(b *Builder) { b.Table(texts, "rows").Suppress("held", time.Second, FailWhenFull()).To(out) },
		`.Stored("name")`: func(b *Builder) {
			b.Stream(texts).Join(b.Table(texts2, "rows").Suppress("held", time.Second), func(a, b string) string { return a + b }).To(out)
		},
	} {
		if _, err := Build(define); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("got %v, want something with %q", err, text)
		}
	}
}
