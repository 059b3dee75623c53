package state

import "iter"

// A VersionedView reads the committed versions of a [Versioned] from any
// goroutine, as [View] does the rows of a KV.
type VersionedView[K, V any] struct{ s *Versioned[K, V] }

// View returns the view of s.
func (s *Versioned[K, V]) View() *VersionedView[K, V] { return &VersionedView[K, V]{s} }

// Get returns the newest committed version of key, unless that is a deletion.
func (w *VersionedView[K, V]) Get(key K) (v V, from int64, ok bool, err error) {
	h, _, err := w.history(key)
	return h.newest(err)
}

// GetAsOf returns the committed version of key that is valid at a time; see
// [Versioned.GetAsOf].
func (w *VersionedView[K, V]) GetAsOf(key K, at int64) (v V, from, to int64, ok bool, err error) {
	h, bound, err := w.history(key)
	return h.get(at, bound, err)
}

// History are the committed versions of key that were valid at some time
// between from and to; see [Versioned.History].
func (w *VersionedView[K, V]) History(key K, from, to int64) iter.Seq2[VersionRow[V], error] {
	return func(yield func(VersionRow[V], error) bool) {
		h, bound, err := w.history(key)
		h.each(from, to, bound, err, yield)
	}
}

// All are the newest committed versions of all keys; see [Versioned.All].
func (w *VersionedView[K, V]) All() Rows[K, V] { return w.rows(span{}, nil) }

// Range is All from one key to another, both included.
func (w *VersionedView[K, V]) Range(from, to K) Rows[K, V] {
	sp, err := w.s.span(&from, &to)
	return w.rows(sp, err)
}

func (w *VersionedView[K, V]) rows(sp span, err error) Rows[K, V] {
	return newestRows(viewRows(w.s.o, route{span: sp}, err, w.s.row))
}

// history is that of key, which nobody changes any more, and how far back it
// counts.
func (w *VersionedView[K, V]) history(key K) (h history[V], bound int64, err error) {
	enc, err := w.s.encode(nil, key)
	if err != nil {
		return nil, 0, err
	}
	h, _, _, err = w.s.o.viewRow(enc)
	d := w.s.o.d
	d.mu.Lock()
	defer d.mu.Unlock()
	return h, w.s.bound(w.s.o.clock.committed), err
}
