package codec_test

import (
	"errors"
	"fmt"
	"math/big"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/semelstream/semel/codec"
)

func TestTextIsTheTypesOwn(t *testing.T) {
	fixed("appender", codec.Text[netip.Addr](), netip.MustParseAddr("10.1.2.3"), "10.1.2.3")(t)
	c := codec.Text[*big.Int]()
	v := new(big.Int).Lsh(big.NewInt(1), 70)
	if got := encode(t, c, v); string(got) != v.String() {
		t.Errorf("pointer: %s", got)
	}
	if got := decode(t, c, []byte(v.String())); got.Cmp(v) != 0 {
		t.Errorf("pointer: %v", got)
	}
	// The methods of big.Int are those of *big.Int.
	if got := encode(t, codec.Text[big.Int](), *v); string(got) != v.String() {
		t.Errorf("value: %s", got)
	}
}

func TestBinaryIsTheTypesOwn(t *testing.T) {
	fixed("appender", codec.Binary[netip.Addr](), netip.MustParseAddr("10.1.2.3"), "\x0a\x01\x02\x03")(t)
	fixed("marshaler", codec.Binary[url.URL](), url.URL{Scheme: "https", Host: "example.com"}, "https://example.com")(t)
}

func TestNilPointersAreRefused(t *testing.T) {
	dst, err := codec.Text[*big.Int]().Append([]byte("dst"), nil)
	if string(dst) != "dst" || !errors.Is(err, codec.ErrEncode) {
		t.Errorf("Append returned %q, %v", dst, err)
	}
	dst, err = codec.Binary[*url.URL]().Append([]byte("dst"), nil)
	if string(dst) != "dst" || !errors.Is(err, codec.ErrEncode) {
		t.Errorf("Append returned %q, %v", dst, err)
	}
}

func TestErrorsOfMethodsAreWrappedButNotPrinted(t *testing.T) {
	for _, decode := range []func() error{
		func() error { _, err := codec.Text[netip.Addr]().Decode([]byte("secret")); return err },
		func() error { _, err := codec.Text[*big.Int]().Decode([]byte("secret")); return err },
		func() error { _, err := codec.Binary[netip.Addr]().Decode([]byte("secret")); return err },
		func() error { _, err := codec.Binary[*url.URL]().Decode([]byte("\x7fsecret")); return err },
	} {
		err := decode()
		if !errors.Is(err, codec.ErrDecode) || errors.Unwrap(err) == nil {
			t.Errorf("%v is no ErrDecode with a cause", err)
		}
		if strings.Contains(fmt.Sprintf("%v%+v%q", err, err, err), "secret") {
			t.Errorf("it is quoted: %v", err)
		}
	}
}

// stubborn writes half of itself and then fails.
type stubborn struct{ n int }

func (*stubborn) AppendText(dst []byte) ([]byte, error) {
	return append(dst, "half"...), errGrumpy
}
func (s *stubborn) UnmarshalText(src []byte) error { s.n = len(src); return errGrumpy }

func TestMethodsThatFailHalfwayLeaveNothing(t *testing.T) {
	dst, err := codec.Text[stubborn]().Append([]byte("dst"), stubborn{})
	if string(dst) != "dst" || !errors.Is(err, errGrumpy) {
		t.Errorf("Append returned %q, %v", dst, err)
	}
	refuses(t, codec.Text[stubborn](), "abc")
	if _, err = codec.Text[*stubborn]().Append([]byte("dst"), &stubborn{}); !errors.Is(err, errGrumpy) {
		t.Errorf("Append returned %v", err)
	}
	refuses(t, codec.Text[*stubborn](), "abc")
}

type encodeOnly struct{}

func (encodeOnly) MarshalText() ([]byte, error) { return nil, nil }

func TestTextAndBinaryPanicWithoutTheMethods(t *testing.T) {
	for _, f := range []func(){
		func() { codec.Text[order]() },
		func() { codec.Text[encodeOnly]() },
		func() { codec.Binary[string]() },
		func() { codec.Binary[encodeOnly]() },
		func() { codec.Text[fmt.Stringer]() },
		func() { codec.Text[**big.Int]() },
	} {
		if got := panics(f); !strings.Contains(got, "needs the methods") {
			t.Errorf("panic is %q", got)
		}
	}
}

// selfish refers to itself: a copy lives on what it was copied from.
type selfish struct {
	room [8]byte
	data []byte
}

func (s *selfish) MarshalBinary() ([]byte, error) { return s.data, nil }
func (s *selfish) UnmarshalBinary(src []byte) error {
	s.data = append(s.room[:0], src...)
	return nil
}

func TestDecodedValuesMayReferToThemselves(t *testing.T) {
	c := codec.Binary[selfish]()
	first := decode(t, c, []byte("first"))
	_ = encode(t, c, first)
	_ = decode(t, c, []byte("other"))
	if string(first.data) != "first" {
		t.Errorf("the first value became %s", first.data)
	}
}
