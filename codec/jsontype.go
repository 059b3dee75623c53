package codec

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
)

// A jsonShape is what the JSON codec must know of its type.
type jsonShape struct {
	untyped bool // there are interfaces to decode into
	seen    map[reflect.Type]bool
}

func jsonShapeOf(t reflect.Type) (jsonShape, error) {
	s := jsonShape{seen: map[reflect.Type]bool{}}
	if t.Kind() == reflect.Interface && t.NumMethod() > 0 {
		return s, fmt.Errorf("%v is an interface with methods: JSON cannot tell which type to decode into", t)
	}
	if err := s.walk(t); err != nil {
		return s, fmt.Errorf("%v: %w", t, err)
	}
	if loses(t) {
		return s, fmt.Errorf("%v has no exported fields: JSON would keep nothing of it", t)
	}
	return s, nil
}

var (
	jsonMarshaler = reflect.TypeFor[json.Marshaler]()
	textMarshaler = reflect.TypeFor[encoding.TextMarshaler]()
)

// ownJSON reports whether t says itself how it looks in JSON.
func ownJSON(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(jsonMarshaler) || p.Implements(textMarshaler)
}

// walk finds what JSON has no form for, and interfaces.
func (s *jsonShape) walk(t reflect.Type) error {
	if s.seen[t] || ownJSON(t) {
		return nil
	}
	s.seen[t] = true
	switch t.Kind() {
	case reflect.Chan, reflect.Func, reflect.Complex64, reflect.Complex128, reflect.UnsafePointer:
		return fmt.Errorf("JSON has no form for a %v", t)
	case reflect.Interface:
		s.untyped = true
	case reflect.Pointer, reflect.Slice, reflect.Array:
		return s.walk(t.Elem())
	case reflect.Map:
		if err := mapKey(t.Key()); err != nil {
			return err
		}
		return s.walk(t.Elem())
	case reflect.Struct:
		for f := range t.Fields() {
			if !inJSON(f) {
				continue
			}
			if err := s.walk(f.Type); err != nil {
				return fmt.Errorf("field %s: %w", f.Name, err)
			}
		}
	}
	return nil
}

func mapKey(t reflect.Type) error {
	k := t.Kind()
	if k == reflect.String || k >= reflect.Int && k <= reflect.Uintptr || reflect.PointerTo(t).Implements(textMarshaler) {
		return nil
	}
	return fmt.Errorf("JSON has no form for a map key of type %v", t)
}

// inJSON reports whether encoding/json looks at f. An embedded struct counts
// even if its own name is not exported: its fields may be.
func inJSON(f reflect.StructField) bool {
	return (f.IsExported() || f.Anonymous) && f.Tag.Get("json") != "-"
}

// loses reports whether t is a struct of which nothing would be in the JSON.
func loses(t reflect.Type) bool {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || t.NumField() == 0 || ownJSON(t) {
		return false
	}
	for f := range t.Fields() {
		if inJSON(f) {
			return false
		}
	}
	return true
}

// jsonName is the name of f in JSON.
func jsonName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	if name == "" {
		return f.Name
	}
	return name
}
