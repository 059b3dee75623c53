package stream

import (
	"errors"
	"testing"
)

func long(_, v string) bool { return len(v) > 2 }

func TestFilterKeepsAndTombstonesPass(t *testing.T) {
	r := newRig(t, func(b *Builder) { b.Stream(texts).Filter(long).To(out) })
	send(r, texts, rec("a", "long", 1), rec("a", "no", 2), del[string]("a", 3), unkeyed[string]("nokey", 4))
	expect(r, out, "a=long@1", "a=-@3", "-=nokey@4")
	r.dropped()
}

func TestFilterRecordsSeesTombstones(t *testing.T) {
	r := newRig(t, func(b *Builder) {
		in := b.Stream(texts)
		in.FilterRecords(HasValue).To(out)
		in.FilterRecords(HasKey).To(out2)
	})
	send(r, texts, rec("a", "v", 1), del[string]("a", 2), unkeyed[string]("x", 3))
	expect(r, out, "a=v@1", "-=x@3")
	expect(r, out2, "a=v@1", "a=-@2")
}

func TestTryFilterFailsTheRecordAlone(t *testing.T) {
	bad := errors.New("bad")
	r := newRig(t, func(b *Builder) {
		b.Stream(texts).TryFilter(func(_, v string) (bool, error) {
			if v == "bad" {
				return true, bad
			}
			return v != "no", nil
		}, Name("check")).To(out)
	})
	send(r, texts, rec("a", "yes", 1), rec("a", "no", 2), del[string]("a", 3))
	err := feed(r, texts, rec("a", "bad", 4))
	if !errors.Is(err, bad) || err.Error() != "check: function: bad" {
		t.Errorf("failed with %v", err)
	}
	expect(r, out, "a=yes@1", "a=-@3")
}
