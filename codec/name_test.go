package codec_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/semelstream/semel/codec"
)

type namedText string

type ownCodec[T any] struct{ codec.Codec[T] }

type tellingCodec struct{ ownCodec[string] }

func (tellingCodec) String() string { return "telling" }

func TestNamesAreOfFormatsNotOfTypes(t *testing.T) {
	defined, err := codec.For[namedText]()
	if err != nil {
		t.Fatal(err)
	}
	ints, err := codec.For[int]()
	if err != nil {
		t.Fatal(err)
	}
	var none codec.Codec[string]
	for want, got := range map[string]string{
		"string":                   codec.Name(codec.String),
		"bytes":                    codec.Name(codec.Bytes),
		"json":                     codec.Name(codec.JSON[struct{ A int }]()),
		"text":                     codec.Name(codec.Text[netip.Addr]()),
		"binary":                   codec.Name(codec.Binary[time.Time]()),
		"pair of string and int64": codec.Name(codec.Pair(codec.String, codec.Int64)),
		"codec_test.ownCodec":      codec.Name[string](ownCodec[string]{codec.String}),
		"telling":                  codec.Name[string](tellingCodec{}),
		"":                         codec.Name(none),
	} {
		if got != want {
			t.Errorf("a codec is called %q, want %q", got, want)
		}
	}
	if got := codec.Name(defined); got != "string" {
		t.Errorf("the codec of a type that is a string is called %q", got)
	}
	if got := codec.Name(ints); got != "int64" {
		t.Errorf("the codec of int is called %q, and writes int64", got)
	}
	via := codec.Via(codec.Int64, func(d time.Duration) int64 { return int64(d) }, func(n int64) (time.Duration, error) { return time.Duration(n), nil })
	if got := codec.Name(via); got != "int64" {
		t.Errorf("a codec by way of int64 is called %q", got)
	}
}
