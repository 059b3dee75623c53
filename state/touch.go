package state

import "runtime"

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
		runtime.KeepAlive(sum)
		keys = keys[n:]
	}
}
