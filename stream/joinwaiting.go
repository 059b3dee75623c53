package stream

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/semelstream/semel/codec"
)

// Records of left and outer joins that have found no partner yet wait in a
// store of the join. Its format is Kafka Streams'; numbers are big-endian:
//
//	time 8 | side 1 | key                            so the oldest are first
//	01 | count 4 | count × (length 4 | side 1 | value)   in order of arrival
//
// Kafka Streams loses the records' headers. They follow the list here if one
// of its records has some, in a place where Kafka Streams does not look:
//
//	count × (headers 4 | headers × (length 4 | name | length 4 or -1 | value))
//
// An empty list stands for records that were sent alone: no partner may be
// sent together with them any more.

// Sides, as in the keys: right records come before left ones of the same time.
const (
	rightSide byte = 0
	leftSide  byte = 1
)

// A waiter is one record that waits.
type waiter struct {
	value   []byte
	headers Headers
}

// appendWaitKey encodes the key of the list in which records of one side, time
// and key wait.
func appendWaitKey[K any](dst []byte, ms int64, side byte, c codec.Codec[K], key K) ([]byte, error) {
	return c.Append(append(appendTime(dst, ms), side), key)
}

// appendTime is how the keys of one time begin.
func appendTime(dst []byte, ms int64) []byte { return binary.BigEndian.AppendUint64(dst, uint64(ms)) }

const waitKeyHead = 8 + 1

// readWaitKey undoes appendWaitKey, but for the key itself.
func readWaitKey(src []byte) (ms int64, side byte, key []byte, err error) {
	if len(src) < waitKeyHead {
		return 0, 0, nil, badWaiting("a key of %d bytes", len(src))
	}
	ms, side = int64(binary.BigEndian.Uint64(src)), src[8]
	if ms < 0 || side > leftSide {
		return 0, 0, nil, badWaiting("a key of time %d and side %d", ms, side)
	}
	return ms, side, src[waitKeyHead:], nil
}

// listFlag is how Kafka Streams marks lists of entries that differ in size.
const listFlag = 1

// appendWaiters encodes a list.
func appendWaiters(dst []byte, side byte, list []waiter) []byte {
	dst = binary.BigEndian.AppendUint32(append(dst, listFlag), uint32(len(list)))
	headers := false
	for _, w := range list {
		dst = append(binary.BigEndian.AppendUint32(dst, uint32(1+len(w.value))), side)
		dst = append(dst, w.value...)
		headers = headers || len(w.headers) > 0
	}
	if !headers {
		return dst
	}
	for _, w := range list {
		dst = appendHeaders(dst, w.headers)
	}
	return dst
}

func appendHeaders(dst []byte, headers Headers) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(headers)))
	for _, h := range headers {
		dst = append(binary.BigEndian.AppendUint32(dst, uint32(len(h.Name))), h.Name...)
		if h.Value == nil {
			dst = binary.BigEndian.AppendUint32(dst, math.MaxUint32)
			continue
		}
		dst = append(binary.BigEndian.AppendUint32(dst, uint32(len(h.Value))), h.Value...)
	}
	return dst
}

// readWaiters undoes appendWaiters. The list is put behind dst; its values are
// views of src.
func readWaiters(dst []waiter, side byte, src []byte) ([]waiter, error) {
	r := listReader{rest: src}
	if flag := r.take(1); r.err == nil && flag[0] != listFlag {
		return dst, badWaiting("a list of kind %d", flag[0])
	}
	first, n := len(dst), r.number()
	for i := 0; i < n && r.err == nil; i++ {
		entry := r.take(r.number())
		if r.err == nil && (len(entry) == 0 || entry[0] != side) {
			return dst[:first], badWaiting("a record of the wrong side")
		}
		if r.err == nil {
			dst = append(dst, waiter{value: entry[1:]})
		}
	}
	if len(r.rest) > 0 {
		for i := first; i < len(dst) && r.err == nil; i++ {
			dst[i].headers = r.headers()
		}
	}
	if r.err == nil && len(r.rest) > 0 {
		r.err = badWaiting("%d bytes behind a list", len(r.rest))
	}
	if r.err != nil {
		return dst[:first], r.err
	}
	return dst, nil
}

// A listReader takes a list apart; it keeps the first error.
type listReader struct {
	rest []byte
	err  error
}

func (r *listReader) take(n int) []byte {
	if r.err == nil && (n < 0 || n > len(r.rest)) {
		r.err = badWaiting("%d bytes where %d should be", len(r.rest), n)
	}
	if r.err != nil {
		return nil
	}
	out := r.rest[:n:n]
	r.rest = r.rest[n:]
	return out
}

func (r *listReader) number() int {
	b := r.take(4)
	if r.err != nil {
		return 0
	}
	return int(int32(binary.BigEndian.Uint32(b)))
}

func (r *listReader) headers() (h Headers) {
	for n := r.number(); n > 0 && r.err == nil; n-- {
		one := Header{Name: string(r.take(r.number()))}
		if size := r.number(); size >= 0 {
			one.Value = r.take(size)
		}
		h = append(h, one)
	}
	return h
}

func badWaiting(format string, args ...any) error {
	return fmt.Errorf("%w: waiting records of a join: %s", codec.ErrDecode, fmt.Sprintf(format, args...))
}
