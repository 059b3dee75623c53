package state

import (
	"bytes"
	"sync"

	"github.com/tidwall/btree"
)

// NewMemory is an engine without a disk. Flush promises nothing.
func NewMemory() Engine {
	return &memory{rows: btree.NewBTreeGOptions(lessRow, btree.Options{NoLocks: true})}
}

type memRow struct{ key, value []byte }

func lessRow(a, b memRow) bool { return bytes.Compare(a.key, b.key) < 0 }

// memory keeps its rows in a copy-on-write tree. Rows themselves never change,
// so a reader holds the lock only to take a copy of the root.
type memory struct {
	mu   sync.Mutex
	rows *btree.BTreeG[memRow]
}

func (m *memory) Get(key []byte, use func([]byte) error) (bool, error) {
	m.mu.Lock()
	r, ok := m.rows.Get(memRow{key: key})
	m.mu.Unlock()
	if !ok {
		return false, nil
	}
	return true, use(r.value)
}

func (m *memory) Write(b *Batch) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return b.Each(func(kind OpKind, key, value []byte) error {
		switch kind {
		case OpSet:
			// One allocation for both; a value is never nil.
			row := append(append(make([]byte, 0, len(key)+len(value)), key...), value...)
			m.rows.Set(memRow{row[:len(key):len(key)], row[len(key):]})
		case OpDelete:
			m.rows.Delete(memRow{key: key})
		case OpDeleteRange:
			m.deleteRange(key, value)
		}
		return nil
	})
}

func (m *memory) deleteRange(from, to []byte) {
	var gone []memRow
	m.rows.Ascend(memRow{key: from}, func(r memRow) bool {
		if bytes.Compare(r.key, to) >= 0 {
			return false
		}
		gone = append(gone, r)
		return true
	})
	for _, r := range gone {
		m.rows.Delete(r)
	}
}

func (m *memory) Scan(from, to []byte, backward bool) Iterator {
	m.mu.Lock()
	rows := m.rows.IsoCopy()
	m.mu.Unlock()
	it := &memIter{backward: backward, rows: rows.Iter()}
	if from != nil {
		it.from = append([]byte{}, from...)
	}
	if to != nil {
		it.to = append([]byte{}, to...)
	}
	return it
}

func (m *memory) Flush() error { return nil }
func (m *memory) Close() error { return nil }

type memIter struct {
	rows     btree.IterG[memRow]
	from, to []byte
	backward bool
	begun    bool
	row      memRow
}

func (it *memIter) Next() bool {
	return it.at(it.step())
}

func (it *memIter) Seek(key []byte) bool {
	if it.backward && (it.to == nil || bytes.Compare(key, it.to) < 0) {
		it.to = append([]byte{}, key...)
	}
	if !it.backward && (it.from == nil || bytes.Compare(key, it.from) > 0) {
		it.from = append([]byte{}, key...)
	}
	it.begun = false // and now from the new end
	return it.Next()
}

// at says whether the row that the tree came to is one of the scan's.
func (it *memIter) at(ok bool) bool {
	if !ok {
		return false
	}
	it.row = it.rows.Item()
	if it.backward {
		return it.from == nil || bytes.Compare(it.row.key, it.from) >= 0
	}
	return it.to == nil || bytes.Compare(it.row.key, it.to) < 0
}

func (it *memIter) step() bool {
	begun := it.begun
	it.begun = true
	switch {
	case begun && it.backward:
		return it.rows.Prev()
	case begun:
		return it.rows.Next()
	case it.backward && it.to == nil:
		return it.rows.Last()
	case it.backward:
		if !it.rows.Seek(memRow{key: it.to}) {
			return it.rows.Last()
		}
		return it.rows.Prev()
	case it.from == nil:
		return it.rows.First()
	default:
		return it.rows.Seek(memRow{key: it.from})
	}
}

func (it *memIter) Key() []byte   { return it.row.key }
func (it *memIter) Value() []byte { return it.row.value }
func (it *memIter) Err() error    { return nil }

func (it *memIter) Close() error {
	it.rows.Release()
	return nil
}
