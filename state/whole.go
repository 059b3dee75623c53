package state

// wholeFrom is the time from which on the overlay has every row there is, in
// its index and, where there are chains, in them: what is not in memory is not
// on the engine either. Rows of new times are in memory before they are
// anywhere else; the time rises when one is evicted.
//
// After an opening, a restore or a rewind it is behind all that the engine has.
func (o *overlay[V]) wholeFrom() (int64, error) {
	if o.wholeKnown {
		return o.whole, nil
	}
	if o.d.closed.Load() {
		return 0, ErrClosed
	}
	from, to := storeRange(o.p.rec.id)
	it := o.d.e.Scan(from, to, true)
	if it.Next() {
		o.whole = max(o.whole, o.p.rec.keys.behind(it.Key()[idSize:]))
	}
	err := it.Close()
	o.wholeKnown = err == nil
	return o.whole, err
}

// behind is a time behind those of all rows up to key, in the store's order.
func (l layout) behind(key []byte) int64 {
	n := getTime(key)
	if n >= maxTime/l.segment {
		return maxTime
	}
	if l.kind.byStart() {
		return n + 1
	}
	return (n + 1) * l.segment
}

// unwhole says that a row of that time left the memory, or its chain.
func (o *overlay[V]) unwhole(time int64) {
	if time == maxTime {
		time-- // a row of the last time of all is never known to be missing
	}
	o.whole = max(o.whole, time+1)
}

// lacks says that a row that is not in memory is not on the engine either.
func (o *overlay[V]) lacks(key []byte) (bool, error) {
	keys := &o.p.rec.keys
	if !keys.kind.expires() {
		return false, nil
	}
	from, err := o.wholeFrom()
	at := keys.time(key)
	return err == nil && at >= from && at < maxTime, err
}

// came puts an entry that has a value now into its chain.
func (o *overlay[V]) came(idx uint32) {
	if o.p.rec.keys.kind.segmented() && !o.near.link(idx) {
		o.unwhole(o.p.rec.keys.time(o.near.key(idx)))
	}
}

// went takes an entry that has none any more out of it.
func (o *overlay[V]) went(idx uint32) {
	if o.p.rec.keys.kind.segmented() {
		o.near.unlink(idx)
	}
}

// evicts is for a clean entry that is about to go.
func (o *overlay[V]) evicts(idx uint32, e *entry[V]) {
	keys := &o.p.rec.keys
	if e.flags&present == 0 || !keys.kind.expires() {
		return
	}
	o.went(idx)
	o.unwhole(keys.time(o.keyOf(e)))
}

// inMemory finds the entries of a user's key with times from from to to, oldest
// first, and says whether those are all.
func (o *overlay[V]) inMemory(inner []byte, from, to int64) (idxs []uint32, all bool, err error) {
	whole, err := o.wholeFrom()
	if from = max(from, o.gone.now); err != nil || from < whole || to == maxTime && whole == maxTime {
		return nil, false, err
	}
	o.found = o.near.find(o.found[:0], inner, from, to)
	return o.found, true, nil
}
