package state

import "math/bits"

// An arena holds keys too long for an overlay's entry. It hands out units of
// 16 bytes from chunks of 1 MiB, in size classes with a free list each, so that
// its references need no pointers and the garbage collector has nothing to
// look at. The zero arena is ready.
type arena struct {
	chunks [][]byte
	used   uint32                 // units of the last chunk
	free   [arenaClasses][]uint32 // references, by class
}

const (
	arenaUnit    = 16
	arenaUnits   = 1 << 16 // of a chunk
	arenaExact   = 16      // classes of 1, 2, ... 16 units; beyond them powers of two
	arenaClasses = arenaExact + 12
)

// arenaClass is the size class of n bytes and the units that it takes; a class
// of -1 is a chunk of its own.
func arenaClass(n int) (class int, units uint32) {
	u := (n + arenaUnit - 1) / arenaUnit
	if u <= arenaExact {
		return u - 1, uint32(u)
	}
	b := bits.Len(uint(u - 1)) // 2^b >= u; b is 5 at least
	if class = arenaExact + b - 5; class >= arenaClasses {
		return -1, uint32(u)
	}
	return class, 1 << b
}

// put copies key and returns its reference.
func (a *arena) put(key []byte) uint32 {
	ref := a.alloc(len(key))
	copy(a.get(ref, len(key)), key)
	return ref
}

func (a *arena) alloc(n int) uint32 {
	class, units := arenaClass(n)
	if class < 0 {
		return a.allocChunk(units)
	}
	if f := a.free[class]; len(f) > 0 {
		a.free[class] = f[:len(f)-1]
		return f[len(f)-1]
	}
	if len(a.chunks) == 0 || a.used+units > arenaUnits {
		a.chunks = append(a.chunks, make([]byte, arenaUnits*arenaUnit))
		a.used = 0
	}
	ref := uint32(len(a.chunks)-1)<<16 | a.used
	a.used += units
	return ref
}

// allocChunk makes a chunk for one key and nothing else.
func (a *arena) allocChunk(units uint32) uint32 {
	for i, c := range a.chunks {
		if c == nil { // freed before
			a.chunks[i] = make([]byte, units*arenaUnit)
			return uint32(i) << 16
		}
	}
	a.chunks = append(a.chunks, make([]byte, units*arenaUnit))
	a.used = arenaUnits // nothing else fits in it
	return uint32(len(a.chunks)-1) << 16
}

// get is the key of n bytes at ref.
func (a *arena) get(ref uint32, n int) []byte {
	at := int(ref&(arenaUnits-1)) * arenaUnit
	return a.chunks[ref>>16][at : at+n : at+n]
}

// drop frees the key of n bytes at ref.
func (a *arena) drop(ref uint32, n int) {
	class, _ := arenaClass(n)
	if class < 0 {
		a.chunks[ref>>16] = nil
		return
	}
	a.free[class] = append(a.free[class], ref)
}
