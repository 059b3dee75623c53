package codec_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"reflect"
	"testing"

	"github.com/semelstream/semel/codec"
)

type word string

func same[T any](v T) T { return v }

func toWord(s string) (word, error) { return word(s), nil }

// standsAlone decodes src, owns the value, changes src, and expects the owned
// value not to notice. Without Own it must notice, or the test shows nothing.
func standsAlone[T any](t *testing.T, c codec.Codec[T], src []byte) {
	t.Helper()
	owner, ok := c.(codec.Owner[T])
	if !ok {
		t.Fatalf("%T is no Owner", c)
	}
	want := encode(t, c, decode(t, c, src))
	view := decode(t, c, src)
	owned := owner.Own(view)
	for i := range src[len(src)-3:] { // the last bytes only, to leave lengths alone
		src[len(src)-3+i] = '!'
	}
	if got := encode(t, c, owned); !bytes.Equal(got, want) {
		t.Errorf("%T: the owned value changed with src: %q, was %q", c, got, want)
	}
	if got := encode(t, c, view); bytes.Equal(got, want) {
		t.Errorf("%T: the value before Own is no view", c)
	}
}

func TestOwnedValuesKeepNothingOfTheirBytes(t *testing.T) {
	pair := []byte("\x00\x00\x00\x03onetwo")
	standsAlone(t, codec.String, []byte("text"))
	standsAlone(t, codec.Bytes, []byte("text"))
	standsAlone(t, codec.Via(codec.String, func(w word) string { return string(w) }, toWord), []byte("text"))
	standsAlone(t, codec.Pair(codec.String, codec.String), bytes.Clone(pair))
	standsAlone(t, codec.Pair(codec.String, codec.Bytes), bytes.Clone(pair))
	standsAlone(t, codec.Pair(codec.Pair(codec.Bool, codec.Bool), codec.String), []byte("\x00\x00\x00\x06\x00\x00\x00\x01\x01\x00text"))
	defined, err := codec.For[word]()
	if err != nil {
		t.Fatal(err)
	}
	standsAlone(t, defined, []byte("text"))
}

func TestFirstOfAPairIsOwnedToo(t *testing.T) {
	c := codec.Pair(codec.String, codec.Int32)
	src := []byte("\x00\x00\x00\x03one\x00\x00\x00\x07")
	owned := c.(codec.Owner[codec.Two[string, int32]]).Own(decode(t, c, src))
	src[4] = '!'
	if owned.First != "one" {
		t.Errorf("it became %q", owned.First)
	}
}

func TestOwnKeepsEmptyBytesEmpty(t *testing.T) {
	if v := codec.Bytes.(codec.Owner[[]byte]).Own([]byte{}); v == nil || len(v) != 0 {
		t.Errorf("empty became %#v", v)
	}
}

func noOwner[T any](t *testing.T, c codec.Codec[T]) {
	t.Helper()
	if _, ok := c.(codec.Owner[T]); ok {
		t.Errorf("%T for %v copies what stands alone", c, reflect.TypeFor[T]())
	}
}

// Stores call Own for each value that is put, so it must not be there for
// nothing.
func TestCodecsOfValuesThatStandAloneAreNoOwners(t *testing.T) {
	noOwner(t, codec.Int64)
	noOwner(t, codec.UUID)
	noOwner(t, codec.JSON[string]())
	noOwner(t, codec.Pair(codec.Int64, codec.Bool))
	noOwner(t, codec.Func(codec.String.Append, codec.String.Decode))
	noOwner(t, codec.Via(codec.String, func(n [2]int16) string { return "" }, func(string) (n [2]int16, err error) { return n, nil }))
	noOwner(t, codec.Via(codec.Int64, same[int64], func(n int64) (int64, error) { return n, nil }))
}

func TestOwnLeavesAloneWhatWasNeverDecoded(t *testing.T) {
	c := codec.Via(codec.String, func(w word) string { return string(w) }, func(s string) (word, error) {
		if s == "never" {
			return "", errors.New("no such word")
		}
		return word(s), nil
	})
	if got := c.(codec.Owner[word]).Own("never"); got != "never" {
		t.Errorf("it became %q", got)
	}
}

func TestPairIsLengthFirstSecond(t *testing.T) {
	c := codec.Pair(codec.String, codec.Int32)
	fixed("pair", c, codec.Two[string, int32]{First: "ab", Second: 7}, "\x00\x00\x00\x02ab\x00\x00\x00\x07")(t)
	fixed("empty first", c, codec.Two[string, int32]{Second: 7}, "\x00\x00\x00\x00\x00\x00\x00\x07")(t)
	for _, src := range []string{
		"", "\x00\x00\x00", // no length
		"\x00\x00\x00\x07ab\x00\x00\x00\x07", // more than there is
		"\xff\xff\xff\xffab\x00\x00\x00\x07",
		"\x00\x00\x00\x02ab\x00\x00\x07", // the second is refused
	} {
		refuses(t, c, src)
	}
	refuses(t, codec.Pair(codec.Bool, codec.String), "\x00\x00\x00\x01\x07")
}

func TestPairsOfOneFirstLieTogether(t *testing.T) {
	c := codec.Pair(codec.String, codec.String)
	two := func(a, b string) []byte { return encode(t, c, codec.Two[string, string]{First: a, Second: b}) }
	prefix := binary.BigEndian.AppendUint32(nil, 1)
	prefix = append(prefix, 'a')
	if bytes.HasPrefix(two("ab", "c"), prefix) {
		t.Error(`"ab" lies between the pairs of "a"`)
	}
	if !(bytes.Compare(two("a", "c"), two("a", "d")) < 0 && bytes.Compare(two("a", "z"), two("b", "a")) < 0) {
		t.Error("pairs are not sorted by first, then second")
	}
}

func TestFirstOfAPairCannotWriteOverTheSecond(t *testing.T) {
	rude := codec.Func(codec.Int64.Append, func(src []byte) (int64, error) {
		return int64(len(append(src, "!!!!"...))), nil
	})
	src := []byte("\x00\x00\x00\x02ab\x00\x00\x00\x07")
	if got := decode(t, codec.Pair(rude, codec.Int32), src); got.Second != 7 {
		t.Errorf("the second became %x", got.Second)
	}
}

func TestPairLeavesDstAloneOnAnError(t *testing.T) {
	bad := codec.JSON[float64]()
	for _, v := range []codec.Two[float64, float64]{{First: nan}, {Second: nan}} {
		dst, err := codec.Pair(bad, bad).Append([]byte("dst"), v)
		if string(dst) != "dst" || !errors.Is(err, codec.ErrEncode) {
			t.Errorf("Append returned %q, %v", dst, err)
		}
	}
}
