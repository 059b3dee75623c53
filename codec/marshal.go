package codec

import (
	"encoding"
	"fmt"
	"reflect"
	"sync"
)

// Text encodes T as the text that its own methods make and read:
// [encoding.TextAppender] or [encoding.TextMarshaler], and
// [encoding.TextUnmarshaler], of T or of *T. It is for keys that people read.
// T may be a pointer to a type with these methods; nil is an error then.
//
// It panics if T has no such methods.
func Text[T any]() Codec[T] { return mustMarshal[T](textMethods) }

// Binary encodes T as the bytes that its own methods make and read:
// [encoding.BinaryAppender] or [encoding.BinaryMarshaler], and
// [encoding.BinaryUnmarshaler], of T or of *T. T may be a pointer to a type
// with these methods; nil is an error then.
//
// It panics if T has no such methods.
func Binary[T any]() Codec[T] { return mustMarshal[T](binaryMethods) }

// methods are one pair of conversions as T itself offers them; values are
// pointers to what has the methods.
type methods struct {
	name      string
	append    func(dst []byte, v any) ([]byte, error)
	unmarshal func(src []byte, v any) error
	has       func(v any) (encode, decode bool)
	want      string
}

var textMethods = &methods{
	name: "text",
	want: "AppendText or MarshalText, and UnmarshalText",
	append: func(dst []byte, v any) ([]byte, error) {
		if a, ok := v.(encoding.TextAppender); ok {
			return a.AppendText(dst)
		}
		b, err := v.(encoding.TextMarshaler).MarshalText()
		return append(dst, b...), err
	},
	unmarshal: func(src []byte, v any) error {
		return v.(encoding.TextUnmarshaler).UnmarshalText(src)
	},
	has: func(v any) (bool, bool) {
		_, a := v.(encoding.TextAppender)
		_, m := v.(encoding.TextMarshaler)
		_, u := v.(encoding.TextUnmarshaler)
		return a || m, u
	},
}

var binaryMethods = &methods{
	name: "binary",
	want: "AppendBinary or MarshalBinary, and UnmarshalBinary",
	append: func(dst []byte, v any) ([]byte, error) {
		if a, ok := v.(encoding.BinaryAppender); ok {
			return a.AppendBinary(dst)
		}
		b, err := v.(encoding.BinaryMarshaler).MarshalBinary()
		return append(dst, b...), err
	},
	unmarshal: func(src []byte, v any) error {
		return v.(encoding.BinaryUnmarshaler).UnmarshalBinary(src)
	},
	has: func(v any) (bool, bool) {
		_, a := v.(encoding.BinaryAppender)
		_, m := v.(encoding.BinaryMarshaler)
		_, u := v.(encoding.BinaryUnmarshaler)
		return a || m, u
	},
}

func mustMarshal[T any](m *methods) Codec[T] {
	c, err := newMarshal[T](m)
	if err != nil {
		panic("codec: " + err.Error())
	}
	return c
}

func newMarshal[T any](m *methods) (Codec[T], error) {
	t := reflect.TypeFor[T]()
	elem := t
	if t.Kind() == reflect.Pointer {
		elem = t.Elem()
	}
	if encode, decode := m.has(reflect.New(elem).Interface()); !encode || !decode {
		return nil, fmt.Errorf("%v has no %s codec: that needs the methods %s", t, m.name, m.want)
	}
	if t.Kind() == reflect.Pointer {
		return pointerCodec[T]{m, elem}, nil
	}
	return &marshalCodec[T]{methods: m, slots: sync.Pool{New: func() any { return new(T) }}}, nil
}

// refused hides the message of err: the methods of time and netip, for
// example, quote what they were given.
func refused[T any](op error, m *methods, err error) error {
	return &Error{Op: op, Codec: named[T](m.name), Reason: fmt.Sprintf("the type's own method failed with a %T", err), Err: err}
}

// marshalCodec is for a T that is no pointer; the methods are those of *T.
type marshalCodec[T any] struct {
	*methods
	slots sync.Pool // of *T, so that encoding needs not put v on the heap
}

func (c *marshalCodec[T]) Append(dst []byte, v T) ([]byte, error) {
	slot := c.slots.Get().(*T)
	*slot = v
	out, err := c.append(dst, slot)
	var zero T
	*slot = zero
	c.slots.Put(slot)
	if err != nil {
		return dst, refused[T](ErrEncode, c.methods, err)
	}
	return out, nil
}

// Decode takes no slot from the pool: a T may refer to itself, and a copy of
// it would then change with the next record.
func (c *marshalCodec[T]) Decode(src []byte) (T, error) {
	var v, zero T
	if err := c.unmarshal(src, &v); err != nil {
		return zero, refused[T](ErrDecode, c.methods, err)
	}
	return v, nil
}

// pointerCodec is for a T that is a pointer to what has the methods.
type pointerCodec[T any] struct {
	*methods
	elem reflect.Type
}

func (c pointerCodec[T]) Append(dst []byte, v T) ([]byte, error) {
	var zero T
	if any(v) == any(zero) {
		return dst, &Error{Op: ErrEncode, Codec: named[T](c.name), Reason: "the pointer is nil"}
	}
	out, err := c.append(dst, v)
	if err != nil {
		return dst, refused[T](ErrEncode, c.methods, err)
	}
	return out, nil
}

func (c pointerCodec[T]) Decode(src []byte) (T, error) {
	v := reflect.New(c.elem).Interface()
	if err := c.unmarshal(src, v); err != nil {
		var zero T
		return zero, refused[T](ErrDecode, c.methods, err)
	}
	return v.(T), nil
}
