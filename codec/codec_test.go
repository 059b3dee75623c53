package codec_test

import (
	"bytes"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/semelstream/semel/codec"
	"pgregory.net/rapid"
)

// fataler is what *testing.T and *rapid.T have in common here.
type fataler interface {
	Helper()
	Errorf(format string, args ...any)
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// encode fails the test on an error, and checks what Append promises: what is
// in dst stays before the encoding.
func encode[T any](t fataler, c codec.Codec[T], v T) []byte {
	t.Helper()
	b, err := c.Append([]byte("before"), v)
	if err != nil {
		t.Fatal(err)
	}
	rest, ok := bytes.CutPrefix(b, []byte("before"))
	if !ok {
		t.Fatalf("Append changed what was in dst: %q", b)
	}
	return rest
}

func decode[T any](t fataler, c codec.Codec[T], src []byte) T {
	t.Helper()
	v, err := c.Decode(src)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// refuses checks that src is refused with ErrDecode and the zero value, and
// returns the error.
func refuses[T comparable](t fataler, c codec.Codec[T], src string) *codec.Error {
	t.Helper()
	var zero T
	v, err := c.Decode([]byte(src))
	if !errors.Is(err, codec.ErrDecode) || errors.Is(err, codec.ErrEncode) {
		t.Fatalf("decoding %q: %v, want an ErrDecode", src, err)
	}
	if v != zero {
		t.Errorf("decoding %q returned a value beside the error", src)
	}
	e, ok := errors.AsType[*codec.Error](err)
	if !ok {
		t.Fatalf("%T is no *codec.Error", err)
	}
	return e
}

func fixed[T comparable](name string, c codec.Codec[T], v T, want string) func(*testing.T) {
	return func(t *testing.T) {
		if got := encode(t, c, v); string(got) != want {
			t.Errorf("%s: %v is %x, want %x", name, v, got, want)
		}
		if got := decode(t, c, []byte(want)); got != v && v == v { //nolint:gocritic // a NaN is not itself
			t.Errorf("%s: %x is %v, want %v", name, want, got, v)
		}
	}
}

// The bytes are what the serializers of Kafka 4.4's Java client write.
func TestBytesAreThoseOfKafkasSerializers(t *testing.T) {
	for _, check := range []func(*testing.T){
		fixed("string", codec.String, "naïve é€😀", "\x6e\x61\xc3\xaf\x76\x65\x20\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"),
		fixed("string", codec.String, "", ""),
		fixed("bool", codec.Bool, true, "\x01"),
		fixed("bool", codec.Bool, false, "\x00"),
		fixed("int32", codec.Int32, 1, "\x00\x00\x00\x01"),
		fixed("int32", codec.Int32, -1, "\xff\xff\xff\xff"),
		fixed("int32", codec.Int32, math.MinInt32, "\x80\x00\x00\x00"),
		fixed("int32", codec.Int32, math.MaxInt32, "\x7f\xff\xff\xff"),
		fixed("int64", codec.Int64, 42, "\x00\x00\x00\x00\x00\x00\x00\x2a"),
		fixed("int64", codec.Int64, -1, "\xff\xff\xff\xff\xff\xff\xff\xff"),
		fixed("int64", codec.Int64, math.MinInt64, "\x80\x00\x00\x00\x00\x00\x00\x00"),
		fixed("int64", codec.Int64, math.MaxInt64, "\x7f\xff\xff\xff\xff\xff\xff\xff"),
		fixed("float64", codec.Float64, 1.5, "\x3f\xf8\x00\x00\x00\x00\x00\x00"),
		fixed("float64", codec.Float64, -1.5, "\xbf\xf8\x00\x00\x00\x00\x00\x00"),
		fixed("float64", codec.Float64, math.Copysign(0, -1), "\x80\x00\x00\x00\x00\x00\x00\x00"),
		fixed("float64", codec.Float64, math.Inf(1), "\x7f\xf0\x00\x00\x00\x00\x00\x00"),
		fixed("float64", codec.Float64, math.SmallestNonzeroFloat64, "\x00\x00\x00\x00\x00\x00\x00\x01"),
		fixed("float64", codec.Float64, math.NaN(), "\x7f\xf8\x00\x00\x00\x00\x00\x00"),
		fixed("uuid", codec.UUID, [16]byte{0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff},
			"00112233-4455-6677-8899-aabbccddeeff"),
		fixed("time", codec.Time, time.UnixMilli(1700000000123).UTC(), "\x00\x00\x01\x8b\xcf\xe5\x68\x7b"),
		fixed("time", codec.Time, time.UnixMilli(-1).UTC(), "\xff\xff\xff\xff\xff\xff\xff\xff"),
		fixed("nothing", codec.Nothing, struct{}{}, ""),
	} {
		check(t)
	}
}

func TestBytesThatAreNoEncodingAreRefused(t *testing.T) {
	for _, src := range []string{"", "\x01\x01", "\x02", "\xff"} {
		refuses(t, codec.Bool, src)
	}
	for _, src := range []string{"", "abc", "abcde", "abcdefgh"} {
		refuses(t, codec.Int32, src)
	}
	for _, src := range []string{"", "abcd", "abcdefg", "abcdefghi"} {
		refuses(t, codec.Int64, src)
		refuses(t, codec.Float64, src)
		refuses(t, codec.Time, src)
	}
	refuses(t, codec.Nothing, "x")
	for _, src := range []string{
		"",
		"0123456789abcdef",                      // raw bytes
		"00112233445566778899aabbccddeeff",      // no hyphens
		"00112233-4455-6677-8899-aabbccddeef",   // short
		"00112233-4455-6677-8899-aabbccddeefff", // long
		"00112233-4455-6677-8899-aabbccddeefg",  // no digit
		"0011223-34455-6677-8899-aabbccddeeff",  // hyphen too early
		"00112233-4455-6677-8899aaabbccddeeff",  // hyphen missing
		"{0112233-4455-6677-8899-aabbccddeef}",
	} {
		refuses(t, codec.UUID, src)
	}
}

func TestUUIDTakesUpperCaseToo(t *testing.T) {
	upper := decode(t, codec.UUID, []byte("00112233-4455-6677-8899-AABBCCDDEEFF"))
	if got := encode(t, codec.UUID, upper); string(got) != "00112233-4455-6677-8899-aabbccddeeff" {
		t.Errorf("came back as %s", got)
	}
}

func TestErrorsSayWhichCodecAndWhy(t *testing.T) {
	err := refuses(t, codec.Int64, "seven77")
	if want := "codec: decoding int64: 7 bytes where 8 belong"; err.Error() != want {
		t.Errorf("%q, want %q", err, want)
	}
}

func TestLocateSaysWhichRecord(t *testing.T) {
	_, cause := codec.Bool.Decode(nil)
	err := codec.Locate(cause, "orders", 3, 42, "value")
	if want := "value of orders/3 at offset 42: codec: decoding bool: 0 bytes where 1 belong"; err.Error() != want {
		t.Errorf("%q, want %q", err, want)
	}
	if !errors.Is(err, codec.ErrDecode) {
		t.Error("it is no ErrDecode any more")
	}
	if codec.Locate(nil, "orders", 3, 42, "value") != nil {
		t.Error("no error became one")
	}
}

func TestStringKeepsBytesThatAreNotUTF8(t *testing.T) {
	src := "\xff\xfe\x00\xc3\x28"
	if got := encode(t, codec.String, decode(t, codec.String, []byte(src))); string(got) != src {
		t.Errorf("%x became %x", src, got)
	}
}

func TestBytesDecodesEmptyAndNilAsEmpty(t *testing.T) {
	for _, src := range [][]byte{nil, {}} {
		if v := decode(t, codec.Bytes, src); v == nil || len(v) != 0 {
			t.Errorf("%#v became %#v", src, v)
		}
	}
	if got := encode(t, codec.Bytes, nil); len(got) != 0 {
		t.Errorf("nil became %x", got)
	}
}

func TestAppendingToDecodedBytesLeavesWhatFollowsAlone(t *testing.T) {
	batch := []byte("firstsecond")
	_ = append(decode(t, codec.Bytes, batch[:5]), "XXX"...)
	if string(batch) != "firstsecond" {
		t.Errorf("the batch became %s", batch)
	}
}

func TestTimeCutsTowardsThePast(t *testing.T) {
	for _, c := range []struct {
		nanos, ms int64
	}{{1_999_999, 1}, {-1, -1}, {-1_000_000, -1}, {-1_000_001, -2}} {
		in := time.Unix(0, c.nanos).In(time.FixedZone("elsewhere", 3600))
		got := decode(t, codec.Time, encode(t, codec.Time, in))
		if got.UnixMilli() != c.ms || got.Location() != time.UTC {
			t.Errorf("%d ns became %v", c.nanos, got)
		}
	}
}

func TestTimeOutOfRangeIsRefused(t *testing.T) {
	for _, v := range []time.Time{time.Unix(math.MaxInt64/1000+1, 0), time.Unix(math.MinInt64/1000-2, 0), time.Unix(1<<60, 0)} {
		dst, err := codec.Time.Append([]byte("dst"), v)
		if !errors.Is(err, codec.ErrEncode) || string(dst) != "dst" {
			t.Errorf("Append returned %q, %v", dst, err)
		}
	}
	for _, ms := range []int64{math.MinInt64, math.MaxInt64, 0} {
		if got := decode(t, codec.Time, encode(t, codec.Time, time.UnixMilli(ms))); got.UnixMilli() != ms {
			t.Errorf("%d became %v", ms, got)
		}
	}
	if got := decode(t, codec.Time, encode(t, codec.Time, time.Time{})); !got.IsZero() {
		t.Errorf("the zero time became %v", got)
	}
}

func identity[T comparable](t *rapid.T, c codec.Codec[T], v T) {
	if got := decode(t, c, encode(t, c, v)); got != v {
		t.Fatalf("%v became %v", v, got)
	}
}

func TestDecodeIsTheInverseOfAppend(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		identity(t, codec.String, string(rapid.SliceOf(rapid.Byte()).Draw(t, "string")))
		identity(t, codec.Bool, rapid.Bool().Draw(t, "bool"))
		identity(t, codec.Int32, rapid.Int32().Draw(t, "int32"))
		identity(t, codec.Int64, rapid.Int64().Draw(t, "int64"))
		identity(t, codec.Float64, rapid.Float64().Draw(t, "float64"))
		identity(t, codec.Time, time.UnixMilli(rapid.Int64().Draw(t, "time")).UTC())
		identity(t, codec.UUID, [16]byte(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "uuid")))
	})
}

// The order of the encodings is what the package page promises.
func TestEncodingsSortAsPromised(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sorted(t, codec.String, rapid.String(), func(a, b string) bool { return a < b })
		sorted(t, codec.Int64, rapid.Int64Min(0), func(a, b int64) bool { return a < b })
		sorted(t, codec.Int32, rapid.Int32Min(0), func(a, b int32) bool { return a < b })
		sorted(t, codec.Float64, rapid.Float64Min(0), func(a, b float64) bool { return a < b })
		sorted(t, codec.UUID, rapid.Custom(func(t *rapid.T) [16]byte {
			return [16]byte(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "uuid"))
		}), func(a, b [16]byte) bool { return bytes.Compare(a[:], b[:]) < 0 })
	})
}

func sorted[T comparable](t *rapid.T, c codec.Codec[T], gen *rapid.Generator[T], less func(a, b T) bool) {
	a, b := gen.Draw(t, "a"), gen.Draw(t, "b")
	if a == b { // 0 and -0 are equal, but not in bytes
		return
	}
	if got := bytes.Compare(encode(t, c, a), encode(t, c, b)) < 0; got != less(a, b) {
		t.Fatalf("%v < %v is %v in bytes", a, b, got)
	}
}
