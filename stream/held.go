package stream

import (
	"bytes"
	"encoding/binary"
	"math"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semelstream/semel/codec"
)

// A held is a change that Suppress holds back.
type held[V any] struct {
	since                    int64 // when the wait began, in milliseconds
	prior, old, new          V     // prior is what follows was told last
	hasPrior, hasOld, hasNew bool

	// The record that made the change.
	ms        int64
	topic     string
	partition int32
	offset    int64
	headers   Headers
}

// from notes the record at hand; a change that is told when the transaction
// closes has none.
func (h *held[V]) from(r *kgo.Record) {
	h.topic, h.partition, h.offset = "", -1, -1
	if r != nil {
		h.topic, h.partition, h.offset = r.Topic, r.Partition, r.Offset
	}
}

// heldFormat is the number of the format in which held changes are written.
// Kafka Streams reads rows that do not tell it as those of a far older one.
const heldFormat = 3

// heldBytes is the codec of what stores hold back: values as bytes.
var heldBytes = heldCodec[[]byte]{codec.Bytes}

// A heldCodec writes held changes as Kafka Streams does in format 3:
//
//	time 8 | offset 8 | topic | partition 4 | count 4 | headers | prior | old | new | since 8
//
// Texts, names and values follow their length in 4 bytes, -1 for none. An old
// value that is the prior one has the length -2 and no bytes.
type heldCodec[V any] struct{ value codec.Codec[V] }

// String is its name in descriptions.
func (c heldCodec[V]) String() string { return "held " + codec.Name(c.value) }

const (
	lengthNone  = -1
	lengthPrior = -2
)

// Append is [codec.Codec.Append].
func (c heldCodec[V]) Append(dst []byte, h held[V]) ([]byte, error) {
	out := binary.BigEndian.AppendUint64(dst, uint64(h.ms))
	out = binary.BigEndian.AppendUint64(out, uint64(h.offset))
	out = appendSized(out, h.topic)
	out = binary.BigEndian.AppendUint32(out, uint32(h.partition))
	out = binary.BigEndian.AppendUint32(out, uint32(len(h.headers)))
	for _, header := range h.headers {
		out = appendSized(out, header.Name)
		if header.Value == nil {
			out = appendLength(out, lengthNone)
		} else {
			out = appendSized(out, header.Value)
		}
	}
	begin := len(out)
	out, err := c.appendValue(out, h.prior, h.hasPrior)
	if err != nil {
		return dst, err
	}
	prior := out[begin:]
	begin = len(out)
	if out, err = c.appendValue(out, h.old, h.hasOld); err != nil {
		return dst, err
	}
	if h.hasOld && bytes.Equal(out[begin:], prior) {
		out = appendLength(out[:begin], lengthPrior)
	}
	if out, err = c.appendValue(out, h.new, h.hasNew); err != nil {
		return dst, err
	}
	return binary.BigEndian.AppendUint64(out, uint64(h.since)), nil
}

func (c heldCodec[V]) appendValue(dst []byte, v V, has bool) ([]byte, error) {
	if !has {
		return appendLength(dst, lengthNone), nil
	}
	begin := len(dst)
	out, err := c.value.Append(appendLength(dst, 0), v)
	if err != nil {
		return dst, err
	}
	binary.BigEndian.PutUint32(out[begin:], uint32(len(out)-begin-4))
	return out, nil
}

func appendLength(dst []byte, n int32) []byte {
	return binary.BigEndian.AppendUint32(dst, uint32(n))
}

func appendSized[T ~string | ~[]byte](dst []byte, v T) []byte {
	return append(appendLength(dst, int32(len(v))), v...)
}

// Decode is [codec.Codec.Decode].
func (c heldCodec[V]) Decode(src []byte) (h held[V], err error) {
	r := heldReader{rest: src}
	h.ms, h.offset = r.int64(), r.int64()
	h.topic = string(r.bytes(r.length()))
	h.partition = r.int32()
	for n := r.int32(); n > 0 && !r.bad; n-- {
		name := string(r.bytes(r.length()))
		var value []byte
		if l := r.length(); l != lengthNone {
			value = append([]byte{}, r.bytes(l)...)
		}
		h.headers = append(h.headers, Header{name, value})
	}
	if h.prior, h.hasPrior, err = c.decodeValue(&r, r.length()); err != nil {
		return h, err
	}
	if l := r.length(); l == lengthPrior {
		h.old, h.hasOld = h.prior, h.hasPrior
	} else if h.old, h.hasOld, err = c.decodeValue(&r, l); err != nil {
		return h, err
	}
	if h.new, h.hasNew, err = c.decodeValue(&r, r.length()); err != nil {
		return h, err
	}
	h.since = r.int64()
	if r.bad || len(r.rest) > 0 {
		return h, &codec.Error{Op: codec.ErrDecode, Codec: "change that is held back", Reason: "its lengths do not add up"}
	}
	return h, nil
}

func (c heldCodec[V]) decodeValue(r *heldReader, n int32) (v V, has bool, err error) {
	if n == lengthNone || r.bad {
		return v, false, nil
	}
	b := r.bytes(n)
	if r.bad {
		return v, false, nil
	}
	v, err = c.value.Decode(b)
	return v, err == nil, err
}

// Own is [codec.Owner.Own].
func (c heldCodec[V]) Own(h held[V]) held[V] {
	if o, ok := c.value.(codec.Owner[V]); ok {
		h.prior, h.old, h.new = o.Own(h.prior), o.Own(h.old), o.Own(h.new)
	}
	return h
}

// A heldReader reads parts of a held change; bad says that they do not fit.
type heldReader struct {
	rest []byte
	bad  bool
}

func (r *heldReader) bytes(n int32) []byte {
	if n < 0 || int64(n) > int64(len(r.rest)) {
		r.bad, r.rest = true, nil
		return nil
	}
	b := r.rest[:n:n]
	r.rest = r.rest[n:]
	return b
}

func (r *heldReader) int64() int64 {
	if b := r.bytes(8); b != nil {
		return int64(binary.BigEndian.Uint64(b))
	}
	return 0
}

func (r *heldReader) int32() int32 {
	if b := r.bytes(4); b != nil {
		return int32(binary.BigEndian.Uint32(b))
	}
	return math.MinInt32
}

// length is how many bytes follow, or what stands for none.
func (r *heldReader) length() int32 { return r.int32() }
