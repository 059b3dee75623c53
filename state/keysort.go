package state

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"
)

// A keySorter finds the order of many keys, equal ones in the order in which they
// came. It touches most keys once.
type keySorter struct {
	order []keyTurn
	spare []keyTurn
}

// A keyTurn stands for a key.
type keyTurn struct {
	head uint64 // the eight bytes behind what all keys begin with
	at   uint32 // which key
}

// fewKeys are sorted by comparing.
const fewKeys = 64

// sort orders n keys.
func (s *keySorter) sort(n int, key func(i uint32) []byte) {
	s.order = slices.Grow(s.order[:0], n)[:n]
	if n == 0 {
		return
	}
	first := key(0)
	common := len(first)
	for i := range s.order {
		common = commonPrefix(first[:common], key(uint32(i)))
	}
	for i := range s.order {
		s.order[i] = keyTurn{headOf(key(uint32(i))[common:]), uint32(i)}
	}
	compare := func(a, b keyTurn) int {
		if a.head != b.head {
			return cmp.Compare(a.head, b.head)
		}
		return cmp.Or(bytes.Compare(key(a.at), key(b.at)), cmp.Compare(a.at, b.at))
	}
	if n <= fewKeys {
		slices.SortFunc(s.order, compare)
		return
	}
	s.byHalfHead()
	for rest := s.order; len(rest) > 0; {
		same := 1
		for same < len(rest) && rest[same].head>>32 == rest[0].head>>32 {
			same++
		}
		if same > 1 {
			slices.SortFunc(rest[:same], compare)
		}
		rest = rest[same:]
	}
}

// byHalfHead sorts by the upper half of the heads, a byte at a time from the lowest:
// half a head tells most of a million keys apart, and each byte costs as much as a
// comparison.
func (s *keySorter) byHalfHead() {
	s.spare = slices.Grow(s.spare[:0], len(s.order))[:len(s.order)]
	for shift := 32; shift < 64; shift += 8 {
		var at [256]uint32
		for i := range s.order {
			at[byte(s.order[i].head>>shift)]++
		}
		if at[byte(s.order[0].head>>shift)] == uint32(len(s.order)) {
			continue // all have the same
		}
		sum := uint32(0)
		for b, n := range at {
			at[b], sum = sum, sum+n
		}
		for _, t := range s.order {
			b := byte(t.head >> shift)
			s.spare[at[b]] = t
			at[b]++
		}
		s.order, s.spare = s.spare, s.order
	}
}

func commonPrefix(a, b []byte) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// headOf is the first eight bytes as a number, in the order of keys: what a shorter
// key lacks is zero, and equal heads say nothing.
func headOf(key []byte) uint64 {
	if len(key) >= 8 {
		return binary.BigEndian.Uint64(key)
	}
	var b [8]byte
	copy(b[:], key)
	return binary.BigEndian.Uint64(b[:])
}
