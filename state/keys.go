package state

import (
	"fmt"

	"github.com/semelstream/semel/codec"
)

// keys is how a typed store turns the user's keys into bytes and back.
type keys[K any] struct {
	name  string // the store's
	codec codec.Codec[K]
	kbuf  []byte // scratch
	block []byte // where keys that others may keep are copied to
}

// encode adds key to dst.
func (s *keys[K]) encode(dst []byte, key K) ([]byte, error) {
	out, err := s.codec.Append(dst, key)
	if err != nil {
		return dst, s.failed("encoding a key", err)
	}
	return out, nil
}

// keyBlock is how much memory for kept keys is made at a time.
const keyBlock = 16 << 10

// decode decodes a key that the caller may keep: it is decoded from bytes that
// are never used again, as a codec may return a view of them.
func (s *keys[K]) decode(key []byte) (k K, err error) {
	if len(key) > cap(s.block)-len(s.block) {
		s.block = make([]byte, 0, max(keyBlock, len(key)))
	}
	at := len(s.block)
	s.block = append(s.block, key...)
	if k, err = s.codec.Decode(s.block[at:len(s.block):len(s.block)]); err != nil {
		return k, s.failed("decoding a key", err)
	}
	return k, nil
}

func (s *keys[K]) failed(what string, err error) error {
	return fmt.Errorf("store %q: %s: %w", s.name, what, err)
}
