package state

// Of the entries that have expired some are looked at each time that a group of
// new ones was made: more than were made, so that they become fewer, and not
// all, so that the end of a long window stops nobody.
const (
	forgetGroup  = 16 // that are made
	forgetGroups = 3  // that are looked at then
)

// aging are the entries of a store whose rows expire, in the order in which
// they were made. That is about the order in which they expire, so one look at
// the first says whether any has. An entry that was evicted before its turn
// stands here still, and its number may belong to another one by now, which
// then stands here twice: whoever looks asks the entry itself.
type aging struct {
	idxs []uint32
	from int // those before are done
	made int // since some were looked at
}

// due says, each time that a group of entries was made, that some are to be
// looked at.
func (a *aging) due() bool {
	if a.made++; a.made < forgetGroup {
		return false
	}
	a.made = 0
	return true
}

func (a *aging) push(idx uint32) {
	if a.from > len(a.idxs)/2 { // room at the front: no more than is left moves
		a.idxs = a.idxs[:copy(a.idxs, a.idxs[a.from:])]
		a.from = 0
	}
	a.idxs = append(a.idxs, idx)
}

// forget removes entries that have expired for good, without regard for how
// full the cache is: nobody finds them any more.
func (o *overlay[V]) forget() {
	for range forgetGroups {
		a := &o.aging
		next := a.idxs[a.from:min(a.from+forgetGroup, len(a.idxs))]
		if len(next) == 0 || !o.mayForget(next[0]) {
			return
		}
		hashes := o.touchAging(next)
		for i := range next {
			if !o.forgetFirst(hashes[i]) {
				return
			}
		}
	}
}

// forgetFirst is done with the first entry, unless it has not expired. One that
// a Write still needs comes again later. The hash is that of its key.
func (o *overlay[V]) forgetFirst(hash uint32) bool {
	idx := o.aging.idxs[o.aging.from]
	e := o.at(idx)
	switch {
	case e.flags&live == 0:
	case !o.isExpired(e):
		return false
	case !o.forgettable(idx, e):
		o.aging.push(idx)
	default:
		o.unstow(e)
		o.removeEntry(idx, e, hash)
	}
	o.aging.from++
	return true
}

// mayForget: it is worth a look, since the first entry is gone or has expired.
func (o *overlay[V]) mayForget(first uint32) bool {
	e := o.at(first)
	return e.flags&live == 0 || o.isExpired(e)
}

// forgettable says that nothing is lost with an entry that has expired. What
// the engine has of a row that changed since must go with the next Write. No
// transaction has changed the entry that is not committed: the bound was there
// before it.
func (o *overlay[V]) forgettable(idx uint32, e *entry[V]) bool {
	return idx != o.last && e.flags&flying == 0 && e.flags&(pending|onDisk) != pending|onDisk
}

// isExpired says that the row of an entry has expired for good: the bound
// before which it lies is committed.
func (o *overlay[V]) isExpired(e *entry[V]) bool {
	keys := &o.p.rec.keys
	return keys.kind.expires() && keys.time(o.keyOf(e)) < o.gone.committed
}
