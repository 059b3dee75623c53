package codec_test

import (
	"errors"
	"testing"

	"github.com/semelstream/semel/codec"
)

var errTooWarm = errors.New("too warm")

type celsius float64

func TestFuncErrorsAreWrappedAndPrinted(t *testing.T) {
	c := codec.Func(
		func(dst []byte, _ celsius) ([]byte, error) { return append(dst, "half"...), errTooWarm },
		func(src []byte) (celsius, error) { return 7, errTooWarm })
	dst, err := c.Append([]byte("dst"), 1)
	if string(dst) != "dst" || !errors.Is(err, errTooWarm) || !errors.Is(err, codec.ErrEncode) ||
		err.Error() != "codec: encoding func codec_test.celsius: too warm" {
		t.Errorf("Append returned %q, %v", dst, err)
	}
	if err := refuses(t, c, "x"); !errors.Is(err, errTooWarm) || err.Error() != "codec: decoding func codec_test.celsius: too warm" {
		t.Errorf("Decode returned %v", err)
	}
}

func TestErrorsOfInnerCodecsAreNotWrappedTwice(t *testing.T) {
	const want = "codec: decoding float64: 1 bytes where 8 belong"
	f := codec.Func(codec.Float64.Append, codec.Float64.Decode)
	if err := refuses(t, f, "x"); err.Error() != want {
		t.Errorf("func: %v", err)
	}
	via := codec.Via(codec.Float64, func(c celsius) float64 { return float64(c) }, func(f float64) (celsius, error) { return celsius(f), nil })
	if err := refuses(t, via, "x"); err.Error() != want {
		t.Errorf("via: %v", err)
	}
}

func TestViaMayRefuse(t *testing.T) {
	c := codec.Via(codec.Float64,
		func(c celsius) float64 { return float64(c) },
		func(f float64) (celsius, error) {
			if f > 100 {
				return 7, errTooWarm
			}
			return celsius(f), nil
		})
	fixed("via", c, 1.5, "\x3f\xf8\x00\x00\x00\x00\x00\x00")(t)
	err := refuses(t, c, string(encode(t, codec.Float64, 101)))
	if !errors.Is(err, errTooWarm) || err.Error() != "codec: decoding via codec_test.celsius: too warm" {
		t.Errorf("Decode returned %v", err)
	}
}
