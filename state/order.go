package state

import (
	"bytes"

	"github.com/tidwall/btree"
)

// A treeItem is the key of an entry that is not clean. In the order by key it
// is the entry's own memory, which stays in place as long as the entry does.
type treeItem struct {
	key []byte
	idx uint32
}

func lessItem(a, b treeItem) bool { return bytes.Compare(a.key, b.key) < 0 }

// An order is a tree of the entries that are not clean. The first scan makes it
// and later changes keep it. It goes when a whole Write passes without a scan.
type order struct {
	tree  *btree.BTreeG[treeItem] // nil if nobody scans
	treed uint64                  // counts the tree's changes
	used  bool                    // the tree was used since the last Persisted
	time  bool                    // keys are those of the order by time
}

func (r *order) drop() {
	r.tree = nil
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
	if r.tree != nil {
		return r.tree
	}
	r.tree = btree.NewBTreeGOptions(lessItem, btree.Options{NoLocks: true})
	r.treed++
	for _, log := range o.logs {
		for i := range log {
			o.addItem(r, log[i].idx)
		}
	}
	for _, list := range [][]uint32{o.pend, o.flight} {
		for _, idx := range list {
			if o.at(idx).flags&stowed != 0 { // else it was forgotten
				o.addItem(r, idx)
			}
		}
	}
	return r.tree
}

func (o *overlay[V]) addItem(r *order, idx uint32) {
	key := o.keyOf(o.at(idx))
	if r.time {
		key = o.p.rec.keys.toTime(make([]byte, 0, len(key)-segmentSize), key)
	}
	r.tree.Set(treeItem{key, idx})
}

// pin takes an entry out of the clean ones.
func (o *overlay[V]) pin(e *entry[V], idx uint32) {
	o.d.clean -= int64(e.size)
	for _, r := range [...]*order{&o.byKey, &o.byTime} {
		if r.tree != nil {
			o.addItem(r, idx)
			r.treed++
		}
	}
}

// unpin makes an entry clean that is as on the engine again.
func (o *overlay[V]) unpin(e *entry[V]) {
	o.d.clean += int64(e.size)
	if o.byKey.tree != nil {
		o.byKey.tree.Delete(treeItem{key: o.keyOf(e)})
		o.byKey.treed++
	}
	if o.byTime.tree != nil {
		o.tkey = o.p.rec.keys.toTime(o.tkey[:0], o.keyOf(e))
		o.byTime.tree.Delete(treeItem{key: o.tkey})
		o.byTime.treed++
	}
}
