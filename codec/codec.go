// Package codec turns typed keys and values into bytes and back.
//
// Codecs of plain types are ready to use, others are built from T itself:
//
//	codec.String, codec.Int64, ...         in the formats of Kafka's own serializers
//	codec.JSON[Order]()                    encoding/json
//	codec.Text[netip.Addr]()               T's own text, for keys that people read
//	codec.Binary[Sketch]()                 T's own bytes
//	codec.Via(codec.String, to, from)      another codec's format for a type of yours
//	codec.Pair(codec.String, codec.Int64)  two values in one
//	codec.Func(appendTo, decode)           any two functions
//	codec.For[T]()                         the one T asks for
//
// A codec never sees null: what a record does not have is not encoded. Nil
// slices, maps and pointers are values like any other, and [Bytes] encodes nil
// as empty.
//
// # Order
//
// Stores sort by encoded bytes. For [String], [Bytes], [Bool] and [UUID] that
// is the order of the values. For [Int32], [Int64], [Time] and [Float64] it is
// only as long as no value is negative: Kafka's formats put negative numbers
// behind the positive ones. The codecs of JSON and of other text sort as their
// text does. [Pair] says its own order.
//
// # Memory
//
// A decoded value may be a view of the bytes it was decoded from: [Codec] has
// the rule, [Owner] the way out.
//
// # Errors
//
// Errors are an [*Error], tell [ErrDecode] from [ErrEncode], and never print
// the value.
package codec

// A Codec encodes and decodes values of type T. Its methods are called from
// many goroutines at once.
type Codec[T any] interface {
	// Append adds v's encoding to dst and returns the longer slice, so that a
	// hot path can use one buffer again and again. On an error it returns dst
	// as it was. It keeps no reference to dst, and nothing of v is in the
	// result but copies.
	Append(dst []byte, v T) ([]byte, error)
	// Decode reads the value that src as a whole is the encoding of; src may
	// be empty but never means null. It does not change src. If the codec is
	// an [Owner], the value may be a view of src, and src must not be changed
	// or used again for as long as the value is in use.
	Decode(src []byte) (T, error)
}

// An Owner is a codec whose decoded values may be views of the bytes they were
// decoded from. Decoding costs no copy then, and who keeps a value longer than
// the bytes, or wants them freed, takes a copy. A codec that is no Owner
// decodes values that stand alone.
type Owner[T any] interface {
	// Own returns a copy of v that keeps nothing of the bytes it was decoded
	// from.
	Own(v T) T
}
