package stream

import (
	"encoding/binary"

	"github.com/semelstream/semel/stream/internal/graph"
)

// murmur2 is the hash by which Kafka's own clients choose partitions.
func murmur2(b []byte) uint32 {
	const m = 0x5bd1e995
	h := 0x9747b28c ^ uint32(len(b))
	for len(b) >= 4 {
		k := binary.LittleEndian.Uint32(b)
		k *= m
		k ^= k >> 24
		k *= m
		h = h*m ^ k
		b = b[4:]
	}
	switch len(b) {
	case 3:
		h ^= uint32(b[2]) << 16
		fallthrough
	case 2:
		h ^= uint32(b[1]) << 8
		fallthrough
	case 1:
		h ^= uint32(b[0])
		h *= m
	}
	h ^= h >> 13
	h *= m
	return h ^ h>>15
}

// partitionOf is the partition of an encoded key, one of n.
func partitionOf(key []byte, n int32) int32 {
	return int32(murmur2(key)&0x7fffffff) % n
}

// partBytes is what of an encoded key the partition goes by, in the topic that
// n writes: all of it, but in a user's topic of windowed keys the key alone, so
// that the windows of a key stay with it. Kafka Streams does the same.
func partBytes(n *graph.Node, key any) func([]byte) []byte {
	if c, ok := key.(windowedCodec); ok && !n.Topic.Internal {
		return c.withoutWindow
	}
	return func(key []byte) []byte { return key }
}
