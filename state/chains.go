package state

import (
	"bytes"

	"github.com/semelstream/semel/internal/assert"
)

// chains lead from a user's key to its rows in memory, newest first, in kinds
// whose keys begin with a segment: a range of one key's times is found without
// the engine and without a tree. Only rows that are there are in a chain, and
// not all of them: see overlay.whole.
type chains struct {
	keys   layout
	key    func(idx uint32) []byte // in the store's order; made once
	heads  index                   // the newest row of each key
	sought []byte                  // the user's key that find was asked for last
	hash   uint32                  // its hash
	links  []link                  // by entry
}

// A link is an entry's place in its chain.
type link struct {
	time  int64  // what the row expires by
	newer uint32 // 0 at the head
	older uint32
	hash  uint32 // of the user's key
	on    bool
}

// longWalk is how far from the head a row may be linked. One that is older is
// left out.
const longWalk = 256

// tail is what orders the rows of a key within one time.
func (c *chains) tail(idx uint32) []byte {
	key := c.key(idx)
	return key[len(key)-c.keys.tail():]
}

// head is the newest row of a key, 0 if there is none.
func (c *chains) head(hash uint32, inner []byte) uint32 {
	if c.heads.used == 0 {
		return 0
	}
	x := &c.heads
	for i := x.first(hash); ; i = (i + 1) & x.mask {
		slot := x.slots[i]
		if slot == 0 {
			return 0
		}
		if slot>>32 == uint64(hash) && bytes.Equal(c.keys.inner(c.key(uint32(slot))), inner) {
			return uint32(slot)
		}
	}
}

// link puts a row into its chain; false says that it belongs too far behind
// the head.
func (c *chains) link(idx uint32) bool {
	for int(idx) >= len(c.links) {
		c.links = append(c.links, link{})
	}
	l := &c.links[idx]
	if l.on {
		return true
	}
	key := c.key(idx)
	inner := c.keys.inner(key)
	*l = link{time: c.keys.time(key), hash: c.hashOf(inner), on: true}
	head := c.head(l.hash, inner)
	newer, older := uint32(0), head
	for steps := 0; older != 0 && c.before(idx, older); steps++ {
		if steps == longWalk {
			l.on = false
			return false
		}
		newer, older = older, c.links[older].older
	}
	l.newer, l.older = newer, older
	if older != 0 {
		c.links[older].newer = idx
	}
	switch {
	case newer != 0:
		c.links[newer].older = idx
	case head != 0:
		c.heads.swap(l.hash, head, idx)
	default:
		if c.heads.slots == nil {
			c.heads.grow()
		}
		c.heads.insert(l.hash, idx)
	}
	return true
}

// before: a is older than b, of the same key.
func (c *chains) before(a, b uint32) bool {
	if ta, tb := c.links[a].time, c.links[b].time; ta != tb {
		return ta < tb
	}
	return bytes.Compare(c.tail(a), c.tail(b)) < 0
}

// unlink takes a row out, if it is in. Its key is still there.
func (c *chains) unlink(idx uint32) {
	if int(idx) >= len(c.links) || !c.links[idx].on {
		return
	}
	l := c.links[idx]
	if l.older != 0 {
		c.links[l.older].newer = l.newer
	}
	switch {
	case l.newer != 0:
		c.links[l.newer].older = l.older
	case l.older != 0:
		c.heads.swap(l.hash, idx, l.older)
	default:
		c.heads.remove(l.hash, idx)
	}
	c.links[idx] = link{}
}

// hashOf is the hash of a user's key, most likely of the one that was looked for
// just before.
func (c *chains) hashOf(inner []byte) uint32 {
	if len(inner) > 0 && bytes.Equal(inner, c.sought) {
		return c.hash
	}
	return hashKey(inner)
}

// find adds the rows of a key from from to to, oldest first.
func (c *chains) find(dst []uint32, inner []byte, from, to int64) []uint32 {
	begun := len(dst)
	c.hash, c.sought = hashKey(inner), append(c.sought[:0], inner...)
	idx := c.head(c.hash, inner)
	for ; idx != 0 && c.links[idx].time > to; idx = c.links[idx].older {
		continue
	}
	for ; idx != 0 && c.links[idx].time >= from; idx = c.links[idx].older {
		dst = append(dst, idx)
	}
	for i, j := begun, len(dst)-1; i < j; i, j = i+1, j-1 {
		dst[i], dst[j] = dst[j], dst[i]
	}
	return dst
}

func (c *chains) clear() {
	c.heads, c.links = index{}, nil
}

// swap puts entry to in the place of entry from, which has the same hash.
func (x *index) swap(hash, from, to uint32) {
	want := uint64(hash)<<32 | uint64(from)
	for i := x.first(hash); ; i = (i + 1) & x.mask {
		switch x.slots[i] {
		case want:
			x.slots[i] = uint64(hash)<<32 | uint64(to)
			return
		case 0:
			assert.That(false, "an entry is not in its index")
		}
	}
}
