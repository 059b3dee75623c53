package state

// A WindowView reads the committed rows of a [Window] from any goroutine, as
// [View] does those of a KV. Rows that have expired are not seen.
type WindowView[K, V any] struct {
	WindowScan[K, V] // of committed rows
}

// View returns the view of s.
func (s *Window[K, V]) View() *WindowView[K, V] {
	return &WindowView[K, V]{WindowScan[K, V]{s: s, committed: true}}
}

// Get returns the committed row of key and start.
func (w *WindowView[K, V]) Get(key K, start int64) (v V, time int64, ok bool, err error) {
	k, err := w.s.place(nil, key, start, 0)
	if err != nil {
		return v, 0, false, err
	}
	return w.s.o.viewRow(k)
}

// viewRow is the committed row of an encoded key, from any goroutine.
func (o *overlay[V]) viewRow(key []byte) (v V, time int64, ok bool, err error) {
	o.d.mu.Lock()
	defer o.d.mu.Unlock()
	if o.d.closed.Load() {
		return v, 0, false, ErrClosed
	}
	if o.isGone(key, true) {
		return v, 0, false, nil
	}
	r, err := o.committedAt(key)
	if err != nil {
		return v, 0, false, o.p.failed("reading a row", err)
	}
	if !r.has { // its time is that of the deletion
		return v, 0, false, nil
	}
	return r.v, r.time, true, nil
}
