package state

import (
	"bytes"
	"encoding/binary"
	"hash/maphash"
	"unsafe"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/internal/assert"
)

// An overlay is a store's write-back cache in front of the engine: values stay
// decoded, and a key that is known to be absent has an entry too. Entries have
// numbers that never change while they live, so logs, lists and trees point to
// them by number, and chunks of them never move.
type overlay[V any] struct {
	d     *DB
	p     *Part
	value codec.Codec[V]
	own   func(V) V   // nil if values stand alone
	added func(V) V   // own for what Add puts
	sizer func(V) int // memory outside of V itself, nil if none

	index  index
	chunks []*[chunkSize]entry[V]
	next   uint32 // the first number never used
	free   uint32 // head of the list of entries to use again
	keys   arena

	logs   [2][]before[V] // what the open and the closing transaction changed, as it was before each
	undos  []before[V]    // what was changed since the mark, as it was
	txMark int            // length of the open log at the mark
	gen    uint64         // the mark that undos and txMark belong to
	pend   []uint32       // pending entries
	flight []uint32       // entries of the Write under way

	near       chains // of kinds with segments
	whole      int64  // see wholeFrom
	wholeKnown bool
	found      []uint32 // scratch of inMemory

	rows   rowCount
	byKey  order
	byTime order  // of stores that have one
	gone   expiry // of kinds whose rows expire
	aging  aging  // their entries
	clock  scalar // the time of a versioned store
	emit   func(t *before[V], e *entry[V], f func(key, value []byte, time int64) error) error

	hand    uint32 // the entry that CLOCK looks at next
	last    uint32 // the entry that was found last: not to be evicted
	ekey    []byte // scratch: a key in the engine
	lkey    []byte // scratch: a key in the changelog
	tkey    []byte // scratch: a key in the order by time
	eval    []byte // scratch: an encoded value
	bundle  bundle // scratch of bundles
	loaded  V      // what load read
	loadedT int64
	load    func(row []byte) error // made once, so that a miss allocates nothing here
}

const (
	chunkBits = 9
	chunkSize = 1 << chunkBits
	inlineKey = 26 // a window and a key of 16 bytes
	longKey   = 255
)

// An entry is one key. With values of 8 bytes it is a cache line.
type entry[V any] struct {
	v     V
	time  int64
	mark  uint64    // the mark since which undos has this entry
	tx    [2]uint32 // 1 + its place in each log, 0 if that transaction left it alone
	size  uint32    // bytes, about
	klen  uint8     // longKey if the key is in the arena
	flags flags
	key   [inlineKey]byte // or a long key's place, or of a free entry the next one
}

// A longer key's place in the arena and its length are where a shorter one is.
func (e *entry[V]) koff() uint32      { return binary.NativeEndian.Uint32(e.key[:]) }
func (e *entry[V]) longLen() int      { return int(binary.NativeEndian.Uint32(e.key[4:])) }
func (e *entry[V]) setKoff(at uint32) { binary.NativeEndian.PutUint32(e.key[:], at) }

type flags uint8

const (
	present flags = 1 << iota // there is a value
	recent                    // for CLOCK
	pending                   // committed and in pend
	flying                    // in flight
	live                      // not in the free list
	onDisk                    // the engine may have a row of the key, as it is or as it was
)

// stowed entries hold a committed value that the engine has not got.
const stowed = pending | flying

// clean entries are as on the engine.
func (e *entry[V]) clean() bool { return e.tx == [2]uint32{} && e.flags&stowed == 0 }

// before is an entry as it was.
type before[V any] struct {
	v     V
	time  int64
	idx   uint32
	has   bool // there was a value
	first bool // of undos: the transaction had not changed it before
}

func newOverlay[V any](p *Part, value codec.Codec[V]) *overlay[V] {
	o := &overlay[V]{d: p.d, p: p, value: value, sizer: sizerOf[V]()}
	if c, ok := value.(codec.Owner[V]); ok {
		o.own = c.Own
	}
	o.added = ownAdded(value, o.own)
	o.load, o.emit = o.decodeLoaded, o.emitRow
	o.byTime.time = true
	o.near.keys, o.near.key = p.rec.keys, func(idx uint32) []byte { return o.keyOf(o.at(idx)) }
	o.clear()
	return o
}

// clear makes the overlay empty; the DB's counts are the caller's.
func (o *overlay[V]) clear() {
	o.index = index{}
	o.index.grow()
	o.chunks, o.next, o.free, o.keys = nil, 1, 0, arena{}
	o.logs, o.undos, o.txMark, o.gen = [2][]before[V]{}, nil, 0, 0
	o.pend, o.flight = nil, nil
	o.rows = rowCount{}
	o.near.clear()
	o.aging = aging{}
	o.whole, o.wholeKnown = 0, false
	o.byKey.drop()
	o.byTime.drop()
	o.hand, o.last = 1, 0
}

func (o *overlay[V]) at(idx uint32) *entry[V] {
	return &o.chunks[idx>>chunkBits][idx&(chunkSize-1)]
}

func (o *overlay[V]) keyOf(e *entry[V]) []byte {
	if e.klen <= inlineKey {
		return e.key[:e.klen:e.klen]
	}
	return o.keys.get(e.koff(), e.longLen())
}

// hashSeed is the process's own, so that nobody can send keys that meet.
// Nothing but the place in an index depends on it.
var hashSeed = maphash.MakeSeed()

func hashKey(key []byte) uint32 { return uint32(maphash.Bytes(hashSeed, key)) }

