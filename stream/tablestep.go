package stream

import (
	"encoding/binary"
	"fmt"

	"github.com/semelstream/semel/codec"
)

// A step is what the change of a row does to one group: the row leaves with
// its old value, comes with its new one, or both.
type step[V any] struct {
	old, new       V
	hasOld, hasNew bool
}

// A stepCodec writes steps as Kafka Streams does, so that its repartition
// topics can be read. The last byte says which:
//
//	old | 0
//	new | 1
//	varint(length of new) | new | old | 2
type stepCodec[V any] struct{ value codec.Codec[V] }

const (
	stepOld byte = iota
	stepNew
	stepBoth
)

// Append is [codec.Codec.Append].
func (c stepCodec[V]) Append(dst []byte, s step[V]) ([]byte, error) {
	begin := len(dst)
	var err error
	out := dst
	flag := stepOld
	if s.hasNew {
		flag = stepNew
		if out, err = c.value.Append(out, s.new); err != nil {
			return dst, err
		}
	}
	if s.hasNew && s.hasOld {
		flag = stepBoth
		out = insertLength(out, begin)
	}
	if s.hasOld {
		if out, err = c.value.Append(out, s.old); err != nil {
			return dst, err
		}
	}
	return append(out, flag), nil
}

// insertLength puts the length of what follows from begin before it.
func insertLength(b []byte, begin int) []byte {
	n := len(b) - begin
	var room [binary.MaxVarintLen64]byte
	length := room[:binary.PutVarint(room[:], int64(n))]
	b = append(b, length...)
	copy(b[begin+len(length):], b[begin:begin+n])
	copy(b[begin:], length)
	return b
}

// Decode is [codec.Codec.Decode].
func (c stepCodec[V]) Decode(src []byte) (s step[V], err error) {
	if len(src) == 0 {
		return s, stepError("no bytes")
	}
	body, flag := src[:len(src)-1], src[len(src)-1]
	switch flag {
	case stepOld:
		s.old, err = c.value.Decode(body)
	case stepNew:
		s.new, err = c.value.Decode(body)
	case stepBoth:
		n, used := binary.Varint(body)
		if used <= 0 || n < 0 || n > int64(len(body)-used) {
			return s, stepError("a length beyond the end")
		}
		body = body[used:]
		if s.new, err = c.value.Decode(body[:n:n]); err == nil {
			s.old, err = c.value.Decode(body[n:])
		}
	default:
		return s, stepError(fmt.Sprintf("unknown flag %d", flag))
	}
	s.hasOld, s.hasNew = flag != stepNew, flag != stepOld
	return s, err
}

// Own is [codec.Owner.Own].
func (c stepCodec[V]) Own(s step[V]) step[V] {
	if o, ok := c.value.(codec.Owner[V]); ok {
		s.old, s.new = o.Own(s.old), o.Own(s.new)
	}
	return s
}

func stepError(reason string) error {
	return &codec.Error{Op: codec.ErrDecode, Codec: "change of a grouped table", Reason: reason}
}
