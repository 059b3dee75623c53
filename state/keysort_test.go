package state

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// Keys of all lengths, with what they have in common and what they repeat, come out
// as a stable sort by bytes.Compare has them.
func TestKeySorterIsAStableSort(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.SampledFrom([]int{0, 1, 2, fewKeys, fewKeys + 1, 700}).Draw(t, "n")
		prefix := rapid.SliceOfN(rapid.Byte(), 0, 12).Draw(t, "prefix")
		letters := rapid.SampledFrom([]int{1, 2, 256}).Draw(t, "letters")
		size := rapid.IntRange(0, 12).Draw(t, "size")
		rest := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) []byte {
			b := rapid.SliceOfN(rapid.Byte(), 0, size).Draw(t, "rest")
			for i := range b {
				b[i] %= byte(min(letters, 255))
			}
			return b
		}), n, n).Draw(t, "keys")
		keys := make([][]byte, n)
		want := make([]uint32, n)
		for i := range keys {
			keys[i], want[i] = append(bytes.Clone(prefix), rest[i]...), uint32(i)
		}
		slices.SortStableFunc(want, func(a, b uint32) int { return bytes.Compare(keys[a], keys[b]) })
		var s keySorter
		for range 2 { // its memory is used again
			s.sort(n, func(i uint32) []byte { return keys[i] })
			for i, at := range want {
				if s.order[i].at != at {
					t.Fatalf("place %d has key %d %x, want %d %x", i, s.order[i].at, keys[s.order[i].at], at, keys[at])
				}
			}
		}
	})
}

func BenchmarkKeySorter(b *testing.B) {
	for _, n := range []int{10, 1000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			keys := randomBytes(n)
			var s keySorter
			b.ReportAllocs()
			for range b.N {
				s.sort(n, func(i uint32) []byte { return keys[i] })
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/key")
		})
	}
}

// randomBytes are keys of a window: a time, and 16 bytes.
func randomBytes(n int) [][]byte {
	keys := make([][]byte, n)
	x := uint64(1)
	for i := range keys {
		x = x*6364136223846793005 + 1442695040888963407
		keys[i] = fmt.Appendf(addTime(nil, 1e12), "%016x", x)
	}
	return keys
}
