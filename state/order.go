package state

import (
	"bytes"

	"github.com/tidwall/btree"
)

// A treeItem is the key of an entry that is not clean, in memory of its own.
type treeItem struct {
	key []byte
	idx uint32
}

func lessItem(a, b treeItem) bool { return bytes.Compare(a.key, b.key) < 0 }

// An order is a tree of the entries that are not clean. The first scan makes it
// and later changes keep it. It goes when a whole Write passes without a scan.
//
// Changes wait for the next scan, which takes them in order of key: a tree of many
// entries is then walked once and not from its root for each, and what is behind
// all others, as rows of the newest window are, is only appended.
type order struct {
	tree   *btree.BTreeG[treeItem] // nil if nobody scans
	late   []lateItem              // changes that the tree does not have yet, as they came
	keys   []byte                  // the block that holds the next keys
	sorter keySorter
	treed  uint64 // counts changes, late ones too
	used   bool   // the tree was used since the last Persisted
	time   bool   // keys are those of the order by time
}

// A lateItem is an entry that comes into the tree, or goes.
type lateItem struct {
	treeItem
	gone bool
}

func (r *order) drop() {
	r.tree, r.late, r.keys = nil, nil, nil
	r.treed++
}

// persisted stops paying for a tree that nobody used since the last time.
func (r *order) persisted() {
	if !r.used {
		r.drop()
	}
	r.used = false
}

// sorted returns the tree of an order.
func (o *overlay[V]) sorted(r *order) *btree.BTreeG[treeItem] {
	r.used = true
	if r.tree == nil {
		r.tree = btree.NewBTreeGOptions(lessItem, btree.Options{NoLocks: true})
		r.treed++
		o.lateAll(r)
	}
	if len(r.late) > 0 {
		r.catchUp()
	}
	return r.tree
}

// lateAll are all entries that are not clean.
func (o *overlay[V]) lateAll(r *order) {
	for _, log := range o.logs {
		for i := range log {
			o.change(r, o.at(log[i].idx), log[i].idx, false)
		}
	}
	for _, list := range [][]uint32{o.pend, o.flight} {
		for _, idx := range list {
			if e := o.at(idx); e.flags&stowed != 0 { // else it was forgotten
				o.change(r, e, idx, false)
			}
		}
	}
}

// orderBlock is for some thousand keys.
const orderBlock = 64 << 10

// change notes that an entry comes into the tree or goes.
func (o *overlay[V]) change(r *order, e *entry[V], idx uint32, gone bool) {
	key := o.keyOf(e)
	if len(r.keys)+len(key) > cap(r.keys) {
		r.keys = make([]byte, 0, max(orderBlock, len(key)))
	}
	at := len(r.keys)
	if r.time {
		r.keys = o.p.rec.keys.toTime(r.keys, key)
	} else {
		r.keys = append(r.keys, key...)
	}
	key = r.keys[at:len(r.keys):len(r.keys)]
	r.late = append(r.late, lateItem{treeItem{key, idx}, gone})
	r.treed++
}

// catchUp brings the tree up to date.
func (r *order) catchUp() {
	r.sorter.sort(len(r.late), func(i uint32) []byte { return r.late[i].key })
	var hint btree.PathHint
	last, _ := r.tree.Max()
	for turns := r.sorter.order; len(turns) > 0; {
		first, n := &r.late[turns[0].at], 1
		for n < len(turns) && turns[n].head == turns[0].head && bytes.Equal(r.late[turns[n].at].key, first.key) {
			n++
		}
		switch now := &r.late[turns[n-1].at]; {
		case !now.gone && (last.key == nil || bytes.Compare(last.key, now.key) < 0):
			r.tree.Load(now.treeItem)
			last = now.treeItem
		case !now.gone:
			r.tree.SetHint(now.treeItem, &hint)
		case first.gone: // else it was not in the tree
			r.tree.DeleteHint(now.treeItem, &hint)
		}
		turns = turns[n:]
	}
	clear(r.late)
	r.late = r.late[:0]
}

// pin takes an entry out of the clean ones.
func (o *overlay[V]) pin(e *entry[V], idx uint32) {
	o.d.clean -= int64(e.size)
	for _, r := range [...]*order{&o.byKey, &o.byTime} {
		if r.tree != nil {
			o.change(r, e, idx, false)
		}
	}
}

// unpin makes an entry clean that is as on the engine again.
func (o *overlay[V]) unpin(e *entry[V]) {
	o.d.clean += int64(e.size)
	for _, r := range [...]*order{&o.byKey, &o.byTime} {
		if r.tree != nil {
			o.change(r, e, 0, true)
		}
	}
}
