package codec

import (
	"fmt"
	"strings"
)

// Name is what a codec's format is called where formats are compared: "int64",
// "json", "pair of string and int64". Codecs of one name are taken to read what
// the other has written. A codec with a method String() string gives its name
// itself; without, it is that of its type, less type parameters. nil has none.
//
// A JSON codec is "json" whatever its type, and one of [Func] is "func" whatever
// its functions, so that a type may be renamed and may get fields.
func Name[T any](c Codec[T]) string {
	switch c := c.(type) {
	case nil:
		return ""
	case fmt.Stringer:
		return c.String()
	}
	name, _, _ := strings.Cut(strings.TrimPrefix(fmt.Sprintf("%T", c), "*"), "[")
	return name
}

func (stringCodec) String() string      { return "string" }
func (bytesCodec) String() string       { return "bytes" }
func (boolCodec) String() string        { return "bool" }
func (int32Codec) String() string       { return "int32" }
func (int64Codec) String() string       { return "int64" }
func (intCodec) String() string         { return "int64" } // as it writes
func (float64Codec) String() string     { return "float64" }
func (nothingCodec) String() string     { return "nothing" }
func (timeCodec) String() string        { return "time" }
func (uuidCodec) String() string        { return "uuid" }
func (funcCodec[T]) String() string     { return "func" }
func (*jsonCodec[T]) String() string    { return "json" }
func (c viaCodec[T, U]) String() string { return Name(c.codec) }
func (c defined[T, U]) String() string  { return Name(c.codec) }
func (c pairCodec[A, B]) String() string {
	return "pair of " + Name(c.first) + " and " + Name(c.second)
}
func (m *methods) String() string { return m.name } // of Text and Binary
