package state

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/internal/assert"
)

// A Window is the typed rows of a store by key and the start of a window,
// inside the open transaction of its DB. Starts and times are ms since 1970, and
// no start is negative. What [KV] says of values holds here too.
type Window[K, V any] struct {
	o *overlay[V]
	keys[K]
	places  []byte   // scratch of Touch
	touched [][]byte // too
}

// errNegative is a window or session at a time that there is not.
var errNegative = errors.New("its time is negative, or it ends before it starts")

// OpenWindow opens a KindWindow, KindWindowOnce or KindWindowByKey store of d.
// Opened again with the same types it is the same Window; other types are an
// error.
func OpenWindow[K, V any](d *DB, store string, key codec.Codec[K], value codec.Codec[V]) (*Window[K, V], error) {
	return openTyped(d, store, func(p *Part) *Window[K, V] {
		o := newOverlay(p, value)
		p.store = o
		return &Window[K, V]{o: o, keys: keys[K]{name: p.name, codec: key}}
	}, KindWindow, KindWindowOnce, KindWindowByKey)
}

// place is a row's key in the store's order.
func (s *Window[K, V]) place(dst []byte, key K, start int64, seq uint32) (out []byte, err error) {
	if start < 0 {
		return dst, s.failed("looking for a window", fmt.Errorf("%d: %w", start, errNegative))
	}
	keys := &s.o.p.rec.keys
	if keys.kind.byStart() {
		return s.encode(addTime(dst, start), key)
	}
	if out, err = s.encode(addTime(dst, start/keys.segment), key); err != nil {
		return dst, err
	}
	return binary.BigEndian.AppendUint32(addTime(out, start), seq), nil
}

// Find returns the row of key and start and its place, also if there is no such
// row. One that has expired is not there, and what is done to its place
// changes nothing.
func (s *Window[K, V]) Find(key K, start int64) (ref Ref, v V, time int64, ok bool, err error) {
	return s.find(key, start, 0)
}

func (s *Window[K, V]) find(key K, start int64, seq uint32) (ref Ref, v V, time int64, ok bool, err error) {
	if s.kbuf, err = s.place(s.kbuf[:0], key, start, seq); err != nil || start < s.o.gone.now {
		return ref, v, 0, false, err
	}
	return s.o.findRow(s.kbuf)
}

// Set puts v where Find was.
func (s *Window[K, V]) Set(ref Ref, v V, time int64) { s.o.setRef(ref, v, time) }

// Remove deletes where Find was. Of a row that is not there it changes
// nothing.
func (s *Window[K, V]) Remove(ref Ref, time int64) { s.o.removeRef(ref, time) }

// Get returns the row of key and start.
func (s *Window[K, V]) Get(key K, start int64) (v V, time int64, ok bool, err error) {
	if s.kbuf, err = s.place(s.kbuf[:0], key, start, 0); err != nil || start < s.o.gone.now {
		return v, 0, false, err
	}
	return s.o.getRow(s.kbuf)
}

// Put sets the row of key and start, unless it would have expired.
func (s *Window[K, V]) Put(key K, start int64, v V, time int64) error {
	ref, _, _, _, err := s.Find(key, start)
	if err == nil {
		s.Set(ref, v, time)
	}
	return err
}

// Delete removes the row of key and start; time is that of the changelog's
// tombstone.
func (s *Window[K, V]) Delete(key K, start int64, time int64) error {
	ref, _, _, _, err := s.Find(key, start)
	if err == nil {
		s.Remove(ref, time)
	}
	return err
}

// Add puts one more row under key and start, behind those that are there, of a
// KindWindowByKey store. It does nothing if the row would have expired.
//
// Rows are numbered through the whole store, so that nobody has to look for the
// last one of a start. The numbers go on behind the highest that a restore met,
// or what SetAdded said, and are used again after 2^32 rows where they have
// become free.
func (s *Window[K, V]) Add(key K, start int64, v V, time int64) error {
	p := s.o.p
	if kind := p.rec.keys.kind; kind != KindWindowByKey { // the assertion's arguments cost an allocation
		assert.That(false, "store %s: Add to a %s store", p.name, kind)
	}
	for n := p.seq.now + 1; ; n++ {
		if uint32(n) == 0 { // the number of rows that are put
			continue
		}
		ref, _, _, taken, err := s.find(key, start, uint32(n))
		if err != nil || ref == (Ref{}) {
			return err
		}
		if taken {
			continue
		}
		p.seq.set(n, p.d.gen)
		if s.o.added != nil {
			v = s.o.added(v)
		}
		s.o.set(ref.idx, v, time, true)
		return nil
	}
}

// Added is the number of the row that was added last.
func (s *Window[K, V]) Added() int64 { return s.o.p.seq.now }

// SetAdded makes numbers go on behind n, unless they are there already. A
// changelog does not tell the number of what has expired.
func (s *Window[K, V]) SetAdded(n int64) {
	if p := s.o.p; n > p.seq.now {
		p.seq.set(n, p.d.gen)
	}
}

// Expire makes all rows that start before the bound disappear. The bound belongs
// to the transaction: views know it from the commit on, and rows leave the engine
// after it. It never falls but by Undo and Rewind. No changelog has it: set it
// again after opening.
func (s *Window[K, V]) Expire(before int64) { s.o.expire(before) }

// Expired is the bound that Expire has set, 0 if there is none.
func (s *Window[K, V]) Expired() int64 { return s.o.gone.now }

// WindowChanged is a row that the open transaction changed: as it was before
// the transaction, and as it is.
type WindowChanged[K, V any] struct {
	Key     K
	Start   int64
	Old     V
	OldTime int64
	OldOK   bool // there was a row
	New     V
	Time    int64 // of the change, also if it deleted the row
	OK      bool  // there is a row
}

// Changed calls f with the rows that the open transaction changed, also those
// that have expired since; see [KV.Changed].
func (s *Window[K, V]) Changed(f func(c WindowChanged[K, V]) error) error {
	return s.o.eachChanged(func(key []byte, t before[V], e *entry[V]) error {
		keys := &s.o.p.rec.keys
		k, err := s.decode(keys.inner(key))
		if err != nil {
			return err
		}
		return f(WindowChanged[K, V]{
			Key: k, Start: keys.time(key), New: e.v, Time: e.time, OK: e.flags&present != 0,
			Old: t.v, OldTime: t.time, OldOK: t.has,
		})
	})
}

// row is what the merge stands on, typed.
func (s *Window[K, V]) row(m *merge[V]) (row WindowRow[K, V], err error) {
	keys := &s.o.p.rec.keys
	if row.Key, err = s.decode(keys.inner(m.key)); err != nil {
		return WindowRow[K, V]{}, err
	}
	row.Start, row.Value, row.Time = keys.time(m.key), m.v, m.time
	return row, nil
}

const maxTime = math.MaxInt64
