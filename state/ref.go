package state

// A Ref is a row's place, found once and used for several things: it ends with
// the next call on the same store that takes a key. The zero Ref is that of a
// row that has expired.
type Ref struct{ idx uint32 }

// findRow returns the row of an encoded key and its place.
func (o *overlay[V]) findRow(key []byte) (ref Ref, v V, time int64, ok bool, err error) {
	idx, err := o.find(key)
	if err != nil {
		return ref, v, 0, false, o.p.failed("reading a row", err)
	}
	e := o.at(idx)
	if e.flags&present == 0 {
		return Ref{idx}, v, 0, false, nil
	}
	return Ref{idx}, e.v, e.time, true, nil
}

// getRow is findRow for a row that nothing is to be done with: one that is known
// to be missing leaves no trace in memory.
func (o *overlay[V]) getRow(key []byte) (v V, time int64, ok bool, err error) {
	idx := o.lookup(o.hash(key), key)
	if idx == 0 {
		lacks, err := o.lacks(key)
		if err != nil {
			return v, 0, false, o.p.failed("reading a row", err)
		}
		if lacks {
			return v, 0, false, nil
		}
		_, v, time, ok, err = o.findRow(key)
		return v, time, ok, err
	}
	e := o.at(idx)
	e.flags |= recent
	if e.flags&present == 0 {
		return v, 0, false, nil
	}
	return e.v, e.time, true, nil
}

// setRef puts v where findRow was.
func (o *overlay[V]) setRef(ref Ref, v V, time int64) {
	if ref == (Ref{}) {
		return
	}
	if o.own != nil {
		v = o.own(v)
	}
	o.set(ref.idx, v, time, true)
}

// removeRef deletes where findRow was.
func (o *overlay[V]) removeRef(ref Ref, time int64) {
	if ref == (Ref{}) || o.at(ref.idx).flags&present == 0 {
		return
	}
	var zero V
	o.set(ref.idx, zero, time, false)
}
