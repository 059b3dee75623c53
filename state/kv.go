package state

import (
	"github.com/semelstream/semel/codec"
)

// A KV is the typed rows of a key-value store inside the open transaction of
// its DB. Rows carry the time of the record that wrote them, in ms since 1970.
//
// A value that was put or gotten belongs to the store from then on: to change
// it, put a new one. What a codec's Own copies is copied when it is put.
type KV[K, V any] struct {
	o *overlay[V]
	keys[K]
}

// OpenKV opens a KindKeyValue store of d. Opened again with the same types it
// is the same KV; other types are an error.
func OpenKV[K, V any](d *DB, store string, key codec.Codec[K], value codec.Codec[V]) (*KV[K, V], error) {
	return openTyped(d, store, func(p *Part) *KV[K, V] {
		o := newOverlay(p, value)
		p.store = o
		return &KV[K, V]{o: o, keys: keys[K]{name: p.name, codec: key}}
	}, KindKeyValue)
}

// Find returns the row of key and its place, also if there is no such row.
func (s *KV[K, V]) Find(key K) (ref Ref, v V, time int64, ok bool, err error) {
	if s.kbuf, err = s.encode(s.kbuf[:0], key); err != nil {
		return ref, v, 0, false, err
	}
	return s.FindBytes(s.kbuf)
}

// FindBytes is Find with an encoded key.
func (s *KV[K, V]) FindBytes(key []byte) (ref Ref, v V, time int64, ok bool, err error) {
	return s.o.findRow(key)
}

// Set puts v where Find was.
func (s *KV[K, V]) Set(ref Ref, v V, time int64) { s.o.setRef(ref, v, time) }

// Remove deletes where Find was. Of a row that is not there it changes
// nothing.
func (s *KV[K, V]) Remove(ref Ref, time int64) { s.o.removeRef(ref, time) }

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
