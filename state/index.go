package state

// An index finds the entries of an overlay by hash: open addressing with
// linear probing. A slot is the hash in the high half and the number of the
// entry, never 0, in the low one; an empty slot is 0. The hash alone places a
// slot, so growing and removing never touch the entries.
type index struct {
	slots []uint64
	mask  uint32
	used  int
}

const indexMin = 64 // slots

// first is where to begin to look for hash.
func (x *index) first(hash uint32) uint32 { return hash & x.mask }

// insert adds entry idx, which must not be there.
func (x *index) insert(hash, idx uint32) {
	if (x.used+1)*8 > len(x.slots)*5 {
		x.grow()
	}
	x.used++
	x.place(uint64(hash)<<32 | uint64(idx))
}

func (x *index) place(slot uint64) {
	i := uint32(slot>>32) & x.mask
	for x.slots[i] != 0 {
		i = (i + 1) & x.mask
	}
	x.slots[i] = slot
}

// withHash is an entry with that hash, most likely the one that is looked for, 0
// if there is none.
func (x *index) withHash(hash uint32) uint32 {
	for i := x.first(hash); ; i = (i + 1) & x.mask {
		if slot := x.slots[i]; slot == 0 || slot>>32 == uint64(hash) {
			return uint32(slot)
		}
	}
}

func (x *index) grow() {
	old := x.slots
	x.slots = make([]uint64, max(indexMin, 2*len(old)))
	x.mask = uint32(len(x.slots) - 1)
	for _, slot := range old {
		if slot != 0 {
			x.place(slot)
		}
	}
}

// remove takes entry idx out and closes the gap, so that no search ends early.
func (x *index) remove(hash, idx uint32) {
	want := uint64(hash)<<32 | uint64(idx)
	i := hash & x.mask
	for x.slots[i] != want {
		i = (i + 1) & x.mask
	}
	x.used--
	for j := (i + 1) & x.mask; x.slots[j] != 0; j = (j + 1) & x.mask {
		home := uint32(x.slots[j]>>32) & x.mask
		// A slot may move back to i unless its home lies behind i.
		if (j-home)&x.mask >= (j-i)&x.mask {
			x.slots[i] = x.slots[j]
			i = j
		}
	}
	x.slots[i] = 0
}
