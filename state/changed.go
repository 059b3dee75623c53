package state

// Changed is a row that the open transaction changed: as it was before the
// transaction, and as it is.
type Changed[K, V any] struct {
	Key     K
	Old     V
	OldTime int64
	OldOK   bool // there was a row
	New     V
	Time    int64 // of the change, also if it deleted the row
	OK      bool  // there is a row
}

// Changed calls f with the rows that the open transaction changed, in order of
// first change; rows that came and went again are left out. f may change rows:
// those that it changes first in this transaction come later in the same call.
func (s *KV[K, V]) Changed(f func(c Changed[K, V]) error) error {
	return s.o.eachChanged(func(key []byte, t before[V], e *entry[V]) error {
		k, err := s.decode(key)
		if err != nil {
			return err
		}
		return f(Changed[K, V]{
			Key: k, New: e.v, Time: e.time, OK: e.flags&present != 0,
			Old: t.v, OldTime: t.time, OldOK: t.has,
		})
	})
}

// eachChanged calls f with the entries that the open transaction changed and as
// they were; what was not there has no value and no time.
func (o *overlay[V]) eachChanged(f func(key []byte, t before[V], e *entry[V]) error) error {
	return o.eachRow(func(t *before[V], e *entry[V]) error {
		was := *t
		if !was.has { // its time is that of a deletion
			was = before[V]{}
		}
		return f(o.keyOf(e), was, e)
	})
}
