package stream

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/semelstream/semel/codec"
)

const graceMs = 10

// waiting is a left join of texts2 that waits for the versioned table of texts.
func waitingJoin(b *Builder) {
	b.Stream(texts2).LeftJoin(versionedTable(b), optionalRight, Wait("buf", graceMs*ms), Name("wait")).To(out)
}

func TestRecordsWaitUntilTheStreamIsGracePastThem(t *testing.T) {
	r := newRig(t, waitingJoin)
	send(r, texts2, rec("a", "s5", 5), rec("a", "s14", 14))
	send(r, texts, rec("a", "T3", 3), rec("b", "much later", 100)) // the table's time is not the stream's
	expect(r, out)
	send(r, texts2, rec("b", "s15", 15))
	expect(r, out, "a=s5+T3@5")
	send(r, texts2, rec("b", "edge", 5), rec("b", "late", 4)) // at the edge it is let go at once
	expect(r, out, "b=edge+-@5")
	r.dropped("wait: late")
	r.commit()
	expect(r, out) // the end of a transaction, or of the stream, lets nothing go
}

func TestNullsDoNotWait(t *testing.T) {
	r := newRig(t, func(b *Builder) {
		waitingJoin(b)
		b.Stream(texts2).Join(b.Table(ints, "n", Versioned(time.Second)), func(v string, n int64) string { return v }, Wait("buf2", 0), Name("inner")).To(out2)
	})
	send(r, texts2, rec("a", "x", 1), unkeyed[string]("n", 50), del[string]("a", 50))
	expect(r, out, "-=n+-@50")
	r.dropped("inner: no key", "wait: tombstone", "inner: tombstone")
	send(r, texts2, rec("a", "y", 2)) // neither has moved the time
	expect(r, out)
}

func TestRecordsThatWaitedAreJoinedByTimeKeyAndOrder(t *testing.T) {
	r := newRig(t, waitingJoin)
	send(r, texts2, rec("b", "1", 7), rec("a", "2", 7), rec("b", "3", 6), rec("b", "4", 7))
	first := rec("c", "5", 6)
	first.Headers = Headers{{"h", []byte("v")}, {"none", nil}}
	send(r, texts2, first, rec("z", "", 20))
	got := received(r, out)
	var all []string
	for _, g := range got {
		all = append(all, text(g))
	}
	sameTexts(t, all, "b=3+-@6", "c=5+-@6", "a=2+-@7", "b=1+-@7", "b=4+-@7")
	if h := got[1].Headers; len(h) != 2 || h[0].Name != "h" || string(h[0].Value) != "v" || h[1].Value != nil {
		t.Errorf("headers %v", h)
	}
}

func TestAJoinThatWaitsRepartitionsBefore(t *testing.T) {
	r := newRig(t, func(b *Builder) {
		b.Stream(texts2).SelectKey(func(_, v string) string { return v[:1] }).
			Join(versionedTable(b), plusText, Wait("buf", graceMs*ms), Name("wait")).To(out)
	})
	send(r, texts, rec("x", "T", 1))
	send(r, texts2, rec("a", "xa", 5), rec("a", "y", 15))
	expect(r, out, "x=xa+T@5")
}

func TestANumberThatIsTakenIsPassedOver(t *testing.T) {
	r := newRig(t, waitingJoin)
	send(r, texts2, rec("a", "first", 5))
	r.commit()
	r.sorted()[0].kept["buf.added"] = 0 // as Kafka Streams begins anew
	r.abort()
	send(r, texts2, rec("a", "second", 5), rec("z", "", 15))
	expect(r, out, "a=first+-@5", "a=second+-@5")
}

func TestRecordsThatWaitAreWrittenAsKafkaStreamsWritesThem(t *testing.T) {
	file, err := os.ReadFile("testdata/join-buffer.txt")
	if err != nil {
		t.Fatal(err)
	}
	c := heldCodec[string]{codec.String}
	for line := range strings.Lines(string(file)) {
		keyHex, valueHex, _ := strings.Cut(strings.TrimSpace(line), " ")
		src := unhex(t, keyHex)
		ms, key, err := readDelayKey(src)
		if err != nil {
			t.Fatalf("%s: %v", keyHex, err)
		}
		again, err := appendDelayKey(nil, ms, codec.Bytes, key, binary.BigEndian.Uint32(src[len(src)-delayKeyTail:]))
		if err != nil || !bytes.Equal(again, src) {
			t.Errorf("key %s became %x (%v)", keyHex, again, err)
		}
		h, err := c.Decode(unhex(t, valueHex))
		if err != nil || !h.hasNew || h.hasOld || h.hasPrior || h.ms != ms {
			t.Fatalf("%s: %+v, %v", valueHex, h, err)
		}
		if again, err := c.Append(nil, h); err != nil || hex.EncodeToString(again) != valueHex {
			t.Errorf("value %s became %x (%v)", valueHex, again, err)
		}
	}
}

