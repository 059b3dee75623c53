package state

// An expiry is the bound before which the rows of a store are gone. It belongs
// to the transaction, as rows do, but no changelog has it: a row expires there
// by the topic's retention, or stays until somebody sets the bound again.
//
// What has expired is not seen from the moment the bound is set. On the engine
// it goes with the next Write, and then only as far as the bound is committed,
// so that nothing can bring it back.
type expiry struct {
	scalar
	flying int64 // what the Write under way deletes up to
	stored int64 // the engine has nothing before it
}

// expire sets the bound, which never falls.
func (o *overlay[V]) expire(before int64) {
	if before > o.gone.now {
		o.gone.set(before, o.d.gen)
	}
}

// isGone says that the row of key has expired, or had at the last commit.
func (o *overlay[V]) isGone(key []byte, committed bool) bool {
	keys := &o.p.rec.keys
	if !keys.kind.expires() {
		return false
	}
	bound := o.gone.now
	if committed {
		bound = o.gone.committed
	}
	return keys.time(key) < bound
}

// sweep is up to where the engine's rows can be deleted, as ranges of keys:
// whole segments.
func (o *overlay[V]) sweep() int64 {
	seg := o.p.rec.keys.segment
	return o.gone.committed / seg * seg
}

// isSwept says that the engine is to have no row of e: what it had goes with
// all others of its time.
func (o *overlay[V]) isSwept(e *entry[V]) bool {
	keys := &o.p.rec.keys
	return keys.kind.expires() && keys.time(o.keyOf(e)) < o.sweep()
}

// persistExpiry puts the deletion of what has expired into b, behind the rows.
func (o *overlay[V]) persistExpiry(b *Batch) {
	to := o.sweep()
	o.gone.flying = to
	if to <= o.gone.stored {
		return
	}
	keys, id := &o.p.rec.keys, o.p.rec.id
	first, bound := o.gone.stored, to
	if keys.kind.segmented() {
		first, bound = first/keys.segment, bound/keys.segment
	}
	deleteBefore(b, id, first, bound)
	if o.p.rec.timeID != 0 {
		deleteBefore(b, o.p.rec.timeID, o.gone.stored, to)
	}
}

// deleteBefore deletes the rows of id whose keys begin with a number from
// first, included, to bound, excluded.
func deleteBefore(b *Batch, id uint16, first, bound int64) {
	b.DeleteRange(addTime(rowKey(nil, id, nil), first), addTime(rowKey(nil, id, nil), bound))
}

func (o *overlay[V]) expiryPersisted(ok bool) {
	if ok {
		o.gone.stored = max(o.gone.stored, o.gone.flying)
	}
	o.gone.flying = 0 // a Write may leave the store out
}
