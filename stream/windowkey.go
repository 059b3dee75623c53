package stream

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/semelstream/semel/codec"
)

// WindowKey is the codec of windowed keys with windows of one size, in Kafka
// Streams' format: the key, then the window's start. Size is not written, so
// whoever reads the topic must give the same; of sliding windows it is the
// distance.
//
// A topic whose keys have this codec or [SessionKey]'s is partitioned by the
// key inside, so that the windows of a key stay together.
func WindowKey[K any](key codec.Codec[K], size time.Duration) codec.Codec[Windowed[K]] {
	if key == nil {
		return nil
	}
	return windowKey[K]{key, size.Milliseconds()}
}

// SessionKey is the codec of windowed keys of sessions, in Kafka Streams'
// format: the key, then end and start.
func SessionKey[K any](key codec.Codec[K]) codec.Codec[Windowed[K]] {
	if key == nil {
		return nil
	}
	return sessionKey[K]{key}
}

// A windowedCodec is a codec of windowed keys: the key's own bytes, then the
// window's.
type windowedCodec interface {
	// withoutWindow is the part of an encoded key that is the key alone.
	withoutWindow(encoded []byte) []byte
}

// An innerCodec is a windowedCodec that knows the codec of the key alone.
type innerCodec[K any] interface{ inner() codec.Codec[K] }

// innerOf is the codec of the key inside c's keys; nil if it is not known.
func innerOf[K any](c codec.Codec[Windowed[K]]) codec.Codec[K] {
	if c, ok := c.(innerCodec[K]); ok {
		return c.inner()
	}
	return nil
}

// windowKey is windows of one size, which may be compared.
type windowKey[K any] struct {
	key  codec.Codec[K]
	size int64 // ms
}

func (c windowKey[K]) inner() codec.Codec[K] { return c.key }

func (c windowKey[K]) withoutWindow(b []byte) []byte { return b[:len(b)-timeSize] }

// Append is [codec.Codec.Append].
func (c windowKey[K]) Append(dst []byte, w Windowed[K]) ([]byte, error) {
	return appendWindowed(dst, "window key", c.key, w.Key, w.Start.UnixMilli())
}

// Decode is [codec.Codec.Decode].
func (c windowKey[K]) Decode(src []byte) (Windowed[K], error) {
	key, start, _, err := decodeWindowed(src, "window key", c.key, 1)
	if err != nil {
		return Windowed[K]{}, err
	}
	return windowed(key, start, windowEnd(start, c.size)), nil
}

// Own is [codec.Owner.Own].
func (c windowKey[K]) Own(w Windowed[K]) Windowed[K] { return ownWindowed(c.key, w) }

// customKey is windowKey for windows whose end only their function knows.
type customKey[K any] struct {
	windowKey[K]
	end func(start int64) (int64, error)
}

// Decode is [codec.Codec.Decode].
func (c customKey[K]) Decode(src []byte) (Windowed[K], error) {
	key, start, _, err := decodeWindowed(src, "window key", c.key, 1)
	if err != nil {
		return Windowed[K]{}, err
	}
	end, err := c.end(start)
	if err != nil {
		return Windowed[K]{}, &codec.Error{Op: codec.ErrDecode, Codec: "window key", Err: err}
	}
	return windowed(key, start, end), nil
}

// sessionKey is sessions: the end comes before the start.
type sessionKey[K any] struct{ key codec.Codec[K] }

func (c sessionKey[K]) inner() codec.Codec[K] { return c.key }

func (c sessionKey[K]) withoutWindow(b []byte) []byte { return b[:len(b)-2*timeSize] }

// Append is [codec.Codec.Append].
func (c sessionKey[K]) Append(dst []byte, w Windowed[K]) ([]byte, error) {
	start, end := w.Start.UnixMilli(), w.End.UnixMilli()
	if end < start {
		return dst, windowedError(codec.ErrEncode, "session key", "a session that ends before it begins")
	}
	return appendWindowed(dst, "session key", c.key, w.Key, end, start)
}

// Decode is [codec.Codec.Decode].
func (c sessionKey[K]) Decode(src []byte) (Windowed[K], error) {
	key, end, start, err := decodeWindowed(src, "session key", c.key, 2)
	if err != nil {
		return Windowed[K]{}, err
	}
	if end < start {
		return Windowed[K]{}, windowedError(codec.ErrDecode, "session key", "a session that ends before it begins")
	}
	return windowed(key, start, end), nil
}

// Own is [codec.Owner.Own].
func (c sessionKey[K]) Own(w Windowed[K]) Windowed[K] { return ownWindowed(c.key, w) }

const timeSize = 8

// appendWindowed writes a key and times behind it.
func appendWindowed[K any](dst []byte, name string, c codec.Codec[K], key K, times ...int64) ([]byte, error) {
	out, err := c.Append(dst, key)
	if err != nil {
		return dst, err
	}
	for _, ms := range times {
		if ms < 0 {
			return dst, windowedError(codec.ErrEncode, name, "a window that begins before 1970")
		}
		out = binary.BigEndian.AppendUint64(out, uint64(ms))
	}
	return out, nil
}

// decodeWindowed reads a key and one or two times behind it.
func decodeWindowed[K any](src []byte, name string, c codec.Codec[K], times int) (key K, first, second int64, err error) {
	n := len(src) - times*timeSize
	if n < 0 {
		return key, 0, 0, windowedError(codec.ErrDecode, name, fmt.Sprintf("%d bytes, fewer than its times take", len(src)))
	}
	first = int64(binary.BigEndian.Uint64(src[n:]))
	if times > 1 {
		second = int64(binary.BigEndian.Uint64(src[n+timeSize:]))
	}
	if first < 0 || second < 0 {
		return key, 0, 0, windowedError(codec.ErrDecode, name, "a time before 1970")
	}
	key, err = c.Decode(src[:n:n])
	return key, first, second, err
}

func ownWindowed[K any](c codec.Codec[K], w Windowed[K]) Windowed[K] {
	if o, ok := c.(codec.Owner[K]); ok {
		w.Key = o.Own(w.Key)
	}
	return w
}

func windowedError(op error, name, reason string) error {
	return &codec.Error{Op: op, Codec: name, Reason: reason}
}
