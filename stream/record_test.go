package stream

import (
	"testing"
	"time"
)

func TestRecordWithMethodsKeepFlagsInStep(t *testing.T) {
	r := rec("k", "v", 1)
	for name, c := range map[string]struct{ got, want string }{
		"WithKey":      {text(r.WithoutKey().WithKey(int64(3))), "3=v@1"},
		"WithValue":    {text(r.WithoutValue().WithValue(int64(3))), "k=3@1"},
		"WithoutKey":   {text(r.WithoutKey()), "-=v@1"},
		"WithoutValue": {text(r.WithoutValue()), "k=-@1"},
		"WithTime":     {text(r.WithTime(time.UnixMilli(5))), "k=v@5"},
		"a key only":   {text(r.WithoutValue().WithKey("x")), "x=-@1"},
		"a value only": {text(r.WithoutKey().WithValue("x")), "-=x@1"},
	} {
		if c.got != c.want {
			t.Errorf("%s: %s, want %s", name, c.got, c.want)
		}
	}
	if r := r.WithoutKey(); r.Key != "" || r.check() != nil {
		t.Error("WithoutKey leaves the key")
	}
	if r := r.WithoutValue(); r.Value != "" || r.check() != nil {
		t.Error("WithoutValue leaves the value")
	}
}

func TestWithHeaderLeavesTheOriginalAlone(t *testing.T) {
	r := rec("k", "v", 1)
	r.Headers = append(make(Headers, 0, 8), Header{"a", nil})
	one, two := r.WithHeader("b", []byte("1")), r.WithHeader("b", []byte("2"))
	if v, _ := one.Headers.Last("b"); string(v) != "1" {
		t.Errorf("the second copy changed the first: %q", v)
	}
	if v, _ := two.Headers.Last("b"); string(v) != "2" || len(r.Headers) != 1 {
		t.Errorf("headers are %v and %v", two.Headers, r.Headers)
	}
	if v, _ := one.WithHeader("b", []byte("3")).Headers.Last("b"); string(v) != "3" {
		t.Errorf("Last is not the last: %q", v)
	}
	if _, ok := r.Headers.Last("x"); ok {
		t.Error("a header that is not there was found")
	}
}