func TestBytesThatAreNoKeyOfAWaitingRecordAreRefused(t *testing.T) {
	for _, bad := range []string{"", "00", "000000000000000001000000", "01000000000000000100000000", "00ff0000000000000100000000"} {
		if _, _, err := readDelayKey(unhex(t, bad)); err == nil {
			t.Errorf("%s was read", bad)
		}
	}
}

// A naiveWait is Wait by its definition.
type naiveWait struct {
	now     int64
	waiting []Record[string, string] // in order of arrival
}

func (n *naiveWait) add(r Record[string, string]) (due []Record[string, string]) {
	ms := func(r Record[string, string]) int64 { return r.Time.UnixMilli() }
	if n.now = max(n.now, ms(r)); ms(r) < n.now-graceMs {
		return nil
	}
	n.waiting = append(n.waiting, r)
	slices.SortStableFunc(n.waiting, func(a, b Record[string, string]) int {
		return cmp.Or(cmp.Compare(ms(a), ms(b)), cmp.Compare(a.Key, b.Key))
	})
	for len(n.waiting) > 0 && ms(n.waiting[0]) <= n.now-graceMs {
		due, n.waiting = append(due, n.waiting[0]), n.waiting[1:]
	}
	return due
}

func TestWaitDoesWhatItsDefinitionSaysWhateverIsAborted(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		r, naive, rows := newRig(t, waitingJoin), naiveWait{}, newNaiveVersions()
		now := int64(0)
		for range rapid.IntRange(1, 8).Draw(rt, "transactions") {
			savedWait, savedRows := naiveWait{naive.now, slices.Clone(naive.waiting)}, rows.clone()
			for range rapid.IntRange(1, 6).Draw(rt, "records") {
				now += rapid.Int64Range(0, 6).Draw(rt, "step")
				at := max(0, now-rapid.Int64Range(0, 14).Draw(rt, "late"))
				k := rec(rapid.SampledFrom([]string{"a", "aa", "b"}).Draw(rt, "key"), fmt.Sprint(now), at)
				if rapid.Bool().Draw(rt, "row") {
					send(r, texts, k)
					rows.put(k.Key, k.Value, at)
					continue
				}
				var want []string
				for _, d := range naive.add(k) {
					row := rows.at(d.Key, d.Time.UnixMilli())
					want = append(want, text(d.WithValue(optionalRight(d.Value, row, row != ""))))
				}
				send(r, texts2, k)
				expect(r, out, want...)
			}
			switch rapid.SampledFrom([]string{"commit", "commit", "abort", "move"}).Draw(rt, "then") {
			case "commit":
				r.commit()
			case "abort":
				r.abort()
				naive, rows = savedWait, savedRows
			case "move":
				r.move()
				naive, rows = savedWait, savedRows
			}
			r.drops = nil
		}
	})
}

func TestMistakesWithWait(t *testing.T) {
	join := func(table func(b *Builder) Table[string, string], opts ...JoinOption) func(*Builder) {
		return func(b *Builder) { b.Stream(texts2).Join(table(b), plusText, opts...).To(out) }
	}
	plain := func(b *Builder) Table[string, string] { return b.Table(texts, "rows") }
	for text, define := range map[string]func(*Builder){
		"its grace of -1s":                       join(versionedTable, Wait("buf", -time.Second)),
		"add stream.Versioned(history)":          join(plain, Wait("buf", time.Second)),
		"forgets versions after 40ms":            join(versionedTable, Wait("buf", 41*ms)),
		"it has no store name":                   join(versionedTable, Wait("", ms)),
		`the store name "rows" is taken`:         join(versionedTable, Wait("rows", ms)),
		"it is given a codec of int64 where it ": join(versionedTable, Wait("buf", ms), ValueCodec(codec.Int64)),
	} {
		if _, err := Build(define); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("got %v, want something with %q", err, text)
		}
	}
	if _, err := Build(join(versionedTable, Wait("buf", keptMs*ms))); err != nil {
		t.Errorf("a grace as long as the history: %v", err)
	}
}
