package stream

import (
	"encoding/binary"
	"math/bits"
)

// A valueHash is a hash of an encoded value: murmur3 of 128 bits for 64-bit
// machines, as Kafka Streams has it in foreign-key joins.
type valueHash [16]byte

// hashValue is the hash of b with Kafka Streams' seed.
func hashValue(b []byte) (out valueHash) {
	const (
		seed = 104729
		c1   = 0x87c37b91114253d5
		c2   = 0x4cf5ad432745937f
	)
	h1, h2 := uint64(seed), uint64(seed)
	n := uint64(len(b))
	for ; len(b) >= 16; b = b[16:] {
		h1 ^= bits.RotateLeft64(binary.LittleEndian.Uint64(b)*c1, 31) * c2
		h1 = (bits.RotateLeft64(h1, 27)+h2)*5 + 0x52dce729
		h2 ^= bits.RotateLeft64(binary.LittleEndian.Uint64(b[8:])*c2, 33) * c1
		h2 = (bits.RotateLeft64(h2, 31)+h1)*5 + 0x38495ab5
	}
	var rest [16]byte // a half of zeros changes nothing
	copy(rest[:], b)
	h1 ^= bits.RotateLeft64(binary.LittleEndian.Uint64(rest[:])*c1, 31) * c2
	h2 ^= bits.RotateLeft64(binary.LittleEndian.Uint64(rest[8:])*c2, 33) * c1
	h1, h2 = h1^n, h2^n
	h1 += h2
	h2 += h1
	h1, h2 = mix64(h1), mix64(h2)
	h1 += h2
	h2 += h1
	binary.BigEndian.PutUint64(out[:], h1)
	binary.BigEndian.PutUint64(out[8:], h2)
	return out
}

func mix64(x uint64) uint64 {
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}
