package codec

import "reflect"

// Via makes a codec of T from one of U and conversions, so that a type of
// your own can use another's format. The conversions are each other's inverse;
// from may refuse with an error, which is wrapped in an [*Error] and printed as
// it is: keep the value out of it.
//
// If c is an [Owner], from may hand on views, and the result is an Owner too,
// by conversion to U and back. A T that from refuses was never decoded by this
// codec, so Own returns it as it is.
func Via[T, U any](c Codec[U], to func(T) U, from func(U) (T, error)) Codec[T] {
	via := viaCodec[T, U]{c, to, from}
	// A T without pointers cannot be a view, whatever it was made from.
	if own, ok := c.(Owner[U]); ok && holdsPointers(reflect.TypeFor[T]()) {
		return viaOwner[T, U]{via, own}
	}
	return via
}

type viaCodec[T, U any] struct {
	codec Codec[U]
	to    func(T) U
	from  func(U) (T, error)
}

func (c viaCodec[T, U]) Append(dst []byte, v T) ([]byte, error) {
	return c.codec.Append(dst, c.to(v))
}

func (c viaCodec[T, U]) Decode(src []byte) (T, error) {
	var zero T
	u, err := c.codec.Decode(src)
	if err != nil {
		return zero, err
	}
	v, err := c.from(u)
	if err != nil {
		return zero, foreign[T](ErrDecode, "via", err)
	}
	return v, nil
}

type viaOwner[T, U any] struct {
	viaCodec[T, U]
	owner Owner[U]
}

func (c viaOwner[T, U]) Own(v T) T {
	owned, err := c.from(c.owner.Own(c.to(v)))
	if err != nil {
		return v
	}
	return owned
}

// holdsPointers reports whether a t can refer to memory outside of itself.
func holdsPointers(t reflect.Type) bool {
	switch k := t.Kind(); {
	case k >= reflect.Bool && k <= reflect.Complex128 && k != reflect.Uintptr:
		return false
	case k == reflect.Array:
		return t.Len() > 0 && holdsPointers(t.Elem())
	case k == reflect.Struct:
		for f := range t.Fields() {
			if holdsPointers(f.Type) {
				return true
			}
		}
		return false
	}
	return true
}
