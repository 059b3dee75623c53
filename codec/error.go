package codec

import (
	"errors"
	"fmt"
	"reflect"
)

// What failed, for errors.Is.
var (
	ErrDecode = errors.New("decoding failed") // bytes that are no encoding of a T
	ErrEncode = errors.New("encoding failed") // a T that the format has no bytes for
)

// An Error is why a codec could not decode or encode. It never prints the
// value, nor the message of the cause, which may quote the value: errors of
// encoding/json, time and netip do. Only what the functions given to [Func]
// and [Via] return is printed as it is; values are to be kept out of that.
type Error struct {
	Op     error  // ErrDecode or ErrEncode
	Codec  string // the codec's name, with T where it has one: "int64", "json shop.Order"
	Reason string // what is wrong
	Err    error  // the cause, or nil; its message may quote the value
}

// Error says which codec failed at what, and why.
func (e *Error) Error() string {
	op := "decoding "
	if errors.Is(e.Op, ErrEncode) {
		op = "encoding "
	}
	return "codec: " + op + e.Codec + ": " + e.Reason
}

// Is reports whether target is e.Op.
func (e *Error) Is(target error) bool { return target == e.Op }

// Unwrap is Err. Printing it may print the value.
func (e *Error) Unwrap() error { return e.Err }

// Locate adds to err where the record is that it is about: part is "key",
// "value" or the name of a header. A nil err stays nil.
func Locate(err error, topic string, partition int32, offset int64, part string) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s of %s/%d at offset %d: %w", part, topic, partition, offset, err)
}

// wrongLength is the error of src for a codec of fixed length.
func wrongLength(codec string, src []byte, want int) error {
	return &Error{Op: ErrDecode, Codec: codec, Reason: fmt.Sprintf("%d bytes where %d belong", len(src), want)}
}

// foreign is the error of a function that the user gave: printed as it is, and
// left alone if it is an error of op already.
func foreign[T any](op error, kind string, err error) error {
	if errors.Is(err, op) {
		return err
	}
	return &Error{Op: op, Codec: named[T](kind), Reason: err.Error(), Err: err}
}

// named is "kind T".
func named[T any](kind string) string { return kind + " " + reflect.TypeFor[T]().String() }
