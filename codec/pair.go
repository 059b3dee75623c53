package codec

import (
	"encoding/binary"
	"fmt"
	"math"
)

// A Two is two values: a composite key, or a value with something beside it.
// It is comparable if both are.
type Two[A, B any] struct {
	First  A
	Second B
}

// Pair makes a codec of two values from the codecs of each. The bytes are
//
//	length of the first, 4 bytes, big-endian | first | second
//
// as in the keys of Kafka Streams' foreign key joins. All pairs with the same
// First lie together, sorted by Second; among themselves the Firsts are sorted
// by length, then by bytes, so for a First of fixed length it is the order of
// First, then Second. Pairs nest.
//
// The result is an [Owner] if a or b is one.
func Pair[A, B any](a Codec[A], b Codec[B]) Codec[Two[A, B]] {
	pair := pairCodec[A, B]{a, b}
	ownA, okA := a.(Owner[A])
	ownB, okB := b.(Owner[B])
	if okA || okB {
		return pairOwner[A, B]{pair, ownA, ownB}
	}
	return pair
}

const pairPrefix = 4

type pairCodec[A, B any] struct {
	first  Codec[A]
	second Codec[B]
}

func (c pairCodec[A, B]) Append(dst []byte, v Two[A, B]) ([]byte, error) {
	at := len(dst)
	out, err := c.first.Append(append(dst, 0, 0, 0, 0), v.First)
	if err != nil {
		return dst, partOf("first", err)
	}
	n := len(out) - at - pairPrefix
	if n > math.MaxInt32 {
		return dst, &Error{Op: ErrEncode, Codec: "pair", Reason: fmt.Sprintf("the first part has %d bytes, too many for its length prefix", n)}
	}
	binary.BigEndian.PutUint32(out[at:], uint32(n))
	out, err = c.second.Append(out, v.Second)
	if err != nil {
		return dst, partOf("second", err)
	}
	return out, nil
}

func (c pairCodec[A, B]) Decode(src []byte) (Two[A, B], error) {
	var zero Two[A, B]
	if len(src) < pairPrefix {
		return zero, &Error{Op: ErrDecode, Codec: "pair", Reason: fmt.Sprintf("%d bytes are too few for the length of the first part", len(src))}
	}
	n, rest := binary.BigEndian.Uint32(src), src[pairPrefix:]
	if uint64(n) > uint64(len(rest)) {
		return zero, &Error{Op: ErrDecode, Codec: "pair", Reason: fmt.Sprintf("the first part should have %d bytes, %d are left", n, len(rest))}
	}
	first, err := c.first.Decode(rest[:n:n])
	if err != nil {
		return zero, partOf("first", err)
	}
	second, err := c.second.Decode(rest[n:])
	if err != nil {
		return zero, partOf("second", err)
	}
	return Two[A, B]{first, second}, nil
}

type pairOwner[A, B any] struct {
	pairCodec[A, B]
	ownA Owner[A] // nil if A's codec is none
	ownB Owner[B]
}

func (c pairOwner[A, B]) Own(v Two[A, B]) Two[A, B] {
	if c.ownA != nil {
		v.First = c.ownA.Own(v.First)
	}
	if c.ownB != nil {
		v.Second = c.ownB.Own(v.Second)
	}
	return v
}

func partOf(which string, err error) error { return fmt.Errorf("%s of a pair: %w", which, err) }
