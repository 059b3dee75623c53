package state

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/semelstream/semel/codec"
)

// A history is the versions of a key's value, oldest first. Each is valid until
// the next one begins. A history is never changed, but replaced.
type history[V any] []version[V]

type version[V any] struct {
	from int64
	v    V
	has  bool   // else the value was deleted
	tx   uint64 // the transaction that wrote it, 0 if an earlier run did
}

// at is the place of a version from ms on, and whether it is there.
func (h history[V]) at(ms int64) (int, bool) {
	return slices.BinarySearchFunc(h, ms, func(v version[V], ms int64) int { return cmp.Compare(v.from, ms) })
}

// asOf is the version that is valid at ms, -1 if there is none.
func (h history[V]) asOf(ms int64) int {
	i, ok := h.at(ms)
	if !ok {
		i--
	}
	return i
}

// to is until when version i is valid, math.MaxInt64 if it is the newest.
func (h history[V]) to(i int) int64 {
	if i+1 < len(h) {
		return h[i+1].from
	}
	return math.MaxInt64
}

// with is h with one more version, which takes the place of one at its time,
// and without what no read from bound on can reach. A deletion may only be
// forgotten once the changelog has it: what it deleted is in there too.
func (h history[V]) with(v version[V], bound int64) (out history[V], i int) {
	first := max(h.asOf(bound), 0)
	i, same := h.at(v.from)
	if v.from <= bound { // it covers what is before it
		first = max(first, i)
	}
	if first < i && !h[first].has && h[first].from <= bound && h[first].tx != v.tx {
		first++
	}
	out = append(make(history[V], 0, len(h)-first+1), h[first:i]...)
	out = append(out, v)
	if same {
		i++
	}
	return append(out, h[i:]...), len(out) - 1
}

// historyCodec is how a history is kept on the engine: for each version when it
// begins, 0 if it deletes or 1 and its length, and its value.
type historyCodec[V any] struct {
	value codec.Codec[V]
	own   func(V) V // nil if values stand alone
	buf   []byte    // scratch
}

// Append implements codec.Codec.
func (c *historyCodec[V]) Append(dst []byte, h history[V]) (_ []byte, err error) {
	start := len(dst)
	for i := range h {
		if !h[i].has {
			dst = appendVersion(dst, h[i].from, nil)
			continue
		}
		if c.buf, err = c.encode(h[i].v); err != nil {
			return dst[:start], err
		}
		dst = appendVersion(dst, h[i].from, c.buf)
	}
	return dst, nil
}

// encode encodes a value, in scratch memory; the result is never nil.
func (c *historyCodec[V]) encode(v V) ([]byte, error) {
	if c.buf == nil {
		c.buf = make([]byte, 0, 64)
	}
	return c.value.Append(c.buf[:0], v)
}

// Decode implements codec.Codec. Nothing of src is in the result.
func (c *historyCodec[V]) Decode(src []byte) (h history[V], err error) {
	for len(src) > 0 {
		var from int64
		var value []byte
		if from, value, src, err = cutVersion(src); err != nil {
			return nil, err
		}
		v := version[V]{from: from, has: value != nil}
		if v.has {
			if v.v, err = c.value.Decode(value); err != nil {
				return nil, err
			}
			if c.own != nil {
				v.v = c.own(v.v)
			}
		}
		h = append(h, v)
	}
	return h, nil
}

// appendVersion adds a version; a nil value deletes.
func appendVersion(dst []byte, from int64, value []byte) []byte {
	dst = addTime(dst, from)
	if value == nil {
		return append(dst, 0)
	}
	return append(binary.AppendUvarint(dst, uint64(len(value))+1), value...)
}

// cutVersion undoes appendVersion.
func cutVersion(src []byte) (from int64, value, rest []byte, err error) {
	if len(src) <= timeSize {
		return 0, nil, nil, fmt.Errorf("%w: a version of %d bytes", ErrCorrupt, len(src))
	}
	from = getTime(src)
	n, size := binary.Uvarint(src[timeSize:])
	rest = src[timeSize+max(size, 0):]
	if size <= 0 || n > uint64(len(rest))+1 {
		return 0, nil, nil, fmt.Errorf("%w: a version of more bytes than there are", ErrCorrupt)
	}
	if n == 0 {
		return from, nil, rest, nil
	}
	return from, rest[: n-1 : n-1], rest[n-1:], nil
}
