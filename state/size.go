package state

import (
	"reflect"
	"unsafe"
)

// pointerSize is the guess for what a value with pointers holds outside of
// itself.
const pointerSize = 128

// sizerOf returns how to tell the memory that values have outside of V, nil if
// they have none. It is exact for strings and bytes and a guess for others
// with pointers.
func sizerOf[V any]() func(V) int {
	if f, ok := any(func(v string) int { return len(v) }).(func(V) int); ok {
		return f
	}
	if f, ok := any(func(v []byte) int { return cap(v) }).(func(V) int); ok {
		return f
	}
	if !hasPointers(reflect.TypeFor[V]()) {
		return nil
	}
	return func(V) int { return pointerSize }
}

// sizeOf is the memory of a V itself.
func sizeOf[V any]() int {
	var v V
	return int(unsafe.Sizeof(v))
}

func hasPointers(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Array:
		return t.Len() > 0 && hasPointers(t.Elem())
	case reflect.Struct:
		for f := range t.Fields() {
			if hasPointers(f.Type) {
				return true
			}
		}
		return false
	case reflect.Pointer, reflect.Slice, reflect.Map, reflect.String, reflect.Interface,
		reflect.Func, reflect.Chan, reflect.UnsafePointer:
		return true
	}
	return false
}
