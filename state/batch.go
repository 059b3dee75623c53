package state

import "slices"

// A Batch is changes for [Engine.Write], in order. Its bytes are in one arena,
// so that a batch that is used again allocates nothing. The zero Batch is
// empty and ready.
type Batch struct {
	ops   []op
	arena []byte
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
	kind     OpKind
	key, val int // lengths; the bytes follow one another in the arena
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
	b.ops = append(b.ops, op{kind, len(key), len(val)})
	b.arena = append(append(b.arena, key...), val...)
}

// Len is the number of operations.
func (b *Batch) Len() int { return len(b.ops) }

// Bytes is the size of all keys and values.
func (b *Batch) Bytes() int { return len(b.arena) }

// Each calls f with the operations in order until f returns an error. Key and
// value are valid until the next change of the batch; f must not change them.
func (b *Batch) Each(f func(kind OpKind, key, value []byte) error) error {
	at := 0
	for _, o := range b.ops {
		mid, end := at+o.key, at+o.key+o.val
		if err := f(o.kind, b.arena[at:mid:mid], b.arena[mid:end:end]); err != nil {
			return err
		}
		at = end
	}
	return nil
}

// maxKeptBatch bounds what an empty batch keeps of its memory.
const maxKeptBatch = 16 << 20

// Reset empties the batch and keeps its memory, up to a bound.
func (b *Batch) Reset() {
	if cap(b.arena) > maxKeptBatch {
		*b = Batch{}
		return
	}
	b.ops, b.arena = b.ops[:0], b.arena[:0]
}
