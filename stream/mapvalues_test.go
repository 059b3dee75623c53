package stream

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/semelstream/semel/codec"
)

func TestMapValuesKeepsKeyTimeAndHeaders(t *testing.T) {
	r := newRig(t, func(b *Builder) { b.Stream(texts).MapValues(strings.ToUpper).To(out) })
	send(r, texts, rec("a", "v", 1).WithHeader("h", []byte("x")), del[string]("a", 2), unkeyed[string]("n", 3))
	got := received(r, out)
	if h, ok := got[0].Headers.Last("h"); !ok || string(h) != "x" {
		t.Errorf("headers are %v", got[0].Headers)
	}
	for i, want := range []string{"a=V@1", "a=-@2", "-=N@3"} {
		if text(got[i]) != want {
			t.Errorf("record %d is %s, want %s", i, text(got[i]), want)
		}
	}
}

func TestMapValuesWithKeySeesTheZeroKeyWhereThereIsNone(t *testing.T) {
	r := newRig(t, func(b *Builder) {
		b.Stream(texts).MapValuesWithKey(func(k, v string) int64 { return int64(len(k)*10 + len(v)) }).To(intOut)
	})
	send(r, texts, rec("aa", "v", 1), unkeyed[string]("abc", 2), del[string]("a", 3))
	expect(r, intOut, "aa=21@1", "-=3@2", "a=-@3")
}

func TestMapOrDeleteMakesTombstones(t *testing.T) {
	r := newRig(t, func(b *Builder) {
		b.Stream(texts).MapOrDelete(func(_, v string) (int64, bool) {
			n, err := strconv.ParseInt(v, 10, 64)
			return n, err == nil
		}).To(intOut)
	})
	send(r, texts, rec("a", "7", 1), rec("a", "x", 2), del[string]("b", 3))
	expect(r, intOut, "a=7@1", "a=-@2", "b=-@3")
}

func TestTryMapValuesFailsTheRecord(t *testing.T) {
	r := newRig(t, func(b *Builder) {
		b.Stream(texts).TryMapValues(strconv.Atoi, Name("number")).
			MapValues(func(n int) string { return strconv.Itoa(n + 1) }).To(out)
	})
	send(r, texts, rec("a", "7", 1), del[string]("b", 3))
	if err := feed(r, texts, rec("a", "x", 4)); !errors.Is(err, strconv.ErrSyntax) {
		t.Errorf("failed with %v", err)
	}
	expect(r, out, "a=8@1", "b=-@3")
}

func TestCodecsAreInheritedWhereTheTypeStays(t *testing.T) {
	loud := codec.Via(codec.String,
		func(s string) string { return s + "!" },
		func(s string) (string, error) { return strings.TrimSuffix(s, "!"), nil })
	in := NewTopic("in", loud, loud)
	r := newRig(t, func(b *Builder) {
		b.Stream(in).MapValues(strings.ToUpper).SelectKey(func(_, v string) string { return v }).
			Filter(long).Repartition("again").To(out)
	})
	var staged []string
	send(r, in, rec("k", "abc", 1))
	expect(r, out, "ABC=ABC@1")
	// The bytes in between were the topic's own.
	for _, task := range r.sorted() {
		task.in.Push(0, encode(r, in, rec("k", "abc", 1)))
		for _, k := range task.Take() {
			staged = append(staged, k.Topic+" "+string(k.Key)+" "+string(k.Value))
		}
	}
	if staged[0] != "app-again-repartition ABC! ABC!" {
		t.Errorf("staged %q", staged)
	}
}
