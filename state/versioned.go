package state

import (
	"errors"
	"fmt"
	"iter"
	"math"
	"time"

	"github.com/semelstream/semel/codec"
)

// A Versioned is the typed versions of a store's rows inside the open
// transaction of its DB. A version begins at a time, in ms since 1970 and never
// negative, and is valid until the next one of its key begins; a deletion is a
// version too.
//
// The store has a time: the largest at which a version was put. What was valid
// longer than the history before it is forgotten and not found, except the
// newest version of a key, which stays. The time belongs to the transaction and
// is not stored: its owner keeps it, and sets it again after opening.
type Versioned[K, V any] struct {
	o *overlay[history[V]]
	keys[K]
	value   *historyCodec[V]
	history int64
}

// A VersionRow is a version of a value. It is valid from From, included, to
// To, excluded, which is math.MaxInt64 for the newest.
type VersionRow[V any] struct {
	Value    V
	From, To int64
}

// noTime is the time of a store that has none yet.
const noTime = math.MinInt64

// OpenVersioned opens a KindVersioned store of d that remembers the versions of
// the last history ms. Opened again with the same types it is the same
// Versioned; other types are an error.
func OpenVersioned[K, V any](d *DB, store string, key codec.Codec[K], value codec.Codec[V], history int64) (*Versioned[K, V], error) {
	return openTyped(d, store, func(p *Part) *Versioned[K, V] {
		return newVersioned(p, key, value, history)
	}, KindVersioned)
}

func newVersioned[K, V any](p *Part, key codec.Codec[K], value codec.Codec[V], keep int64) *Versioned[K, V] {
	c := &historyCodec[V]{value: value}
	if owner, ok := value.(codec.Owner[V]); ok {
		c.own = owner.Own
	}
	o := newOverlay[history[V]](p, c)
	s := &Versioned[K, V]{o: o, keys: keys[K]{name: p.name, codec: key}, value: c, history: keep}
	o.emit, o.sizer = s.emit, historySizer[V]()
	o.clock = scalar{now: noTime, mark: noTime, committed: noTime}
	p.store = o
	return s
}

// historySizer is the memory that a history has outside of itself.
func historySizer[V any]() func(history[V]) int {
	one := sizerOf[V]()
	return func(h history[V]) int {
		n := cap(h) * sizeOf[version[V]]()
		for i := range h {
			if one != nil {
				n += one(h[i].v)
			}
		}
		return n
	}
}

// Time is the store's time: the largest at which a version was put, or what
// SetTime said; math.MinInt64 if there is neither.
func (s *Versioned[K, V]) Time() int64 { return s.o.clock.now }

// SetTime sets the store's time to what its owner kept.
func (s *Versioned[K, V]) SetTime(ms int64) { s.o.clock.set(ms, s.o.d.gen) }

// bound is the earliest time that can be read and written at.
func (s *Versioned[K, V]) bound(now int64) int64 {
	if now < noTime+s.history {
		return noTime
	}
	return now - s.history
}

// Put makes v the value of key from at on, until to: when the next version
// begins, math.MaxInt64 if there is none. ok is false if at lies before the
// history; nothing has changed then.
func (s *Versioned[K, V]) Put(key K, at int64, v V) (to int64, ok bool, err error) {
	if s.value.own != nil {
		v = s.value.own(v)
	}
	return s.put(key, version[V]{from: at, v: v, has: true})
}

// Delete is Put of no value.
func (s *Versioned[K, V]) Delete(key K, at int64) (to int64, ok bool, err error) {
	return s.put(key, version[V]{from: at})
}

var errBeforeTime = errors.New("its time is negative")

func (s *Versioned[K, V]) put(key K, v version[V]) (to int64, ok bool, err error) {
	clock := &s.o.clock
	switch {
	case v.from < 0:
		return 0, false, s.failed("putting a version", fmt.Errorf("%d: %w", v.from, errBeforeTime))
	case v.from < s.bound(clock.now):
		return 0, false, nil
	}
	ref, h, _, _, err := s.find(key)
	if err != nil {
		return 0, false, err
	}
	clock.set(max(clock.now, v.from), s.o.d.gen)
	v.tx = s.o.d.tx
	h, i := h.with(v, s.bound(clock.now))
	s.o.setRef(ref, h, h[len(h)-1].from)
	return h.to(i), true, nil
}

