package stream

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/state"
)

// dedup drops duplicates by the first letter of the value.
func dedup(ttl time.Duration) func(b *Builder) {
	return func(b *Builder) {
		b.Stream(texts).Dedup("seen", func(_, v string) string { return v[:1] }, ttl).To(out)
	}
}

func TestDED01FromFirstAndTheEdgePasses(t *testing.T) {
	r := newRig(t, dedup(600000*ms))
	for _, at := range []int64{0, 300000, 599999, 600000, 600001, 900001} {
		send(r, texts, rec("k", "1", at))
	}
	expect(r, out, "k=1@0", "k=1@600000")
	r.dropped("seen: duplicate", "seen: duplicate", "seen: duplicate", "seen: duplicate")
}

func TestDED02DuplicatesOutOfOrder(t *testing.T) {
	r := newRig(t, dedup(60*ms))
	send(r, texts, rec("k", "1", 100), rec("k", "1", 50))
	expect(r, out, "k=1@100")
	r.dropped("seen: duplicate")
	send(r, texts, rec("k", "2", 300), rec("k", "1", 110), rec("k", "1", 20))
	expect(r, out, "k=2@300")
	r.dropped("seen: late", "seen: late")
}

func TestDED03RecordsWithoutAnIDAreLedAroundDedup(t *testing.T) {
	r := newRig(t, func(b *Builder) {
		with, without := b.Stream(texts).Split(func(_, v string) bool { return v != "-" })
		with.Dedup("seen", func(_, v string) string { return v }, time.Hour).Merge(without).To(out)
	})
	send(r, texts, rec("k", "-", 1), rec("k", "-", 2), rec("k", "", 3), rec("k", "", 4))
	expect(r, out, "k=-@1", "k=-@2", "k=@3")
}

func TestDED06OldIDsAreForgotten(t *testing.T) {
	r := newRig(t, func(b *Builder) {
		b.Stream(texts).Dedup("seen", func(_, v string) string { return v }, 60*ms).To(out)
	})
	for at := range int64(1000) {
		send(r, texts, rec("k", fmt.Sprint(at), at))
	}
	r.commit()
	seen, err := state.OpenWindow(r.sorted()[0].db, "seen", codec.String, codec.Int64)
	r.must(err)
	rows := 0
	for range seen.All() {
		rows++
	}
	if rows < 60 || rows > idTTLs*60 {
		t.Errorf("%d ids are remembered", rows)
	}
}

func TestDedupNeedsKeyAndValue(t *testing.T) {
	r := newRig(t, dedup(60*ms))
	send(r, texts, unkeyed[string]("x", 1), del[string]("k", 2))
	expect(r, out)
	r.dropped("seen: no key", "seen: tombstone")
}

func TestADuplicateOfAFailedRecordIsNone(t *testing.T) {
	fail := true
	r := newRig(t, func(b *Builder) {
		b.Stream(texts).Dedup("seen", func(k, _ string) string { return k }, time.Hour).MapValues(func(v string) string {
			if fail {
				panic("no")
			}
			return v
		}).To(out)
	})
	r.policy = ErrorPolicy(Skip).runtime(rigApp)
	send(r, texts, rec("k", "x", 1))
	fail = false
	send(r, texts, rec("k", "y", 2))
	expect(r, out, "k=y@2")
}

func TestDedupRepartitionsAfterAChangeOfKey(t *testing.T) {
	r := newRig(t, func(b *Builder) {
		b.Stream(texts).SelectKey(func(_, v string) string { return v }).
			Dedup("seen", func(k, _ string) string { return k }, time.Hour).To(out)
	})
	send(r, texts, rec("a", "x", 1), rec("b", "x", 2))
	expect(r, out, "x=x@1")
	if !strings.Contains(r.top.Describe(), "seen-repartition") {
		t.Errorf("there is no repartition topic in\n%s", r.top.Describe())
	}
}

func TestDedupDoesWhatItsDefinitionSaysWhateverIsAborted(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		ttl := rapid.Int64Range(1, 20).Draw(rt, "ttl")
		r := newRig(t, dedup(time.Duration(ttl)*ms))
		var passed []Record[string, string]
		newest, clock := int64(-1), int64(0)
		for range rapid.IntRange(1, 6).Draw(rt, "transactions") {
			var recs []Record[string, string]
			for range rapid.IntRange(1, 10).Draw(rt, "records") {
				clock += rapid.Int64Range(0, ttl).Draw(rt, "step")
				at := max(0, clock-rapid.Int64Range(0, 2*ttl).Draw(rt, "late"))
				recs = append(recs, rec("k", rapid.SampledFrom([]string{"a", "b"}).Draw(rt, "id"), at))
			}
			if rapid.Bool().Draw(rt, "abort") {
				send(r, texts, recs[:len(recs)/2]...)
				r.abort()
				r.out = nil
			}
			var want []string
			for _, k := range recs {
				at := k.Time.UnixMilli()
				newest = max(newest, at)
				pass := at > newest-ttl
				for _, p := range passed {
					pass = pass && (p.Value != k.Value || distance(p.Time.UnixMilli(), at) >= ttl)
				}
				if pass {
					passed = append(passed, k)
					want = append(want, fmt.Sprintf("k=%s@%d", k.Value, at))
				}
			}
			send(r, texts, recs...)
			expect(r, out, want...)
			r.commit()
		}
	})
}

func hotDedup(b *Builder) {
	in := NewTopic("in", codec.Bytes, codec.Bytes)
	b.Stream(in).Dedup("seen", func(k, _ []byte) string { return string(k[:8]) }, time.Second).To(NewTopic("out", codec.Bytes, codec.Bytes))
}

func TestDedupAllocatesTheIDAtMost(t *testing.T) {
	h := newHot(t, hotDedup)
	recs := hotRecords(20000, 1000)
	i := 0
	next := func() {
		if i&63 == 0 {
			h.in.Touch(0, recs[i:][:64])
		}
		h.push(t, recs[i])
		i++
	}
	for range 10000 {
		next()
	}
	if n := testing.AllocsPerRun(5000, next); n > 1 {
		t.Errorf("%v allocations per record, of which the id is one", n)
	}
}

func TestMistakesWithDedup(t *testing.T) {
	id := func(k, _ string) string { return k }
	for text, define := range map[string]func(*Builder){
		"its ttl of 0s":       func(b *Builder) { b.Stream(texts).Dedup("seen", id, 0).To(out) },
		"its function is nil": func(b *Builder) { b.Stream(texts).Dedup[string]("seen", nil, time.Hour).To(out) },
	} {
		if _, err := Build(define); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("got %v, want something with %q", err, text)
		}
	}
}
