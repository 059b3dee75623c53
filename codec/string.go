package codec

import (
	"strings"
	"unsafe"
)

// String is the codec of strings: their bytes, as of Kafka's StringSerializer.
//
// It is a view: Decode returns a string that lies in src, so src must not be
// changed afterwards; see [Owner].
//
// Bytes that are not UTF-8 are kept as they are, in both directions, while
// Kafka's StringDeserializer replaces them: here a key that was read and
// written again is the same key, on the same partition. [Via] makes a strict
// codec where that is wanted.
var String Codec[string] = stringCodec{}

type stringCodec struct{}

func (stringCodec) Append(dst []byte, v string) ([]byte, error) { return append(dst, v...), nil }

func (stringCodec) Decode(src []byte) (string, error) {
	return unsafe.String(unsafe.SliceData(src), len(src)), nil
}

func (stringCodec) Own(v string) string { return strings.Clone(v) }

// Bytes is the codec of byte slices: the bytes, as of Kafka's
// ByteArraySerializer. Nil is encoded as empty and comes back as empty, not
// nil.
//
// It is a view: Decode returns src itself, which must not be changed
// afterwards, by neither side; see [Owner]. Appending to it is safe.
var Bytes Codec[[]byte] = bytesCodec{}

type bytesCodec struct{}

func (bytesCodec) Append(dst []byte, v []byte) ([]byte, error) { return append(dst, v...), nil }

func (bytesCodec) Decode(src []byte) ([]byte, error) {
	if src == nil {
		return []byte{}, nil
	}
	// Without the capacity, an append to the value would write over what
	// follows it in the fetched batch.
	return src[:len(src):len(src)], nil
}

func (bytesCodec) Own(v []byte) []byte { return append([]byte{}, v...) }
