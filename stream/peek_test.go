package stream

import (
	"errors"
	"slices"
	"testing"
)

func TestPeekSeesValuesOnTheirWay(t *testing.T) {
	var seen []string
	r := newRig(t, func(b *Builder) {
		b.Stream(texts).Peek(func(k, v string) { seen = append(seen, k+"="+v) }).To(out)
	})
	send(r, texts, rec("a", "v", 1), del[string]("a", 2), unkeyed[string]("n", 3))
	if want := []string{"a=v", "=n"}; !slices.Equal(seen, want) {
		t.Errorf("saw %q, want %q", seen, want)
	}
	expect(r, out, "a=v@1", "a=-@2", "-=n@3")
}

func TestForEachEndsTheStreamAndDropsTombstones(t *testing.T) {
	bad := errors.New("bad")
	var seen []string
	r := newRig(t, func(b *Builder) {
		b.Stream(texts).ForEach(func(k, v string) error {
			seen = append(seen, k+"="+v)
			if v == "bad" {
				return bad
			}
			return nil
		}, Name("door"))
	})
	send(r, texts, rec("a", "v", 1), del[string]("a", 2))
	if err := feed(r, texts, rec("a", "bad", 3)); !errors.Is(err, bad) {
		t.Errorf("failed with %v", err)
	}
	if want := []string{"a=v", "a=bad"}; !slices.Equal(seen, want) {
		t.Errorf("saw %q, want %q", seen, want)
	}
	r.dropped("door: tombstone")
}
