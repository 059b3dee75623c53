package state

// fewRows are written before the size of the others is guessed.
const fewRows = 256

// persist puts the pending rows into b, as they were committed last. Those that
// the engine needs not hear of are pending no more.
func (o *overlay[V]) persist(b *Batch) (first error) {
	for _, idx := range o.pend {
		e := o.at(idx)
		if e.flags&pending == 0 {
			continue // it was forgotten, and if it stands here twice it had its turn
		}
		if !o.concernsDisk(e) {
			o.unstow(e)
			continue
		}
		e.flags = e.flags&^pending | flying
		o.flight = append(o.flight, idx)
	}
	o.pend = o.pend[:0]
	from := b.Len()
	for i, idx := range o.flight {
		if i == fewRows { // by now it is known how large they are
			b.grow(len(o.flight)-i, b.Bytes()/max(b.Len(), 1)+1)
		}
		if first = o.persistRow(b, o.at(idx)); first != nil {
			break
		}
	}
	b.unordered(from)
	if o.p.rec.timeID != 0 {
		from = b.Len()
		o.persistTimes(b)
		b.unordered(from)
	}
	o.persistExpiry(b)
	return first
}

// concernsDisk says that the engine's row of e's key must change: there is one,
// or there is to be one.
func (o *overlay[V]) concernsDisk(e *entry[V]) bool {
	if e.flags&onDisk != 0 {
		return true
	}
	return !o.isExpired(e) && o.committedRow(e).has
}

// forDisk is e's row as the engine is to have it.
func (o *overlay[V]) forDisk(e *entry[V]) before[V] {
	if o.isExpired(e) {
		return before[V]{}
	}
	return o.committedRow(e)
}

// unstow makes e pending no more.
func (o *overlay[V]) unstow(e *entry[V]) {
	if e.flags&pending == 0 {
		return
	}
	e.flags &^= pending
	o.d.pending -= int64(e.size)
	if e.clean() {
		o.unpin(e)
	}
}

func (o *overlay[V]) persistRow(b *Batch, e *entry[V]) error {
	if o.isSwept(e) {
		return nil
	}
	r := o.forDisk(e)
	o.ekey = rowKey(o.ekey[:0], o.p.rec.id, o.keyOf(e))
	if !r.has {
		b.Delete(o.ekey)
		return nil
	}
	e.flags |= onDisk // even if the Write fails: a delete too many costs little
	var time [timeSize]byte
	row, err := o.encode(rowValue(time[:0], nil, r.time), r.v, true)
	if err != nil {
		return err
	}
	b.Set(o.ekey, row)
	return nil
}

// persisted takes in how the Write under way went.
func (o *overlay[V]) persisted(ok bool) {
	for _, idx := range o.flight {
		e := o.at(idx)
		e.flags &^= flying
		switch {
		case e.flags&pending != 0: // committed anew in the meantime
		case !ok:
			e.flags |= pending
			o.pend = append(o.pend, idx)
		default:
			o.d.pending -= int64(e.size)
			if e.clean() {
				o.unpin(e)
			}
		}
	}
	o.flight = o.flight[:0]
	o.byKey.persisted()
	o.byTime.persisted()
	o.expiryPersisted(ok)
}

// persistTimes puts the pending rows into their order by time.
func (o *overlay[V]) persistTimes(b *Batch) {
	for _, idx := range o.flight {
		e := o.at(idx)
		if o.isSwept(e) {
			continue
		}
		o.tkey = o.p.rec.keys.toTime(o.tkey[:0], o.keyOf(e))
		o.ekey = rowKey(o.ekey[:0], o.p.rec.timeID, o.tkey)
		if o.forDisk(e).has {
			b.Set(o.ekey, nil)
		} else {
			b.Delete(o.ekey)
		}
	}
}
