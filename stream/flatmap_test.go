package stream

import (
	"errors"
	"strings"
	"testing"
)

func TestFlatMapEmitsNoneOneOrSeveral(t *testing.T) {
	r := newRig(t, func(b *Builder) {
		b.Stream(texts).FlatMap(func(k, v string, emit func(string, int64)) {
			for i, part := range strings.Fields(v) {
				emit(k+part, int64(i))
			}
		}, Name("parts")).To(intOut)
	})
	send(r, texts, rec("a", "x y", 1), rec("a", "", 2), unkeyed[string]("z", 3), del[string]("a", 4))
	expect(r, intOut, "ax=0@1", "ay=1@1", "z=0@3")
	r.dropped("parts: tombstone")
}

func TestTryFlatMapKeepsNothingOfAFailedRecord(t *testing.T) {
	bad := errors.New("bad")
	r := newRig(t, func(b *Builder) {
		b.Stream(texts).TryFlatMap(func(k, v string, emit func(string, string)) error {
			emit(k, v)
			if v == "bad" {
				return bad
			}
			return nil
		}).To(out)
	})
	send(r, texts, rec("a", "v", 1))
	if err := feed(r, texts, rec("a", "bad", 2)); !errors.Is(err, bad) {
		t.Errorf("failed with %v", err)
	}
	expect(r, out, "a=v@1")
}

func TestFlatMapStopsEmittingAfterAFailureBehindIt(t *testing.T) {
	bad := errors.New("bad")
	calls := 0
	r := newRig(t, func(b *Builder) {
		b.Stream(texts).FlatMap(func(k, v string, emit func(string, string)) {
			emit(k, v)
			emit(k, v)
		}).ForEach(func(_, _ string) error { calls++; return bad }, Name("door"))
	})
	if err := feed(r, texts, rec("a", "v", 1)); !errors.Is(err, bad) || calls != 1 {
		t.Errorf("failed with %v after %d calls", err, calls)
	}
}

func TestFlatMapsEmitMustNotBeKept(t *testing.T) {
	var kept func(string, string)
	r := newRig(t, func(b *Builder) {
		b.Stream(texts).FlatMap(func(k, v string, emit func(string, string)) {
			kept = emit
			emit(k, v)
		}).To(out)
	})
	send(r, texts, rec("a", "v", 1))
	defer func() {
		if recover() == nil {
			t.Error("a kept emit could be called")
		}
	}()
	kept("a", "late")
}

func TestFlatMapValuesKeepsKeys(t *testing.T) {
	r := newRig(t, func(b *Builder) {
		in := b.Stream(texts)
		in.FlatMapValues(strings.Fields).To(out)
		in.TryFlatMapValues(func(v string) ([]string, error) {
			if v == "bad" {
				return []string{"x"}, errors.New("bad")
			}
			return strings.Split(v, " "), nil
		}).To(out2)
	})
	send(r, texts, rec("a", "x y", 1), del[string]("a", 2), rec("a", "", 3))
	if feed(r, texts, rec("a", "bad", 4)) == nil {
		t.Error("did not fail")
	}
	expect(r, out, "a=x@1", "a=y@1", "a=-@2")
	expect(r, out2, "a=x@1", "a=y@1", "a=-@2", "a=@3")
}
