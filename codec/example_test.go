package codec_test

import (
	"errors"
	"fmt"
	"net/netip"
	"time"
	"unicode/utf8"

	"github.com/semelstream/semel/codec"
)

func Example() {
	b, err := codec.Int64.Append(nil, 42)
	fmt.Printf("%x %v\n", b, err)
	v, err := codec.Int64.Decode(b)
	fmt.Println(v, err)
	_, err = codec.Int64.Decode(b[1:])
	fmt.Println(err, errors.Is(err, codec.ErrDecode))
	// Output:
	// 000000000000002a <nil>
	// 42 <nil>
	// codec: decoding int64: 7 bytes where 8 belong true
}

func ExampleJSON() {
	type Order struct {
		ID    string `json:"id"`
		Cents int64  `json:"cents"`
	}
	orders := codec.JSON[Order]()
	b, _ := orders.Append(nil, Order{ID: "a1", Cents: 995})
	fmt.Println(string(b))
	_, err := orders.Decode([]byte(`{"id":"a1","cents":"9.95"}`))
	fmt.Println(err) // without the value
	// Output:
	// {"id":"a1","cents":995}
	// codec: decoding json codec_test.Order: a JSON string does not fit into int64 of field cents, at byte 25
}

func ExampleText() {
	addresses := codec.Text[netip.Addr]()
	b, _ := addresses.Append(nil, netip.MustParseAddr("192.0.2.1"))
	fmt.Println(string(b))
	// Output: 192.0.2.1
}

func ExampleBinary() {
	addresses := codec.Binary[netip.Addr]()
	b, _ := addresses.Append(nil, netip.MustParseAddr("192.0.2.1"))
	fmt.Println(b)
	// Output: [192 0 2 1]
}

func ExampleFunc() {
	// Kafka's ShortSerializer: two bytes, big-endian.
	short := codec.Func(
		func(dst []byte, v int16) ([]byte, error) { return append(dst, byte(v>>8), byte(v)), nil },
		func(src []byte) (int16, error) {
			if len(src) != 2 {
				return 0, errors.New("a short has two bytes")
			}
			return int16(src[0])<<8 | int16(src[1]), nil
		})
	b, _ := short.Append(nil, 258)
	fmt.Println(b)
	_, err := short.Decode(nil)
	fmt.Println(err)
	// Output:
	// [1 2]
	// codec: decoding func int16: a short has two bytes
}

func ExampleVia() {
	seconds := codec.Via(codec.Int64,
		func(d time.Duration) int64 { return int64(d / time.Second) },
		func(n int64) (time.Duration, error) { return time.Duration(n) * time.Second, nil })
	b, _ := seconds.Append(nil, time.Minute)
	fmt.Println(b)
	// Output: [0 0 0 0 0 0 0 60]
}

// A codec of strings that takes UTF-8 only.
func ExampleVia_strict() {
	valid := func(s string) (string, error) {
		if !utf8.ValidString(s) {
			return "", errors.New("not UTF-8")
		}
		return s, nil
	}
	strict := codec.Via(codec.String, func(s string) string { return s }, valid)
	_, err := strict.Decode([]byte{0xff})
	fmt.Println(err)
	// Output: codec: decoding via string: not UTF-8
}

func ExamplePair() {
	seats := codec.Pair(codec.String, codec.Int32)
	b, _ := seats.Append(nil, codec.Two[string, int32]{First: "row7", Second: 12})
	fmt.Printf("%q\n", b)
	// Output: "\x00\x00\x00\x04row7\x00\x00\x00\f"
}

func ExampleFor() {
	type OrderID string
	ids, _ := codec.For[OrderID]()
	b, _ := ids.Append(nil, "a1")
	fmt.Println(string(b))
	_, err := codec.For[func()]()
	fmt.Println(err)
	// Output:
	// a1
	// no codec for a type: func(): JSON has no form for a func(); give one, for example with codec.Func, or add MarshalBinary and UnmarshalBinary
}

func ExampleOwner() {
	src := []byte("fetched")
	view, _ := codec.String.Decode(src)
	kept := codec.String.(codec.Owner[string]).Own(view)
	copy(src, "reused!") // the bytes go away
	fmt.Println(kept)
	// Output: fetched
}
