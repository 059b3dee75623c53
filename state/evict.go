package state

// stepsPerInsert bounds how many entries CLOCK looks at when one is made.
const stepsPerInsert = 64

// makeRoom evicts clean entries when there are too many, before another is
// made. It looks at a bounded number, so that a cache full of what cannot go
// costs little.
func (d *DB) makeRoom() {
	if d.clean > d.cache {
		d.evict(stepsPerInsert)
	}
}

// trim evicts until there are not too many: entries became clean.
func (d *DB) trim() {
	// Two rounds: the first takes the marks of recent use away.
	left := 0
	for _, p := range d.parts {
		if p.store != nil {
			left += 2 * p.store.entries()
		}
	}
	for ; d.clean > d.cache && left > 0; left -= 1024 {
		d.evict(1024)
	}
}

// evict goes round all entries of all stores, where it stopped the last time.
func (d *DB) evict(steps int) {
	for range 2 * len(d.parts) {
		if s := d.parts[d.hand].store; s != nil {
			if steps = s.evict(steps); steps == 0 {
				return
			}
		}
		d.hand = (d.hand + 1) % len(d.parts)
	}
}

// evict moves the hand over at most steps entries, evicts those that are clean
// and were not used since it came by last, and returns the steps left when it
// passes the end or the cache is small enough.
func (o *overlay[V]) evict(steps int) (left int) {
	for ; steps > 0; steps-- {
		if o.hand >= o.next {
			o.hand = 1
			return steps
		}
		idx := o.hand
		e := o.at(idx)
		o.hand++
		switch {
		case e.flags&live == 0 || !e.clean() || idx == o.last:
		case e.flags&recent != 0:
			e.flags &^= recent
		default:
			o.removeEntry(idx, e, o.hash(o.keyOf(e)))
			if o.d.clean <= o.d.cache {
				return 0
			}
		}
	}
	return 0
}

func (o *overlay[V]) entries() int { return int(o.next) }
