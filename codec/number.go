package codec

import (
	"encoding/binary"
	"math"
)

// Codecs of plain types of fixed length, in the formats of Kafka's own
// serializers; bytes of another length are an error.
var (
	// Bool is one byte: 1 or 0, and nothing else.
	Bool Codec[bool] = boolCodec{}
	// Int32 is four bytes, big-endian: IntegerSerializer.
	Int32 Codec[int32] = int32Codec{}
	// Int64 is eight bytes, big-endian: LongSerializer.
	Int64 Codec[int64] = int64Codec{}
	// Float64 is the eight bytes of the IEEE 754 number, big-endian:
	// DoubleSerializer. Like there, all NaNs are encoded as one.
	Float64 Codec[float64] = float64Codec{}
	// Nothing is the codec of what carries no information: zero bytes. That
	// is an empty value, not null, so what corresponds in Java is an empty
	// byte array; VoidSerializer writes null.
	Nothing Codec[struct{}] = nothingCodec{}
)

type boolCodec struct{}

func (boolCodec) Append(dst []byte, v bool) ([]byte, error) {
	if v {
		return append(dst, 1), nil
	}
	return append(dst, 0), nil
}

func (boolCodec) Decode(src []byte) (bool, error) {
	if len(src) != 1 {
		return false, wrongLength("bool", src, 1)
	}
	if src[0] > 1 {
		return false, &Error{Op: ErrDecode, Codec: "bool", Reason: "the byte is neither 0 nor 1"}
	}
	return src[0] == 1, nil
}

type int32Codec struct{}

func (int32Codec) Append(dst []byte, v int32) ([]byte, error) {
	return binary.BigEndian.AppendUint32(dst, uint32(v)), nil
}

func (int32Codec) Decode(src []byte) (int32, error) {
	if len(src) != 4 {
		return 0, wrongLength("int32", src, 4)
	}
	return int32(binary.BigEndian.Uint32(src)), nil
}

type int64Codec struct{}

func (int64Codec) Append(dst []byte, v int64) ([]byte, error) {
	return binary.BigEndian.AppendUint64(dst, uint64(v)), nil
}

func (int64Codec) Decode(src []byte) (int64, error) {
	if len(src) != 8 {
		return 0, wrongLength("int64", src, 8)
	}
	return int64(binary.BigEndian.Uint64(src)), nil
}

// javaNaN is the only NaN that Java writes; math.NaN has other bits, and as
// keys the two would be different.
const javaNaN = 0x7ff8000000000000

type float64Codec struct{}

func (float64Codec) Append(dst []byte, v float64) ([]byte, error) {
	bits := math.Float64bits(v)
	if v != v {
		bits = javaNaN
	}
	return binary.BigEndian.AppendUint64(dst, bits), nil
}

func (float64Codec) Decode(src []byte) (float64, error) {
	if len(src) != 8 {
		return 0, wrongLength("float64", src, 8)
	}
	return math.Float64frombits(binary.BigEndian.Uint64(src)), nil
}

type nothingCodec struct{}

func (nothingCodec) Append(dst []byte, _ struct{}) ([]byte, error) { return dst, nil }

func (nothingCodec) Decode(src []byte) (struct{}, error) {
	if len(src) != 0 {
		return struct{}{}, wrongLength("nothing", src, 0)
	}
	return struct{}{}, nil
}

// intCodec is Int64 for int, which has another size on some machines.
type intCodec struct{}

func (intCodec) Append(dst []byte, v int) ([]byte, error) { return Int64.Append(dst, int64(v)) }

func (intCodec) Decode(src []byte) (int, error) {
	v, err := Int64.Decode(src)
	if err != nil {
		return 0, err
	}
	if int64(int(v)) != v {
		return 0, &Error{Op: ErrDecode, Codec: "int", Reason: "the number does not fit into an int of this machine"}
	}
	return int(v), nil
}
