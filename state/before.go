package state

// beforeRow is the row of an encoded key without the open transaction.
func (o *overlay[V]) beforeRow(key []byte) (v V, time int64, ok bool, err error) {
	idx, err := o.find(key)
	if err != nil {
		return v, 0, false, o.p.failed("reading a row", err)
	}
	if was := o.closedRow(o.at(idx)); was.has { // else its time is that of a deletion
		return was.v, was.time, true, nil
	}
	return v, 0, false, nil
}

// Before returns the row of key as it was before the open transaction.
func (s *KV[K, V]) Before(key K) (v V, time int64, ok bool, err error) {
	if s.kbuf, err = s.encode(s.kbuf[:0], key); err != nil {
		return v, 0, false, err
	}
	return s.o.beforeRow(s.kbuf)
}

// Before returns the row of key and start as it was before the open
// transaction, if it has not expired since.
func (s *Window[K, V]) Before(key K, start int64) (v V, time int64, ok bool, err error) {
	if s.kbuf, err = s.place(s.kbuf[:0], key, start, 0); err != nil || start < s.o.gone.now {
		return v, 0, false, err
	}
	return s.o.beforeRow(s.kbuf)
}

// Before returns the row of key and session as it was before the open
// transaction, if it has not expired since.
func (s *Session[K, V]) Before(key K, start, end int64) (v V, time int64, ok bool, err error) {
	if s.kbuf, err = s.place(s.kbuf[:0], key, start, end); err != nil || end < s.o.gone.now {
		return v, 0, false, err
	}
	return s.o.beforeRow(s.kbuf)
}