// hash places an entry in the index. Rows of one key that are put once lie side
// by side there: who asks for one asks for the others too.
func (o *overlay[V]) hash(key []byte) uint32 {
	if o.p.rec.keys.kind == KindWindowOnce {
		key = key[timeSize:]
	}
	return hashKey(key)
}

// lookup finds an entry, 0 if there is none.
func (o *overlay[V]) lookup(hash uint32, key []byte) uint32 {
	x := &o.index
	for i := x.first(hash); ; i = (i + 1) & x.mask {
		slot := x.slots[i]
		if slot == 0 {
			return 0
		}
		if slot>>32 == uint64(hash) && bytes.Equal(o.keyOf(o.at(uint32(slot))), key) {
			return uint32(slot)
		}
	}
}

// find returns key's entry, which it makes from the engine's row or its
// absence if there is none.
func (o *overlay[V]) find(key []byte) (uint32, error) {
	hash := o.hash(key)
	idx := o.lookup(hash, key)
	if idx == 0 {
		var err error
		if idx, err = o.miss(hash, key); err != nil {
			return 0, err
		}
	} else if e := o.at(idx); e.flags&recent == 0 {
		e.flags |= recent
	}
	o.last = idx
	return idx, nil
}

func (o *overlay[V]) miss(hash uint32, key []byte) (uint32, error) {
	lacks, err := o.lacks(key)
	ok := false
	if err == nil && !lacks {
		ok, err = o.read(key)
	}
	if err != nil {
		return 0, err
	}
	o.d.makeRoom()
	idx := o.insert(hash, key)
	e := o.at(idx)
	if ok {
		e.v, e.time = o.loaded, o.loadedT
		e.flags |= present | onDisk
		o.came(idx)
		o.resize(e)
		var zero V
		o.loaded = zero
	}
	return idx, nil
}

// read gets key's row from the engine into loaded.
func (o *overlay[V]) read(key []byte) (ok bool, err error) {
	if o.d.closed.Load() {
		return false, ErrClosed
	}
	o.ekey = rowKey(o.ekey[:0], o.p.rec.id, key)
	return o.d.e.Get(o.ekey, o.load)
}

func (o *overlay[V]) decodeLoaded(row []byte) (err error) {
	o.loaded, o.loadedT, err = o.decode(row)
	return err
}

// decode takes a value out of an engine's row, and keeps nothing of the row.
func (o *overlay[V]) decode(row []byte) (v V, time int64, err error) {
	raw, time, err := splitRow(row)
	if err != nil {
		return v, 0, err
	}
	if v, err = o.value.Decode(raw); err != nil {
		return v, 0, err
	}
	if o.own != nil {
		v = o.own(v)
	}
	return v, time, nil
}

// insert makes a clean entry without a value.
func (o *overlay[V]) insert(hash uint32, key []byte) uint32 {
	if o.p.rec.keys.kind.expires() && o.aging.due() {
		o.forget()
	}
	idx := o.newEntry()
	e := o.at(idx)
	e.flags = live
	if len(key) <= inlineKey {
		e.klen = uint8(copy(e.key[:], key))
	} else {
		e.klen = longKey
		e.setKoff(o.keys.put(key))
		binary.NativeEndian.PutUint32(e.key[4:], uint32(len(key)))
	}
	o.index.insert(hash, idx)
	e.size = o.fixedSize(e)
	o.d.clean += int64(e.size)
	if o.p.rec.keys.kind.expires() {
		o.aging.push(idx)
	}
	return idx
}

func (o *overlay[V]) newEntry() uint32 {
	if idx := o.free; idx != 0 {
		e := o.at(idx)
		o.free = e.koff()
		return idx
	}
	idx := o.next
	o.next++
	if idx == 0 {
		assert.That(false, "store %s has 2^32 entries", o.p.name)
	}
	if int(idx>>chunkBits) == len(o.chunks) {
		o.chunks = append(o.chunks, new([chunkSize]entry[V]))
	}
	return idx
}

// removeEntry forgets a clean entry, whose key has that hash.
func (o *overlay[V]) removeEntry(idx uint32, e *entry[V], hash uint32) {
	if !e.clean() {
		assert.That(false, "store %s forgets an entry that is not stored", o.p.name)
	}
	o.evicts(idx, e)
	o.index.remove(hash, idx)
	if e.klen > inlineKey {
		o.keys.drop(e.koff(), e.longLen())
	}
	o.d.clean -= int64(e.size)
	*e = entry[V]{}
	e.setKoff(o.free)
	o.free = idx
}

// entryOverhead is what an entry takes in the index, at its usual load.
const entryOverhead = 16

func (o *overlay[V]) fixedSize(e *entry[V]) uint32 {
	n := uint32(unsafe.Sizeof(*e)) + entryOverhead
	if e.klen > inlineKey {
		n += uint32(e.longLen())
	}
	return n
}

// resize accounts for e's value after a change.
func (o *overlay[V]) resize(e *entry[V]) {
	if o.sizer == nil {
		return
	}
	n := o.fixedSize(e)
	if e.flags&present != 0 {
		n += uint32(o.sizer(e.v))
	}
	by := int64(n) - int64(e.size)
	e.size = n
	o.charge(e, by)
}

// charge adds to the counts of bytes that e belongs to.
func (o *overlay[V]) charge(e *entry[V], by int64) {
	for side, at := range e.tx {
		if at != 0 {
			o.d.dirty[side] += by
		}
	}
	if e.flags&stowed != 0 {
		o.d.pending += by
	}
	if e.clean() {
		o.d.clean += by
	}
}
