package stream

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func swap(k, v string) (string, string) { return v, k }

func TestMapGivesAKeyAndDropsTombstones(t *testing.T) {
	r := newRig(t, func(b *Builder) { b.Stream(texts).Map(swap, Name("swap")).To(out) })
	send(r, texts, rec("a", "v", 1), unkeyed[string]("n", 2), del[string]("a", 3))
	expect(r, out, "v=a@1", "n=@2")
	r.dropped("swap: tombstone")
}

func TestSelectKeyGivesAKeyAndDropsTombstones(t *testing.T) {
	r := newRig(t, func(b *Builder) {
		b.Stream(texts).SelectKey(func(k, v string) string { return k + v }, Name("key")).To(out)
	})
	send(r, texts, rec("a", "v", 1), unkeyed[string]("n", 2), del[string]("a", 3))
	expect(r, out, "av=v@1", "n=n@2")
	r.dropped("key: tombstone")
}

func TestMapRecordsSeesAndMakesEverything(t *testing.T) {
	r := newRig(t, func(b *Builder) {
		b.Stream(texts).MapRecords(func(r Record[string, string]) Record[string, string] {
			switch {
			case r.NoValue:
				return r.WithValue("was deleted")
			case r.NoKey:
				return r.WithKey("had none").WithTime(time.UnixMilli(9))
			case r.Value == "unkey":
				return r.WithoutKey()
			}
			return r.WithoutValue()
		}).To(out)
	})
	send(r, texts, rec("a", "v", 1), del[string]("b", 2), unkeyed[string]("n", 3), rec("c", "unkey", 4))
	expect(r, out, "a=-@1", "b=was deleted@2", "had none=n@9", "-=unkey@4")
}

func TestMapRecordsThatMakesAContradictionFails(t *testing.T) {
	type record = Record[string, string]
	for name, c := range map[string]struct {
		f    func(record) record
		want error
	}{
		"a tombstone with a value": {func(r record) record { r.NoValue = true; return r }, errValueFlag},
		"no key, but a key":        {func(r record) record { r.NoKey = true; return r }, errKeyFlag},
		"no time":                  {func(r record) record { return record{Key: r.Key, Value: r.Value} }, errNoTime},
	} {
		t.Run(name, func(t *testing.T) {
			for _, define := range []func(*Builder){
				func(b *Builder) { b.Stream(texts).MapRecords(c.f).To(out) },
				func(b *Builder) {
					b.Stream(texts).TryMapRecords(func(r record) (record, error) { return c.f(r), nil }).To(out)
				},
			} {
				r := newRig(t, define)
				if err := feed(r, texts, rec("a", "v", 1)); !errors.Is(err, c.want) {
					t.Errorf("failed with %v, want %v", err, c.want)
				}
				expect(r, out)
			}
		})
	}
}

func TestTryMapsFailTheRecordAlone(t *testing.T) {
	bad := errors.New("bad")
	check := func(v string) error {
		if v == "bad" {
			return bad
		}
		return nil
	}
	r := newRig(t, func(b *Builder) {
		in := b.Stream(texts)
		in.TryMap(func(k, v string) (string, string, error) { return v, k, check(v) }).To(out)
		in.TryMapRecords(func(r Record[string, string]) (Record[string, string], error) {
			return r.WithValue(strings.ToUpper(r.Value)), check(r.Value)
		}).To(out2)
	})
	send(r, texts, rec("a", "v", 1))
	if err := feed(r, texts, rec("a", "bad", 2)); !errors.Is(err, bad) {
		t.Errorf("failed with %v", err)
	}
	expect(r, out, "v=a@1")
	expect(r, out2, "a=V@1")
}
