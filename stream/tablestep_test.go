package stream

import (
	"bytes"
	"encoding/hex"
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/semelstream/semel/codec"
)

func TestStepsAreWrittenAsKafkaStreamsWritesThem(t *testing.T) {
	c := stepCodec[string]{codec.String}
	for _, test := range []struct {
		name string
		step step[string]
		want string // hex
	}{
		{"the row leaves", step[string]{old: "ab", hasOld: true}, "6162" + "00"},
		{"the row comes", step[string]{new: "c", hasNew: true}, "63" + "01"},
		{"the row changes", step[string]{old: "ab", new: "c", hasOld: true, hasNew: true}, "02" + "63" + "6162" + "02"},
		{"empty values are values", step[string]{hasOld: true, hasNew: true}, "00" + "02"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := c.Append([]byte("before"), test.step)
			if err != nil {
				t.Fatal(err)
			}
			rest, ok := bytes.CutPrefix(got, []byte("before"))
			if !ok || hex.EncodeToString(rest) != test.want {
				t.Fatalf("got %x, want %q and %s", got, "before", test.want)
			}
		})
	}
}

func TestStepsComeBackAsTheyWere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := stepCodec[string]{codec.String}
		var s step[string]
		s.hasNew = rapid.Bool().Draw(t, "hasNew")
		s.hasOld = !s.hasNew || rapid.Bool().Draw(t, "hasOld")
		text := rapid.StringN(0, 200, -1) // lengths of one and of two bytes
		if s.hasNew {
			s.new = text.Draw(t, "new")
		}
		if s.hasOld {
			s.old = text.Draw(t, "old")
		}
		b, err := c.Append(nil, s)
		if err != nil {
			t.Fatal(err)
		}
		got, err := c.Decode(b)
		if err != nil || got != s {
			t.Fatalf("got %+v, %v, want %+v", got, err, s)
		}
		if c.Own(got) != s {
			t.Fatal("Own changed the step")
		}
	})
}

func TestBytesThatAreNoStepAreADecodeError(t *testing.T) {
	c := stepCodec[string]{codec.String}
	for _, bad := range []string{
		"",       // not even a flag
		"6103",   // a flag that nobody writes
		"066102", // a length beyond the end
		"016102", // a negative length
		"02",     // no length
	} {
		src, err := hex.DecodeString(bad)
		if err != nil {
			t.Fatal(err)
		}
		if s, err := c.Decode(src); !errors.Is(err, codec.ErrDecode) {
			t.Errorf("%q: got %+v, %v", bad, s, err)
		}
	}
	inner := stepCodec[int64]{codec.Int64}
	if _, err := inner.Decode([]byte{1, 2, 3, 1}); !errors.Is(err, codec.ErrDecode) {
		t.Errorf("a value of the wrong length: %v", err)
	}
}
