package state

import (
	"fmt"

	"github.com/semelstream/semel/codec"
)

// A KV is the typed rows of a key-value store inside the open transaction of
// its DB. Rows carry the time of the record that wrote them, in ms since 1970.
//
// A value that was put or gotten belongs to the store from then on: to change
// it, put a new one. What a codec's Own copies is copied when it is put.
type KV[K, V any] struct {
	o    *overlay[V]
	key  codec.Codec[K]
	kbuf []byte
	keep []byte // where keys that others may keep are copied to
}

// OpenKV opens a store of d. Opened again with the same types it is the same
// KV; other types are an error.
func OpenKV[K, V any](d *DB, store string, key codec.Codec[K], value codec.Codec[V]) (*KV[K, V], error) {
	p := d.Part(store)
	if p == nil {
		return nil, fmt.Errorf("store %q is not among the stores of this task", store)
	}
	if p.typed != nil {
		s, ok := p.typed.(*KV[K, V])
		if !ok {
			return nil, fmt.Errorf("store %q is open as %T and cannot be a %T too", store, p.typed, s)
		}
		return s, nil
	}
	s := &KV[K, V]{o: newOverlay(p, value), key: key}
	p.store, p.typed = s.o, s
	return s, nil
}

// A Ref is a row's place, found once and used for several things: it ends with
// the next call on the same store that takes a key.
type Ref struct{ idx uint32 }

// Find returns the row of key and its place, also if there is no such row.
func (s *KV[K, V]) Find(key K) (ref Ref, v V, time int64, ok bool, err error) {
	if s.kbuf, err = s.encodeKey(s.kbuf, key); err != nil {
		return ref, v, 0, false, err
	}
	return s.FindBytes(s.kbuf)
}

// FindBytes is Find with an encoded key.
func (s *KV[K, V]) FindBytes(key []byte) (ref Ref, v V, time int64, ok bool, err error) {
	idx, err := s.o.find(key)
	if err != nil {
		return ref, v, 0, false, s.failed("reading a row", err)
	}
	e := s.o.at(idx)
	if e.flags&present == 0 {
		return Ref{idx}, v, 0, false, nil
	}
	return Ref{idx}, e.v, e.time, true, nil
}

// Set puts v where Find was.
func (s *KV[K, V]) Set(ref Ref, v V, time int64) {
	if s.o.own != nil {
		v = s.o.own(v)
	}
	s.o.set(ref.idx, v, time, true)
}

// Remove deletes where Find was. Of a row that is not there it changes
// nothing.
func (s *KV[K, V]) Remove(ref Ref, time int64) {
	if s.o.at(ref.idx).flags&present == 0 {
		return
	}
	var zero V
	s.o.set(ref.idx, zero, time, false)
}

// Get returns the row of key.
func (s *KV[K, V]) Get(key K) (v V, time int64, ok bool, err error) {
	_, v, time, ok, err = s.Find(key)
	return v, time, ok, err
}

// Put sets the row of key.
func (s *KV[K, V]) Put(key K, v V, time int64) error {
	ref, _, _, _, err := s.Find(key)
	if err != nil {
		return err
	}
	s.Set(ref, v, time)
	return nil
}

// PutIfAbsent sets the row of key unless there is one, and returns that.
func (s *KV[K, V]) PutIfAbsent(key K, v V, time int64) (old V, oldTime int64, existed bool, err error) {
	ref, old, oldTime, existed, err := s.Find(key)
	if err == nil && !existed {
		s.Set(ref, v, time)
	}
	return old, oldTime, existed, err
}

// Delete removes the row of key; time is that of the changelog's tombstone.
func (s *KV[K, V]) Delete(key K, time int64) error {
	ref, _, _, _, err := s.Find(key)
	if err != nil {
		return err
	}
	s.Remove(ref, time)
	return nil
}

// Len is how many rows there are. The first call after opening, a restore or a
// rewind counts them all.
func (s *KV[K, V]) Len() int64 {
	n, err := s.o.count()
	if err != nil {
		return 0 // the next read of a row has the error
	}
	return n
}

// Touch brings what the next Finds of these encoded keys need closer to the
// processor. It changes nothing.
func (s *KV[K, V]) Touch(keys [][]byte) { s.o.touch(keys) }

func (s *KV[K, V]) encodeKey(dst []byte, key K) ([]byte, error) {
	out, err := s.key.Append(dst[:0], key)
	if err != nil {
		return dst, s.failed("encoding a key", err)
	}
	return out, nil
}

// keyBlock is how much memory for kept keys is made at a time.
const keyBlock = 16 << 10

// decodeKey decodes a key that the caller may keep: it is decoded from bytes
// that are never used again, as a codec may return a view of them.
func (s *KV[K, V]) decodeKey(key []byte) (k K, err error) {
	if len(key) > cap(s.keep)-len(s.keep) {
		s.keep = make([]byte, 0, max(keyBlock, len(key)))
	}
	at := len(s.keep)
	s.keep = append(s.keep, key...)
	if k, err = s.key.Decode(s.keep[at:len(s.keep):len(s.keep)]); err != nil {
		return k, s.failed("decoding a key", err)
	}
	return k, nil
}

func (s *KV[K, V]) failed(what string, err error) error {
	return fmt.Errorf("store %q: %s: %w", s.o.p.name, what, err)
}
