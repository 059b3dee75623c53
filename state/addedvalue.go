package state

import (
	"unsafe"

	"github.com/semelstream/semel/codec"
)

// addedValues copies the values of rows that Add puts, many into one block. Such
// a row is never changed and goes when it expires, about together with those that
// came with it, so that a block is not kept for long by a few of them. Where
// values change it would be: there each is its own.
type addedValues struct{ block []byte }

const (
	addedBlock = 4 << 10
	addedLarge = addedBlock / 8 // a larger one would leave too much of a block unused
)

func (a *addedValues) bytes(v []byte) []byte {
	if len(v) > addedLarge {
		return append([]byte{}, v...)
	}
	if a.block == nil || len(v) > cap(a.block)-len(a.block) { // a value is never nil
		a.block = make([]byte, 0, addedBlock)
	}
	at := len(a.block)
	a.block = append(a.block, v...)
	return a.block[at:len(a.block):len(a.block)]
}

func (a *addedValues) string(v string) string {
	b := a.bytes(unsafe.Slice(unsafe.StringData(v), len(v)))
	return unsafe.String(unsafe.SliceData(b), len(b))
}

// ownAdded is how Add makes values its own: those of codecs that say nothing but
// that a value is its bytes go into blocks, the others as o.own has it.
func ownAdded[V any](value codec.Codec[V], own func(V) V) func(V) V {
	a := &addedValues{}
	switch any(value) {
	case any(codec.String):
		return any(a.string).(func(V) V)
	case any(codec.Bytes):
		return any(a.bytes).(func(V) V)
	}
	return own
}
