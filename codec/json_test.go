package codec_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/semelstream/semel/codec"
)

var nan = math.NaN()

type order struct {
	ID    int64          `json:"id"`
	Lines map[string]int `json:"lines,omitempty"`
	At    time.Time      `json:"at,omitzero"`
	From  netip.Addr     `json:"from,omitzero"`
	Parts []part         `json:"parts,omitempty"`
	Count int            `json:"count,string,omitempty"`
}

type part struct {
	N int32 `json:"n"`
}

func TestJSONIsOneLineOfEncodingJSON(t *testing.T) {
	v := order{ID: 7, Lines: map[string]int{"<b>": 1, "a": 2}, At: time.UnixMilli(5).UTC()}
	want, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if got := encode(t, codec.JSON[order](), v); string(got) != string(want) {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestJSONEncodesNilAsNull(t *testing.T) {
	if got := encode(t, codec.JSON[*order](), nil); string(got) != "null" {
		t.Errorf("%s", got)
	}
	if v := decode(t, codec.JSON[*order](), []byte("null")); v != nil {
		t.Errorf("null became %v", v)
	}
}

// A float64 would make 9007199254740992 of the first number.
func TestJSONKeepsNumbersInUntypedData(t *testing.T) {
	const src = `{"amount":0.1,"big":9223372036854775807,"id":9007199254740993}`
	if got := encode(t, codec.JSON[any](), decode(t, codec.JSON[any](), []byte(src))); string(got) != src {
		t.Errorf("any: %s", got)
	}
	type deep struct{ M []map[string]any }
	const inner = `{"M":[{"id":9007199254740993}]}`
	if got := encode(t, codec.JSON[deep](), decode(t, codec.JSON[deep](), []byte(inner))); string(got) != inner {
		t.Errorf("deep: %s", got)
	}
}

// Each message is checked whole, and for every piece of the input that is not
// the name of a field.
func TestJSONErrorsDoNotQuoteTheInput(t *testing.T) {
	for _, c := range []struct{ src, reason string }{
		{`{"id":"secret"}`, "a JSON string does not fit into int64 of field id, at byte "},
		{`{"id":666.5}`, "a JSON number does not fit into int64 of field id, at byte "},
		{`{"lines":{"secret":true}}`, "a JSON bool does not fit into int of field lines.*, at byte "},
		{`{"parts":[{"n":"secret"}]}`, "a JSON string does not fit into int32 of field parts.*.n, at byte "},
		{`{"lines":{"secret.parts.n":true}}`, "a JSON bool does not fit into int of field lines.*.*, at byte "},
		{`{"count":"secret"}`, "a JSON number does not fit into int of field count, at byte "},
		{`{"at":"secret"}`, "failed with a *time.ParseError"},
		{`{"from":"secret"}`, "failed with a netip.parseAddrError"},
		{`secret`, "invalid JSON at byte 1"},
		{`{"id":1} secret`, "invalid JSON at byte "},
		{``, "invalid JSON at byte 0"},
		{`{"id":`, "invalid JSON at byte "},
	} {
		_, err := codec.JSON[order]().Decode([]byte(c.src))
		message := fmt.Sprintf("%v %s %q %+v", err, err, err, err)
		if !errors.Is(err, codec.ErrDecode) || !strings.HasPrefix(err.Error(), "codec: decoding json codec_test.order: "+c.reason) {
			t.Errorf("%s: %v", c.src, err)
		}
		if strings.Contains(message, "secret") || strings.Contains(message, "666") {
			t.Errorf("%s is quoted: %s", c.src, message)
		}
		if errors.Unwrap(err) == nil {
			t.Errorf("%s: the cause is lost", c.src)
		}
	}
}

func TestUntypedJSONErrorsDoNotQuoteTheInput(t *testing.T) {
	for _, c := range []struct{ src, reason string }{
		{``, "the JSON value is cut off"},
		{`{"a":`, "the JSON value is cut off"},
		{`{} {}`, "data after the JSON value"},
		{`{} secret`, "invalid JSON at byte "},
		{`1 2`, "data after the JSON value"},
		{`secret`, "invalid JSON at byte 1"},
	} {
		_, err := codec.JSON[any]().Decode([]byte(c.src))
		if !errors.Is(err, codec.ErrDecode) || !strings.HasPrefix(err.Error(), "codec: decoding json interface {}: "+c.reason) {
			t.Errorf("%q: %v", c.src, err)
		}
		if strings.Contains(fmt.Sprintf("%+v", err), "secret") {
			t.Errorf("%s is quoted: %v", c.src, err)
		}
	}
}

func TestJSONCausesAreThereForErrorsAs(t *testing.T) {
	_, err := codec.JSON[order]().Decode([]byte(`{"at":"x"}`))
	if _, ok := errors.AsType[*time.ParseError](err); !ok {
		t.Errorf("%v wraps no ParseError", err)
	}
}

type grumpy struct{ N int }

var errGrumpy = errors.New("secret")

func (grumpy) MarshalJSON() ([]byte, error) { return nil, errGrumpy }

func TestJSONThatCannotBeEncodedLeavesDstAlone(t *testing.T) {
	dst, err := codec.JSON[float64]().Append([]byte("dst"), nan)
	if string(dst) != "dst" || !errors.Is(err, codec.ErrEncode) {
		t.Errorf("Append returned %q, %v", dst, err)
	}
	dst, err = codec.JSON[grumpy]().Append([]byte("dst"), grumpy{})
	if string(dst) != "dst" || !errors.Is(err, errGrumpy) || strings.Contains(err.Error(), "secret") {
		t.Errorf("Append returned %q, %v", dst, err)
	}
	_, err = codec.JSON[any]().Append(nil, map[string]any{"secret": func() {}})
	if !errors.Is(err, codec.ErrEncode) || strings.Contains(err.Error(), "secret") {
		t.Errorf("Append returned %v", err)
	}
}

func TestJSONEncodesAgainAfterAnError(t *testing.T) {
	c := codec.JSON[float64]()
	for range 10 {
		_, _ = c.Append(nil, nan)
		if got := encode(t, c, 1.5); string(got) != "1.5" {
			t.Fatalf("%s", got)
		}
	}
}

func TestJSONEncodesRecordsLargerThanItsScratch(t *testing.T) {
	c := codec.JSON[string]()
	long := strings.Repeat("x", 200_000)
	for _, v := range []string{long, "short", long} {
		if got := decode(t, c, encode(t, c, v)); got != v {
			t.Fatalf("%d bytes became %d", len(v), len(got))
		}
	}
}

// wire has a channel, which its own method leaves out.
type wire struct{ C chan int }

func (wire) MarshalJSON() ([]byte, error) { return []byte("{}"), nil }

type loop struct {
	Next *loop
	Any  any `json:"-"`
}

func panics(f func()) (message string) {
	defer func() {
		if r := recover(); r != nil {
			message = fmt.Sprint(r)
		}
	}()
	f()
	return ""
}

func TestJSONPanicsForTypesItCannotHold(t *testing.T) {
	type inner struct{ F func() }
	for name, c := range map[string]struct {
		f    func()
		want string
	}{
		"channel":    {func() { codec.JSON[chan int]() }, "JSON has no form for a chan int"},
		"func":       {func() { codec.JSON[struct{ In []*inner }]() }, "field In: field F: JSON has no form for a func()"},
		"complex":    {func() { codec.JSON[map[string]complex128]() }, "complex128"},
		"map key":    {func() { codec.JSON[map[float64]int]() }, "map key of type float64"},
		"unexported": {func() { codec.JSON[struct{ n int }]() }, "no exported fields"},
		"error":      {func() { codec.JSON[error]() }, "interface with methods"},
	} {
		if got := panics(c.f); !strings.Contains(got, c.want) {
			t.Errorf("%s: panic is %q, want %q in it", name, got, c.want)
		}
	}
	for name, f := range map[string]func(){
		"recursive":   func() { codec.JSON[loop]() },
		"empty":       func() { codec.JSON[struct{}]() },
		"own method":  func() { codec.JSON[time.Time]() },
		"own channel": func() { codec.JSON[wire]() },
		"text key":    func() { codec.JSON[map[netip.Addr]int]() },
		"left out": func() {
			codec.JSON[struct {
				F func() `json:"-"`
				N int
			}]()
		},
		"embedded": func() { codec.JSON[struct{ part }]() },
	} {
		if got := panics(f); got != "" {
			t.Errorf("%s: %s", name, got)
		}
	}
}
