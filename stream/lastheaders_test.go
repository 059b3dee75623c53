package stream

import (
	"testing"

	"github.com/semelstream/semel/codec"
)

func TestLastHeadersAreThoseOfTheLastRecordOfTheKey(t *testing.T) {
	h := lastHeaders[string]{key: codec.String}
	note := func(key string, value string) {
		t.Helper()
		var hs Headers
		if value != "" {
			hs = Headers{{"h", []byte(value)}}
		}
		if err := h.note(key, hs); err != nil {
			t.Fatal(err)
		}
	}
	want := func(key, value string) {
		t.Helper()
		hs, err := h.of(key)
		if err != nil {
			t.Fatal(err)
		}
		got, _ := hs.Last("h")
		if string(got) != value {
			t.Fatalf("key %s has %q, want %q", key, got, value)
		}
	}
	note("a", "")
	if h.last != nil {
		t.Fatal("something is kept though there are no headers")
	}
	note("a", "1")
	note("b", "2")
	note("a", "3")
	want("a", "3")
	want("b", "2")
	want("c", "")
	note("b", "") // a record without headers takes them away
	want("b", "")
	want("a", "3")
	h.forget()
	want("a", "")
}