func (s *Versioned[K, V]) find(key K) (ref Ref, h history[V], at int64, ok bool, err error) {
	if s.kbuf, err = s.encode(s.kbuf[:0], key); err != nil {
		return ref, nil, 0, false, err
	}
	return s.o.findRow(s.kbuf)
}

// Get returns the newest version of key, unless that is a deletion.
func (s *Versioned[K, V]) Get(key K) (v V, from int64, ok bool, err error) {
	_, h, _, _, err := s.find(key)
	return h.newest(err)
}

func (h history[V]) newest(failed error) (v V, from int64, ok bool, err error) {
	if failed != nil || len(h) == 0 || !h[len(h)-1].has {
		return v, 0, false, failed
	}
	last := &h[len(h)-1]
	return last.v, last.from, true, nil
}

// GetAsOf returns the version of key that is valid at a time. Before the history
// only the newest one is found.
func (s *Versioned[K, V]) GetAsOf(key K, at int64) (v V, from, to int64, ok bool, err error) {
	_, h, _, _, err := s.find(key)
	return h.get(at, s.bound(s.o.clock.now), err)
}

func (h history[V]) get(at, bound int64, failed error) (v V, from, to int64, ok bool, err error) {
	i := h.asOf(at)
	if failed != nil || i < 0 || !h[i].has || at < bound && i < len(h)-1 {
		return v, 0, 0, false, failed
	}
	return h[i].v, h[i].from, h.to(i), true, nil
}

// History are the versions of key that were valid at some time between from
// and to, both included, oldest first, as far back as the history goes.
func (s *Versioned[K, V]) History(key K, from, to int64) iter.Seq2[VersionRow[V], error] {
	return func(yield func(VersionRow[V], error) bool) {
		_, h, _, _, err := s.find(key)
		h.each(from, to, s.bound(s.o.clock.now), err, yield)
	}
}

func (h history[V]) each(from, to, bound int64, failed error, yield func(VersionRow[V], error) bool) {
	if failed != nil {
		yield(VersionRow[V]{}, failed)
		return
	}
	for i := range h {
		row, first := VersionRow[V]{Value: h[i].v, From: h[i].from, To: h.to(i)}, from
		if i < len(h)-1 {
			first = max(first, bound)
		}
		if h[i].has && first <= to && row.From <= to && first < row.To && !yield(row, nil) {
			return
		}
	}
}

// All are the newest versions of all keys but of those that are deleted, in
// order of encoded keys. A row's time is when its version began.
func (s *Versioned[K, V]) All() Rows[K, V] {
	return newestRows(walk(s.o, route{}, nil, s.row))
}

// newestRows are the newest versions of histories, but for deletions.
func newestRows[K, V any](all iter.Seq2[Entry[K, history[V]], error]) Rows[K, V] {
	return func(yield func(Entry[K, V], error) bool) {
		for h, err := range all {
			v, from, ok, err := h.Value.newest(err)
			if err != nil {
				yield(Entry[K, V]{}, err)
				return
			}
			if ok && !yield(Entry[K, V]{Key: h.Key, Value: v, Time: time.UnixMilli(from)}, nil) {
				return
			}
		}
	}
}

// row is what the merge stands on, typed.
func (s *Versioned[K, V]) row(m *merge[history[V]]) (row Entry[K, history[V]], err error) {
	row.Key, err = s.decode(m.key)
	row.Value = m.v
	return row, err
}

// emit gives the versions that the open transaction wrote to the changelog, in
// order of time.
func (s *Versioned[K, V]) emit(_ *before[history[V]], e *entry[history[V]], f func(key, value []byte, time int64) error) error {
	for i := range e.v {
		v := &e.v[i]
		if v.tx != s.o.d.tx {
			continue
		}
		var value []byte
		if v.has {
			var err error
			if value, err = s.value.encode(v.v); err != nil {
				return err
			}
			s.value.buf = value
		}
		if err := f(s.o.lkey, value, v.from); err != nil {
			return err
		}
	}
	return nil
}
