package state

import "runtime"

// touchLong reads the keys that are not in their entries.
func (o *overlay[V]) touchLong(hashes []uint32) (sum uint32) {
	for _, h := range hashes {
		slot := o.index.slots[o.index.first(h)]
		if slot == 0 {
			continue
		}
		if e := o.at(uint32(slot)); e.klen > inlineKey {
			sum += uint32(o.keyOf(e)[0])
		}
	}
	return sum
}

// Touch brings what the next Finds of these encoded keys and one start need
// closer to the processor. It changes nothing, and does nothing for stores in
// order of key.
func (s *Window[K, V]) Touch(start int64, keys [][]byte) {
	if s.o.p.rec.keys.kind != KindWindow {
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

// touch reads the index slot and the entry of each key, all slots first, so
// that their cache misses overlap.
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
			if slot := o.index.slots[o.index.first(h)]; slot != 0 {
				sum += uint32(o.at(uint32(slot)).flags)
			}
		}
		if len(keys[0]) > inlineKey {
			sum += o.touchLong(hashes[:n])
		}
		runtime.KeepAlive(sum)
		keys = keys[n:]
	}
}
