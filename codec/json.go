package codec

import (
	"bytes"
	"encoding/json"
	"io"
	"reflect"
	"sync"
)

// JSON encodes T with encoding/json, on one line and with <, > and & escaped.
// Unlike json.Unmarshal it decodes numbers into interfaces as [json.Number]:
// as float64, ids above 2^53 would come out as other ids.
//
// It panics if JSON cannot hold a T: because there is a function, channel or
// complex number in it, because no field is exported, or because T is an
// interface with methods.
func JSON[T any]() Codec[T] {
	c, err := newJSON[T]()
	if err != nil {
		panic("codec.JSON: " + err.Error())
	}
	return c
}

func newJSON[T any]() (Codec[T], error) {
	shape, err := jsonShapeOf(reflect.TypeFor[T]())
	if err != nil {
		return nil, err
	}
	return &jsonCodec[T]{
		untyped:   shape.untyped,
		scratches: sync.Pool{New: func() any { return newJSONScratch[T]() }},
	}, nil
}

type jsonCodec[T any] struct {
	untyped   bool      // there are interfaces to decode into
	scratches sync.Pool // of *jsonScratch[T]
}

// A jsonScratch keeps what encoding would allocate per record: the value as
// something to point to, the buffer and the encoder.
type jsonScratch[T any] struct {
	value T
	buf   bytes.Buffer
	enc   *json.Encoder
}

// maxScratch is above what most records need; one large record should not
// hold its memory for good.
const maxScratch = 64 << 10

func newJSONScratch[T any]() *jsonScratch[T] {
	s := new(jsonScratch[T])
	s.enc = json.NewEncoder(&s.buf)
	return s
}

func (c *jsonCodec[T]) Append(dst []byte, v T) ([]byte, error) {
	s := c.scratches.Get().(*jsonScratch[T])
	s.value = v
	err := s.enc.Encode(&s.value)
	if err == nil {
		dst = append(dst, bytes.TrimSuffix(s.buf.Bytes(), []byte("\n"))...)
	}
	c.put(s)
	if err != nil {
		return dst, jsonError[T](ErrEncode, err)
	}
	return dst, nil
}

func (c *jsonCodec[T]) put(s *jsonScratch[T]) {
	if s.buf.Cap() > maxScratch {
		return
	}
	var zero T
	s.value = zero
	s.buf.Reset()
	c.scratches.Put(s)
}

func (c *jsonCodec[T]) Decode(src []byte) (T, error) {
	var v, zero T
	var err error
	if c.untyped {
		err = decodeExact(src, &v)
	} else {
		err = json.Unmarshal(src, &v)
	}
	if err != nil {
		return zero, jsonError[T](ErrDecode, err)
	}
	return v, nil
}

// decodeExact is json.Unmarshal with numbers kept as they are written.
func decodeExact(src []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(src))
	dec.UseNumber()
	if err := dec.Decode(v); err != nil {
		return err
	}
	switch _, err := dec.Token(); err {
	case io.EOF:
		return nil
	case nil:
		return errTrailing
	default:
		return err
	}
}
