package state

// A SessionView reads the committed rows of a [Session] from any goroutine, as
// [View] does those of a KV. Rows that have expired are not seen.
type SessionView[K, V any] struct {
	SessionScan[K, V] // of committed rows
}

// View returns the view of s.
func (s *Session[K, V]) View() *SessionView[K, V] {
	return &SessionView[K, V]{SessionScan[K, V]{s: s, committed: true}}
}

// Get returns the committed row of key and session.
func (w *SessionView[K, V]) Get(key K, start, end int64) (v V, time int64, ok bool, err error) {
	k, err := w.s.place(nil, key, start, end)
	if err != nil {
		return v, 0, false, err
	}
	return w.s.o.viewRow(k)
}
