package state

// A View reads the committed rows of a KV from any goroutine: those of the
// changelog so far, without the open and the closing transaction, stored or
// not. It takes the DB's lock for each read, and so waits for the batch of
// records at work.
//
// A walk over rows reads some hundred at a time and lets the lock go in
// between. Each row was committed when it was read; the walk as a whole is no
// snapshot.
type View[K, V any] struct{ s *KV[K, V] }

// View returns the view of s.
func (s *KV[K, V]) View() *View[K, V] { return &View[K, V]{s} }

// Get returns the committed row of key.
func (w *View[K, V]) Get(key K) (v V, time int64, ok bool, err error) {
	enc, err := w.s.encode(nil, key)
	if err != nil {
		return v, 0, false, err
	}
	return w.s.o.viewRow(enc)
}

// committedAt is the row of a key without the open and the closing transaction.
func (o *overlay[V]) committedAt(key []byte) (r before[V], err error) {
	if idx := o.lookup(o.hash(key), key); idx != 0 {
		return o.committedRow(o.at(idx)), nil
	}
	if r.has, err = o.read(key); err != nil || !r.has {
		return r, err
	}
	r.v, r.time = o.loaded, o.loadedT
	var zero V
	o.loaded = zero
	return r, nil
}

// Len is how many committed rows there are; see [KV.Len].
func (w *View[K, V]) Len() (int64, error) {
	o := w.s.o
	o.d.mu.Lock()
	defer o.d.mu.Unlock()
	n, err := o.count()
	if err != nil {
		return 0, w.s.failed("counting rows", err)
	}
	return n + o.uncommitted(0) + o.uncommitted(1), nil
}

// uncommitted is how many rows fewer there are now than without the
// transaction of a side, but of its rows those that the closing transaction
// had changed before are the closing one's to count.
func (o *overlay[V]) uncommitted(side uint8) (n int64) {
	for i := range o.logs[side] {
		e := o.at(o.logs[side][i].idx)
		closing := (o.d.side + 1) & 1
		if side != closing && e.tx[closing] != 0 {
			continue
		}
		had, has := o.logs[side][i].has, e.flags&present != 0
		switch {
		case had && !has:
			n++
		case has && !had:
			n--
		}
	}
	return n
}

// Range are the committed rows from from to to, both included.
func (w *View[K, V]) Range(from, to K) Rows[K, V] {
	s, err := w.s.span(&from, &to)
	return w.rows(s, err)
}

// From are the committed rows from key on.
func (w *View[K, V]) From(key K) Rows[K, V] {
	s, err := w.s.span(&key, nil)
	return w.rows(s, err)
}

// To are the committed rows up to key, which is included.
func (w *View[K, V]) To(key K) Rows[K, V] {
	s, err := w.s.span(nil, &key)
	return w.rows(s, err)
}

// All are all committed rows.
func (w *View[K, V]) All() Rows[K, V] { return w.rows(span{}, nil) }

// Prefix are the committed rows whose encoded keys begin so.
func (w *View[K, V]) Prefix(encoded []byte) Rows[K, V] { return w.rows(prefixSpan(encoded), nil) }

func (w *View[K, V]) rows(sp span, err error) Rows[K, V] {
	return viewRows(w.s.o, route{span: sp}, err, w.s.row)
}
