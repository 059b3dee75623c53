package state

import (
	"fmt"

	"github.com/semelstream/semel/internal/assert"
)

// Mark is a savepoint: Undo takes back what follows. A transaction begins with
// one. It costs the same however many rows there are.
func (d *DB) Mark() { d.gen++ }

// Undo puts all stores and meta back to the last Mark. It is itself a Mark.
func (d *DB) Undo() {
	for _, p := range d.parts {
		p.seq.undo(d.gen)
		if p.store != nil {
			p.store.undo()
		}
	}
	d.meta.back(d.gen)
	d.gen++
}

// Changes calls f with what the open transaction changed, for the changelogs:
// by store, in order of first change, the last value of each key; a nil value
// deletes. A row that came and went again in the transaction is left out. Of a
// KindWindowOnce store a call is for many rows. The slices are valid during the
// call. The transaction stays as it is.
func (d *DB) Changes(f func(p *Part, key, value []byte, time int64) error) error {
	for _, p := range d.parts {
		if p.store == nil {
			continue
		}
		err := p.store.changes(func(key, value []byte, time int64) error { return f(p, key, value, time) })
		if err != nil {
			return fmt.Errorf("store %q: %w", p.name, err)
		}
	}
	return nil
}

// DirtyBytes is about the memory of what the open transaction changed.
func (d *DB) DirtyBytes() int64 { return d.dirty[d.side&1] }

// PendingBytes is about the memory of what is committed and not stored.
func (d *DB) PendingBytes() int64 { return d.pending }

// Freeze closes the open transaction, whose changes are in the changelogs, and
// opens the next one on top of it. What it changed is seen as before, but Undo
// does not reach it any more, and it is neither open nor committed until
// Committed or Rewind says what became of it. One transaction can be closing
// at a time. It costs the same however many rows there are.
func (d *DB) Freeze() {
	assert.That(!d.closing, "a transaction is frozen while another one is closing")
	d.closing = true
	d.side ^= 1
	d.tx++
	for _, p := range d.parts {
		p.seq.freeze()
		if p.store != nil {
			p.store.freeze()
		}
	}
	d.meta.freeze()
	d.gen++
}

// Committed says that the closing transaction is known to be committed, and
// ends it; if none is closing, it is the open one that is. For each store, next
// returns the changelog offset behind the store's last record of the
// transaction, or false if it wrote none.
func (d *DB) Committed(next func(p *Part) (pos int64, ok bool)) {
	if !d.closing {
		d.Freeze()
	}
	for _, p := range d.parts {
		if p.store != nil {
			p.store.committed()
		}
		p.seq.commit()
		p.rec.last = uint32(p.seq.committed)
		if pos, ok := next(p); ok {
			assert.That(pos >= p.rec.position, "store %s: position %d after %d", p.name, pos, p.rec.position)
			p.rec.position = pos
		}
	}
	if left := d.dirty[(d.side+1)&1]; left != 0 {
		assert.That(false, "%d dirty bytes after a commit", left)
	}
	d.meta.commit()
	d.closing = false
}

// Rewind forgets all that is not stored, the open and the closing transaction,
// committed changes, and clean rows too; then Position is what the engine has.
// Only what the last Persist left out is stored before. A Write
// whose Commit has begun is waited for, one whose Commit has not will return
// [ErrRewound]. After an error only Close is left.
func (d *DB) Rewind() error {
	if d.closed.Load() {
		return ErrClosed
	}
	_ = d.storeHeld() // the changelog has it too
	if d.write != nil {
		_ = d.endWrite() // reload reads what came of it
	}
	d.dropStores()
	if err := d.reload(); err != nil {
		return fmt.Errorf("rewinding state: %w", err)
	}
	return nil
}

func (d *DB) dropStores() {
	for _, p := range d.parts {
		if p.store != nil {
			p.store.drop()
			p.store.rewind()
		}
	}
	assert.That(d.dirty == [2]int64{} && d.pending == 0 && d.clean == 0,
		"%d dirty, %d pending, %d clean bytes in empty stores", d.dirty, d.pending, d.clean)
	d.closing = false
	d.hold = hold{}
	d.gen++
	d.epoch++
}
