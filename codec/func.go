package codec

// Func makes a codec of two functions, which keep to what [Codec] says of its
// methods. Since it is no [Owner], decode must return values that stand alone,
// with copies of what they keep of src. Errors of the functions are wrapped in
// an [*Error] and printed as they are: keep values out of them.
func Func[T any](appendTo func(dst []byte, v T) ([]byte, error), decode func(src []byte) (T, error)) Codec[T] {
	return funcCodec[T]{appendTo, decode}
}

type funcCodec[T any] struct {
	append func([]byte, T) ([]byte, error)
	decode func([]byte) (T, error)
}

func (c funcCodec[T]) Append(dst []byte, v T) ([]byte, error) {
	out, err := c.append(dst, v)
	if err != nil {
		return dst, foreign[T](ErrEncode, "func", err)
	}
	return out, nil
}

func (c funcCodec[T]) Decode(src []byte) (T, error) {
	v, err := c.decode(src)
	if err != nil {
		var zero T
		return zero, foreign[T](ErrDecode, "func", err)
	}
	return v, nil
}
