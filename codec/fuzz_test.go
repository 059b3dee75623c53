package codec_test

import (
	"bytes"
	"testing"

	"github.com/semelstream/semel/codec"
)

// accepted checks that what c decodes from src encodes to bytes that decode to
// the same again; canonical if those bytes must be src.
func accepted[T any](t *testing.T, name string, c codec.Codec[T], src []byte, canonical bool) {
	v, err := c.Decode(src)
	if err != nil {
		return
	}
	first := encode(t, c, v)
	if canonical && !bytes.Equal(first, src) {
		t.Errorf("%s: %x was accepted and became %x", name, src, first)
	}
	if second := encode(t, c, decode(t, c, first)); !bytes.Equal(first, second) {
		t.Errorf("%s: %x, then %x", name, first, second)
	}
}

func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		"", "\x00", "\x01", "abcd", "abcdefgh", "\x00\x00\x00\x02ababcdefgh", "\xff\xff\xff\xffab",
		"00112233-4455-6677-8899-aabbccddeeff", `{"id":7,"lines":{"a":1},"at":"2026-01-02T03:04:05Z"}`, `[1,{"a":0.10}]`,
		"\x7f\xf8\x00\x00\x00\x00\x00\x01",
	} {
		f.Add([]byte(seed))
	}
	pair := codec.Pair(codec.String, codec.Pair(codec.Bytes, codec.Int64))
	typed, untyped := codec.JSON[order](), codec.JSON[any]()
	f.Fuzz(func(t *testing.T, src []byte) {
		before := bytes.Clone(src)
		accepted(t, "string", codec.String, src, true)
		accepted(t, "bytes", codec.Bytes, src, true)
		accepted(t, "bool", codec.Bool, src, true)
		accepted(t, "int32", codec.Int32, src, true)
		accepted(t, "int64", codec.Int64, src, true)
		accepted(t, "float64", codec.Float64, src, false)
		accepted(t, "uuid", codec.UUID, src, false)
		accepted(t, "time", codec.Time, src, true)
		accepted(t, "nothing", codec.Nothing, src, true)
		accepted(t, "pair", pair, src, true)
		accepted(t, "json", typed, src, false)
		accepted(t, "untyped json", untyped, src, false)
		if !bytes.Equal(src, before) {
			t.Error("Decode changed src")
		}
	})
}
