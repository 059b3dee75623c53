package state

import (
	"iter"

	"github.com/semelstream/semel/internal/assert"
)

// AppendFetch adds the rows that Fetch has to dst. It is for the hot path: rows
// that are in memory are found without the engine and cost no allocation, and
// they carry key as it was given. Values belong to the store until it changes.
// The store must be a KindWindowByKey one.
func (s *Window[K, V]) AppendFetch(dst []WindowRow[K, V], key K, from, to int64) ([]WindowRow[K, V], error) {
	var err error
	if s.kbuf, err = s.encode(s.kbuf[:0], key); err != nil || from > to {
		return dst, err
	}
	o := s.o
	if kind := o.p.rec.keys.kind; kind != KindWindowByKey { // the assertion's arguments cost an allocation
		assert.That(false, "store %s: AppendFetch of a %s store", o.p.name, kind)
	}
	idxs, all, err := o.inMemory(s.kbuf, from, to)
	if err != nil {
		return dst, o.p.failed("reading rows", err)
	}
	for _, idx := range idxs {
		e := o.at(idx)
		dst = append(dst, WindowRow[K, V]{Key: key, Start: o.near.links[idx].time, Value: e.v, Time: e.time})
	}
	if all {
		return dst, nil
	}
	return appendRows(dst, s.Fetch(key, from, to))
}

// appendRows is a function of its own because what a loop over a sequence
// changes is allocated.
func appendRows[R any](dst []R, rows iter.Seq2[R, error]) ([]R, error) {
	for row, err := range rows {
		if err != nil {
			return dst, err
		}
		dst = append(dst, row)
	}
	return dst, nil
}

// AppendOverlapping adds the rows that Overlapping has to dst. It is for the
// hot path, as [Window.AppendFetch] is.
func (s *Session[K, V]) AppendOverlapping(dst []SessionRow[K, V], key K, earliestEnd, latestStart int64) ([]SessionRow[K, V], error) {
	var err error
	if s.kbuf, err = s.encode(s.kbuf[:0], key); err != nil {
		return dst, err
	}
	o := s.o
	idxs, all, err := o.inMemory(s.kbuf, earliestEnd, maxTime)
	if err != nil {
		return dst, o.p.failed("reading rows", err)
	}
	for _, idx := range idxs {
		e := o.at(idx)
		k := o.keyOf(e)
		if start := sessionStart(k); start <= latestStart {
			dst = append(dst, SessionRow[K, V]{Key: key, Start: start, End: o.p.rec.keys.time(k), Value: e.v, Time: e.time})
		}
	}
	if all {
		return dst, nil
	}
	return appendRows(dst, s.Overlapping(key, earliestEnd, latestStart))
}
