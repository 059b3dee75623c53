package state

import (
	"slices"
)

// A Batch is changes for [Engine.Write], in order. Its bytes are in one arena,
// so that a batch that is used again allocates nothing. The zero Batch is
// empty and ready.
type Batch struct {
	ops    []op
	arena  []byte
	loose  [][2]int // stretches of ops that sort puts in order
	sorter keySorter
}

// An OpKind says what an operation of a Batch does.
type OpKind uint8

// The operations of a Batch.
const (
	OpSet         OpKind = iota // Key gets Value
	OpDelete                    // Key goes
	OpDeleteRange               // all keys from Key, included, to Value, excluded, go
)

type op struct {
	at       int // where its key is in the arena, and behind it its value
	key, val uint32
	kind     OpKind
}

// Set gives key the value.
func (b *Batch) Set(key, value []byte) { b.add(OpSet, key, value) }

// Delete removes key.
func (b *Batch) Delete(key []byte) { b.add(OpDelete, key, nil) }

// DeleteRange removes the keys from from, included, to to, excluded.
func (b *Batch) DeleteRange(from, to []byte) { b.add(OpDeleteRange, from, to) }

// grow makes room for so many operations of about size bytes each.
func (b *Batch) grow(n, size int) {
	b.ops = slices.Grow(b.ops, n)
	b.arena = slices.Grow(b.arena, n*size)
}

func (b *Batch) add(kind OpKind, key, val []byte) {
	b.ops = append(b.ops, op{len(b.arena), uint32(len(key)), uint32(len(val)), kind})
	b.arena = append(append(b.arena, key...), val...)
}

// Len is the number of operations.
func (b *Batch) Len() int { return len(b.ops) }

// Bytes is the size of all keys and values.
func (b *Batch) Bytes() int { return len(b.arena) }

// Each calls f with the operations in order until f returns an error. Key and
// value are valid until the next change of the batch; f must not change them.
func (b *Batch) Each(f func(kind OpKind, key, value []byte) error) error {
	for _, o := range b.ops {
		mid := o.at + int(o.key)
		end := mid + int(o.val)
		if err := f(o.kind, b.arena[o.at:mid:mid], b.arena[mid:end:end]); err != nil {
			return err
		}
	}
	return nil
}

// unordered says that the operations from the from-th on are of rows of one
// store, each of another key, so that it does not matter which goes first.
func (b *Batch) unordered(from int) { b.loose = append(b.loose, [2]int{from, len(b.ops)}) }

// sort puts what is unordered in order of keys: Pebble takes sorted batches in a
// quarter of the time.
func (b *Batch) sort() {
	for _, part := range b.loose {
		b.sortOps(b.ops[part[0]:part[1]])
	}
	b.loose = b.loose[:0]
}

func (b *Batch) sortOps(ops []op) {
	b.sorter.sort(len(ops), func(i uint32) []byte { return b.keyOf(ops[i]) })
	sorted := b.sorter.order
	for i := range ops { // in place, each operation once
		first, to := ops[i], i
		for {
			from := int(sorted[to].at)
			sorted[to].at = uint32(to)
			if from == i {
				break
			}
			ops[to] = ops[from]
			to = from
		}
		ops[to] = first
	}
}

func (b *Batch) keyOf(o op) []byte { return b.arena[o.at : o.at+int(o.key)] }

// keptBatch is the memory for bytes that an empty batch always keeps.
const keptBatch = 1 << 20

// Reset empties the batch and keeps its memory, unless most of it was of no use
// this time: a batch is about as large as the one before it, and fresh memory
// costs more than what is written there.
func (b *Batch) Reset() {
	if cap(b.arena) > max(keptBatch, 4*len(b.arena)) {
		*b = Batch{}
		return
	}
	b.ops, b.arena, b.loose = b.ops[:0], b.arena[:0], b.loose[:0]
}
