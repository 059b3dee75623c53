package codec_test

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"
	"uuid"

	"github.com/semelstream/semel/codec"
)

type (
	flag    bool
	small   int32
	big64   int64
	plain   int
	blob    []byte
	id16    [16]byte
	stamp   time.Time
	nothing struct{}
)

func pick[T any](t fataler) codec.Codec[T] {
	t.Helper()
	c, err := codec.For[T]()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// picks checks the bytes of v, and that they come back to the same bytes.
func picks[T any](t *testing.T, v T, want string) {
	t.Helper()
	c := pick[T](t)
	if got := encode(t, c, v); string(got) != want {
		t.Errorf("%T is %x, want %x", v, got, want)
	}
	if got := encode(t, c, decode(t, c, []byte(want))); string(got) != want {
		t.Errorf("%T came back as %x, want %x", v, got, want)
	}
}

func TestForPicksTheBuiltInOneAlsoForDefinedTypes(t *testing.T) {
	const seven = "\x00\x00\x00\x00\x00\x00\x00\x07"
	const u = "00112233-4455-6677-8899-aabbccddeeff"
	id := [16]byte(uuid.MustParse(u))
	picks(t, "text", "text")
	picks(t, word("text"), "text")
	picks(t, []byte("text"), "text")
	picks(t, blob("text"), "text")
	picks(t, json.RawMessage("{}"), "{}")
	picks(t, true, "\x01")
	picks(t, flag(true), "\x01")
	picks(t, int32(7), seven[4:])
	picks(t, small(7), seven[4:])
	picks(t, int64(7), seven)
	picks(t, big64(7), seven)
	picks(t, time.Duration(7), seven)
	picks(t, 7, seven)
	picks(t, plain(7), seven)
	picks(t, 1.5, "\x3f\xf8\x00\x00\x00\x00\x00\x00")
	picks(t, celsius(1.5), "\x3f\xf8\x00\x00\x00\x00\x00\x00")
	picks(t, id, u)
	picks(t, id16(id), u)
	picks(t, uuid.UUID(id), u)
	picks(t, time.UnixMilli(7), seven)
	picks(t, stamp(time.UnixMilli(7)), seven)
	picks(t, struct{}{}, "")
	picks(t, nothing{}, "")
}

func TestForPicksTheTypesOwnBytesElseJSON(t *testing.T) {
	picks(t, netip.MustParseAddr("10.1.2.3"), "\x0a\x01\x02\x03")
	picks(t, part{N: 7}, `{"n":7}`)
	picks(t, &part{N: 7}, `{"n":7}`)
	picks(t, int16(7), "7")
	picks(t, []string{"a"}, `["a"]`)
	picks[any](t, "a", `"a"`)
	picks(t, [4]byte{1}, "[1,0,0,0]")
}

func TestForReportsTypesWithoutACodec(t *testing.T) {
	_, a := codec.For[chan int]()
	_, b := codec.For[struct{ n int }]()
	_, c := codec.For[fmt.Stringer]()
	for _, err := range []error{a, b, c} {
		if err == nil || !strings.Contains(err.Error(), "give one") {
			t.Errorf("error is %v", err)
		}
	}
}

func TestDefinedTypesRefuseWhatTheirsDoes(t *testing.T) {
	refuses(t, pick[small](t), "x")
	refuses(t, pick[plain](t), "x")
	refuses(t, pick[flag](t), "x")
}
