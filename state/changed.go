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
	o := s.o
	for i := 0; i < len(o.tx); i++ { //nolint:intrange // f may make it longer
		t := &o.tx[i]
		e := o.at(t.idx)
		if o.isNothing(t, e) {
			continue
		}
		key, err := s.decodeKey(o.keyOf(e))
		if err != nil {
			return err
		}
		c := Changed[K, V]{Key: key, New: e.v, Time: e.time, OK: e.flags&present != 0}
		if t.has { // else its time is that of a deletion
			c.Old, c.OldTime, c.OldOK = t.v, t.time, true
		}
		if err := f(c); err != nil {
			return err
		}
	}
	return nil
}
