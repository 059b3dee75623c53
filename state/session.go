package state

import (
	"fmt"

	"github.com/semelstream/semel/codec"
)

// A Session is the typed rows of a store by key and session, inside the open
// transaction of its DB. Both ends of a session belong to it; times are ms since
// 1970 and never negative. What [KV] says of values holds here too.
type Session[K, V any] struct {
	o *overlay[V]
	keys[K]
}

// OpenSession opens a KindSession store of d. Opened again with the same types
// it is the same Session; other types are an error.
func OpenSession[K, V any](d *DB, store string, key codec.Codec[K], value codec.Codec[V]) (*Session[K, V], error) {
	return openTyped(d, store, func(p *Part) *Session[K, V] {
		o := newOverlay(p, value)
		p.store = o
		return &Session[K, V]{o: o, keys: keys[K]{name: p.name, codec: key}}
	}, KindSession)
}

// place is a row's key in the store's order.
func (s *Session[K, V]) place(dst []byte, key K, start, end int64) (out []byte, err error) {
	if start < 0 || end < start {
		return dst, s.failed("looking for a session", fmt.Errorf("%d to %d: %w", start, end, errNegative))
	}
	if out, err = s.encode(addTime(dst, end/s.o.p.rec.keys.segment), key); err != nil {
		return dst, err
	}
	return addTime(addTime(out, end), start), nil
}

// Find returns the row of key and session and its place, also if there is no
// such row. One that has expired is not there, and what is done to its place
// changes nothing.
func (s *Session[K, V]) Find(key K, start, end int64) (ref Ref, v V, time int64, ok bool, err error) {
	if s.kbuf, err = s.place(s.kbuf[:0], key, start, end); err != nil || end < s.o.gone.now {
		return ref, v, 0, false, err
	}
	return s.o.findRow(s.kbuf)
}

// Set puts v where Find was.
func (s *Session[K, V]) Set(ref Ref, v V, time int64) { s.o.setRef(ref, v, time) }

// Remove deletes where Find was. Of a row that is not there it changes
// nothing.
func (s *Session[K, V]) Remove(ref Ref, time int64) { s.o.removeRef(ref, time) }

// Get returns the row of key and session.
func (s *Session[K, V]) Get(key K, start, end int64) (v V, time int64, ok bool, err error) {
	if s.kbuf, err = s.place(s.kbuf[:0], key, start, end); err != nil || end < s.o.gone.now {
		return v, 0, false, err
	}
	return s.o.getRow(s.kbuf)
}

// Put sets the row of key and session, unless it would have expired.
func (s *Session[K, V]) Put(key K, start, end int64, v V, time int64) error {
	ref, _, _, _, err := s.Find(key, start, end)
	if err == nil {
		s.Set(ref, v, time)
	}
	return err
}

// Delete removes the row of key and session; time is that of the changelog's
// tombstone.
func (s *Session[K, V]) Delete(key K, start, end int64, time int64) error {
	ref, _, _, _, err := s.Find(key, start, end)
	if err == nil {
		s.Remove(ref, time)
	}
	return err
}

// Expire makes all rows that end before the bound disappear. The bound belongs
// to the transaction: views know it from the commit on, and rows leave the engine
// after it. It never falls but by Undo and Rewind. No changelog has it: set it
// again after opening.
func (s *Session[K, V]) Expire(before int64) { s.o.expire(before) }

// Expired is the bound that Expire has set, 0 if there is none.
func (s *Session[K, V]) Expired() int64 { return s.o.gone.now }

// SessionChanged is a row that the open transaction changed: as it was before
// the transaction, and as it is.
type SessionChanged[K, V any] struct {
	Key        K
	Start, End int64
	Old        V
	OldTime    int64
	OldOK      bool // there was a row
	New        V
	Time       int64 // of the change, also if it deleted the row
	OK         bool  // there is a row
}

// Changed calls f with the rows that the open transaction changed, also those
// that have expired since; see [KV.Changed].
func (s *Session[K, V]) Changed(f func(c SessionChanged[K, V]) error) error {
	return s.o.eachChanged(func(key []byte, t before[V], e *entry[V]) error {
		k, err := s.decode(s.o.p.rec.keys.inner(key))
		if err != nil {
			return err
		}
		return f(SessionChanged[K, V]{
			Key: k, Start: sessionStart(key), End: s.o.p.rec.keys.time(key),
			New: e.v, Time: e.time, OK: e.flags&present != 0,
			Old: t.v, OldTime: t.time, OldOK: t.has,
		})
	})
}

// sessionStart is where a session begins whose key this is in a segment.
func sessionStart(key []byte) int64 { return getTime(key[len(key)-timeSize:]) }

// row is what the merge stands on, typed.
func (s *Session[K, V]) row(m *merge[V]) (row SessionRow[K, V], err error) {
	keys := &s.o.p.rec.keys
	if row.Key, err = s.decode(keys.inner(m.key)); err != nil {
		return SessionRow[K, V]{}, err
	}
	row.Start, row.End, row.Value, row.Time = sessionStart(m.key), keys.time(m.key), m.v, m.time
	return row, nil
}
