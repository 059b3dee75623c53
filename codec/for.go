package codec

import (
	"fmt"
	"reflect"
	"time"
	"unsafe"
)

// For picks the codec that T asks for. The first that fits wins:
//
//  1. a built-in one: [String], [Bytes], [Bool], [Int32], [Int64] (also for
//     int), [Float64], [UUID] (for [16]byte), [Time] or [Nothing] (for
//     struct{}), also if T is only defined as one of these types, like
//     "type OrderID string" or [time.Duration];
//  2. [Binary], if T has the methods;
//  3. [JSON].
//
// It reports an error if T has none, and says why. What it picks is part of
// what is in topics and stores: methods of type 2 added to a T later change
// its bytes.
func For[T any]() (Codec[T], error) {
	if c, ok := builtIn[T](); ok {
		return c, nil
	}
	if c, err := newMarshal[T](binaryMethods); err == nil {
		return c, nil
	}
	c, err := newJSON[T]()
	if err != nil {
		return nil, fmt.Errorf("no codec for a type: %w; give one, for example with codec.Func, or add MarshalBinary and UnmarshalBinary", err)
	}
	return c, nil
}

// builtIn is the codec of T as what T is defined as.
func builtIn[T any]() (Codec[T], bool) {
	switch t := reflect.TypeFor[T](); t.Kind() {
	case reflect.String:
		return as[T](String), true
	case reflect.Bool:
		return as[T](Bool), true
	case reflect.Int:
		return as[T, int](intCodec{}), true
	case reflect.Int32:
		return as[T](Int32), true
	case reflect.Int64:
		return as[T](Int64), true
	case reflect.Float64:
		return as[T](Float64), true
	case reflect.Slice:
		if t.Elem() == reflect.TypeFor[byte]() {
			return as[T](Bytes), true
		}
	case reflect.Array:
		if t.Len() == 16 && t.Elem() == reflect.TypeFor[byte]() {
			return as[T](UUID), true
		}
	case reflect.Struct:
		if t.NumField() == 0 {
			return as[T](Nothing), true
		}
		if t.ConvertibleTo(reflect.TypeFor[time.Time]()) {
			return as[T](Time), true
		}
	}
	return nil, false
}

// as is c for a T that is defined as a U.
func as[T, U any](c Codec[U]) Codec[T] {
	if same, ok := c.(Codec[T]); ok {
		return same
	}
	if own, ok := c.(Owner[U]); ok {
		return definedOwner[T, U]{defined[T, U]{c}, own}
	}
	return defined[T, U]{c}
}

// recast is v as what it is defined as. T and U have one underlying type, or
// are told apart by reflection before.
func recast[T, U any](v U) T { return *(*T)(unsafe.Pointer(&v)) }

// defined is a codec of T by way of U without a conversion per record.
type defined[T, U any] struct{ codec Codec[U] }

func (c defined[T, U]) Append(dst []byte, v T) ([]byte, error) {
	return c.codec.Append(dst, recast[U](v))
}

func (c defined[T, U]) Decode(src []byte) (T, error) {
	v, err := c.codec.Decode(src)
	return recast[T](v), err
}

type definedOwner[T, U any] struct {
	defined[T, U]
	owner Owner[U]
}

func (c definedOwner[T, U]) Own(v T) T { return recast[T](c.owner.Own(recast[U](v))) }
