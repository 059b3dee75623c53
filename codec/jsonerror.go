package codec

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
)

var errTrailing = errors.New("data after the JSON value")

// jsonError says what is wrong in words of our own: those of encoding/json
// quote numbers, characters and map keys of the value.
func jsonError[T any](op, err error) error {
	return &Error{Op: op, Codec: named[T]("json"), Reason: jsonReason(reflect.TypeFor[T](), err), Err: err}
}

func jsonReason(t reflect.Type, err error) string {
	switch e := err.(type) { //nolint:errorlint // as encoding/json made it: an error of a method, in a MarshalerError, is not for us to quote
	case *json.SyntaxError:
		return fmt.Sprintf("invalid JSON at byte %d", e.Offset)
	case *json.UnmarshalTypeError:
		kind, _, _ := strings.Cut(e.Value, " ") // "number 42"
		return fmt.Sprintf("a JSON %s does not fit into %v%s, at byte %d", kind, e.Type, fieldOf(t, e.Field), e.Offset)
	case *json.UnsupportedValueError:
		return "a number that is not finite, or a value that contains itself"
	case *json.UnsupportedTypeError:
		return fmt.Sprintf("JSON has no form for a %v", e.Type)
	case *json.MarshalerError:
		return fmt.Sprintf("a method of %v failed with a %T", e.Type, e.Err)
	}
	switch err { //nolint:errorlint // the same
	case io.EOF, io.ErrUnexpectedEOF:
		return "the JSON value is cut off"
	case errTrailing:
		return err.Error()
	}
	return fmt.Sprintf("failed with a %T", err)
}

// fieldOf is " of field a.b" for a path of encoding/json. Of the path only
// names of fields are shown; whatever else, which may be a key of a map and so
// a part of the value, is shown as "*".
func fieldOf(t reflect.Type, path string) string {
	if path == "" {
		return ""
	}
	parts := strings.Split(path, ".")
	for i, part := range parts {
		next, known := step(t, part)
		if !known {
			parts[i] = "*"
		}
		if t = next; t == nil {
			parts = parts[:i+1]
			break
		}
	}
	return " of field " + strings.Join(parts, ".")
}

// step is the type at part of t, nil if that cannot be told, and whether part
// is the name of a field.
func step(t reflect.Type, part string) (next reflect.Type, field bool) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.Map, reflect.Slice, reflect.Array:
		return t.Elem(), false
	case reflect.Struct:
		for _, f := range reflect.VisibleFields(t) {
			if jsonName(f) == part {
				return f.Type, true
			}
		}
	}
	return nil, false
}
