package state

import "runtime"

// touchLong reads the keys that are not in their entries.
func (o *overlay[V]) touchLong(hashes []uint32) (sum uint32) {
	for _, h := range hashes {
		idx := o.index.withHash(h)
		if idx == 0 {
			continue
		}
		if e := o.at(idx); e.klen > inlineKey {
			sum += uint32(o.keyOf(e)[0])
		}
	}
	return sum
}

// Touch brings what the next Finds of these encoded keys and one start need
// closer to the processor, or in a KindWindowByKey store what the next
// AppendFetch and Add of the keys need, whatever the start, as in a KindWindowOnce
// store. It changes nothing.
func (s *Window[K, V]) Touch(start int64, keys [][]byte) {
	switch s.o.p.rec.keys.kind {
	case KindWindowByKey:
		s.o.touchChains(keys)
		return
	case KindWindowOnce:
		s.o.touch(keys)
		return
	}
	s.places, s.touched = s.places[:0], s.touched[:0]
	for _, k := range keys {
		at := len(s.places)
		s.places = append(addTime(s.places, start), k...)
		s.touched = append(s.touched, s.places[at:])
	}
	s.o.touch(s.touched)
}

// Touch brings what the next AppendOverlapping of these encoded keys needs closer
// to the processor. It changes nothing.
func (s *Session[K, V]) Touch(keys [][]byte) { s.o.touchChains(keys) }

// touchGroup is how many entries are read ahead at a time.
const touchGroup = 32

// touchChanged reads the entries of a log from the i-th on, once for each group,
// before somebody goes through them: since entries are used again they lie
// anywhere.
func (o *overlay[V]) touchChanged(log []before[V], i int) {
	if i%touchGroup != 0 {
		return
	}
	log = log[i:min(i+touchGroup, len(log))]
	sum := uint32(0)
	for j := range log {
		sum += uint32(o.at(log[j].idx).klen)
	}
	for j := range log {
		if e := o.at(log[j].idx); e.klen > inlineKey {
			sum += uint32(o.keyOf(e)[0])
		}
	}
	runtime.KeepAlive(sum)
}

// touchAging does it for entries, at most a group, that may be forgotten next, and
// for what removing them needs. It returns the hashes of their keys, of entries
// that are gone anything.
func (o *overlay[V]) touchAging(idxs []uint32) (hashes [forgetGroup]uint32) {
	sum := uint32(0)
	for _, idx := range idxs {
		sum += uint32(o.at(idx).klen)
		if int(idx) < len(o.near.links) {
			sum += o.near.links[idx].hash
		}
	}
	for i, idx := range idxs {
		hashes[i] = o.hash(o.keyOf(o.at(idx)))
	}
	for _, h := range hashes[:len(idxs)] {
		sum += uint32(o.index.slots[o.index.first(h)])
	}
	runtime.KeepAlive(sum)
	return hashes
}

// touchChains reads the newest row of each key, step by step as touch does.
func (o *overlay[V]) touchChains(keys [][]byte) {
	const group = 64
	var idxs [group]uint32
	c := &o.near
	if c.heads.used == 0 {
		return
	}
	for len(keys) > 0 {
		n := min(group, len(keys))
		for i, k := range keys[:n] {
			idxs[i] = hashKey(k)
		}
		sum := uint32(0)
		for _, h := range idxs[:n] {
			sum += uint32(c.heads.slots[c.heads.first(h)])
		}
		for i, h := range idxs[:n] {
			idxs[i] = c.heads.withHash(h)
		}
		for _, idx := range idxs[:n] {
			if idx != 0 {
				sum += uint32(o.at(idx).klen) + c.links[idx].hash
			}
		}
		for _, idx := range idxs[:n] {
			if idx == 0 {
				continue
			}
			if e := o.at(idx); e.klen > inlineKey {
				sum += uint32(o.keyOf(e)[0])
			}
		}
		runtime.KeepAlive(sum)
		keys = keys[n:]
	}
}

// touch reads the index slot and the entry of each key, or of what of it is
// hashed, all slots first, so that their cache misses overlap.
func (o *overlay[V]) touch(keys [][]byte) {
	const group = 64
	var hashes [group]uint32
	for len(keys) > 0 {
		n := min(group, len(keys))
		for i, k := range keys[:n] {
			hashes[i] = hashKey(k)
		}
		sum := uint32(0)
		for _, h := range hashes[:n] {
			sum += uint32(o.index.slots[o.index.first(h)])
		}
		for _, h := range hashes[:n] {
			if idx := o.index.withHash(h); idx != 0 {
				sum += uint32(o.at(idx).flags)
			}
		}
		if len(keys[0]) > inlineKey {
			sum += o.touchLong(hashes[:n])
		}
		runtime.KeepAlive(sum)
		keys = keys[n:]
	}
}
