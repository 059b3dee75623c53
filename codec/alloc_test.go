//go:build !race

package codec_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/semelstream/semel/codec"
)

// allocs counts the allocations of one encoding and one decoding. The race
// detector makes pools drop things, so this file is not for it.
func allocs[T any](t *testing.T, name string, c codec.Codec[T], v T, want float64) {
	t.Helper()
	buf := make([]byte, 0, 256)
	src := encode(t, c, v)
	var sink T
	got := testing.AllocsPerRun(100, func() {
		var err error
		if buf, err = c.Append(buf[:0], v); err != nil {
			t.Fatal(err)
		}
		if sink, err = c.Decode(src); err != nil {
			t.Fatal(err)
		}
	})
	_ = sink
	if got > want {
		t.Errorf("%s: %v allocations, want %v", name, got, want)
	}
}

func TestPlainTypesDoNotAllocate(t *testing.T) {
	allocs(t, "string", codec.String, "some text that is not short", 0)
	allocs(t, "bytes", codec.Bytes, []byte("text"), 0)
	allocs(t, "bool", codec.Bool, true, 0)
	allocs(t, "int32", codec.Int32, 1<<20, 0)
	allocs(t, "int64", codec.Int64, 1<<40, 0)
	allocs(t, "float64", codec.Float64, 1.5, 0)
	allocs(t, "uuid", codec.UUID, [16]byte{1}, 0)
	allocs(t, "time", codec.Time, time.UnixMilli(1<<40), 0)
	allocs(t, "nothing", codec.Nothing, struct{}{}, 0)
	allocs(t, "defined string", pick[word](t), "some text", 0)
	allocs(t, "defined int64", pick[big64](t), 1<<40, 0)
	allocs(t, "int", pick[int](t), 1<<40, 0)
	allocs(t, "defined int", pick[plain](t), 1<<40, 0)
	allocs(t, "defined time", pick[stamp](t), stamp(time.UnixMilli(1<<40)), 0)
	allocs(t, "pair", codec.Pair(codec.String, codec.Int64), codec.Two[string, int64]{First: "a", Second: 1 << 40}, 0)
	allocs(t, "via", codec.Via(codec.Float64, func(c celsius) float64 { return float64(c) },
		func(f float64) (celsius, error) { return celsius(f), nil }), 1.5, 0)
}

// What is decoded must be somewhere; nothing else is allocated.
func TestOtherTypesAllocateOnlyTheDecodedValue(t *testing.T) {
	allocs(t, "text", codec.Text[netip.Addr](), netip.MustParseAddr("10.1.2.3"), 2) // one is of netip
	allocs(t, "binary", codec.Binary[netip.Addr](), netip.MustParseAddr("10.1.2.3"), 1)
	allocs(t, "json", codec.JSON[part](), part{N: 7}, 1)
}
