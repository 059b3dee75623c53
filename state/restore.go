package state

import (
	"fmt"
	"iter"

	"github.com/semelstream/semel/internal/assert"
)

// A Row is a changelog record.
type Row struct {
	Key, Value []byte // a nil Value deletes
	Time       int64  // ms since 1970
}

// Apply writes changelog records straight to the engine, in one batch with the
// position next, which is behind the last of them and behind what was skipped.
// The store has no open or unstored changes. Different parts may be applied to
// at the same time, if nothing else happens to the DB.
func (p *Part) Apply(rows iter.Seq[Row], next int64) error {
	p.mustBeIdle()
	assert.That(next >= p.rec.position, "store %s: applied up to %d after %d", p.name, next, p.rec.position)
	b := &p.batch
	defer b.Reset()
	for r := range rows {
		p.key = p.rec.kind.rowKey(p.key[:0], p.rec.id, r.Key, r.Time)
		if r.Value == nil {
			b.Delete(p.key)
			continue
		}
		p.val = p.rec.kind.rowValue(p.val[:0], r.Value, r.Time)
		b.Set(p.key, p.val)
	}
	return p.applied(b, next)
}

// Reset empties the store and sets its position to 0, for a restore from the
// beginning.
func (p *Part) Reset() error {
	p.mustBeIdle()
	b := &p.batch
	defer b.Reset()
	b.DeleteRange(storeRange(p.rec.id))
	return p.applied(b, 0)
}

func (p *Part) applied(b *Batch, next int64) error {
	if p.d.closed.Load() {
		return ErrClosed
	}
	rec := p.rec
	rec.position = next
	b.Set(p.catalogue, rec.append(nil))
	if err := p.d.e.Write(b); err != nil {
		return fmt.Errorf("restoring store %q: %w", p.name, err)
	}
	p.rec = rec
	p.stored.Store(next)
	return nil
}

// mustBeIdle also forgets clean rows, which are about to be old.
func (p *Part) mustBeIdle() {
	assert.That(p.d.write == nil, "store %s is restored while a Write is under way", p.name)
	if p.store == nil {
		return
	}
	assert.That(p.store.idle(), "store %s is restored while it has changes", p.name)
	p.store.drop()
}
