package state

import (
	"encoding/binary"
	"fmt"
	"iter"
	"math"

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
	rec := p.rec
	rec.position = next
	var err error
	switch rec.keys.kind {
	case KindVersioned:
		err = p.applyVersions(b, rows)
	case KindWindowOnce:
		err = p.applyBundles(b, rows, rec)
	default:
		err = p.applyRows(b, rows, &rec)
	}
	if err != nil {
		return fmt.Errorf("restoring store %q: %w", p.name, err)
	}
	return p.applied(b, rec)
}

// applyRows puts records that are one row each into b.
func (p *Part) applyRows(b *Batch, rows iter.Seq[Row], rec *storeRecord) (err error) {
	for r := range rows {
		if p.row, err = rec.keys.fromLog(p.row[:0], r.Key); err != nil {
			return err
		}
		if rec.keys.kind == KindWindowByKey {
			rec.last = max(rec.last, binary.BigEndian.Uint32(r.Key[len(r.Key)-seqSize:]))
		}
		p.key = rowKey(p.key[:0], rec.id, p.row)
		if r.Value == nil {
			b.Delete(p.key)
		} else {
			p.val = rowValue(p.val[:0], r.Value, r.Time)
			b.Set(p.key, p.val)
		}
		if rec.timeID == 0 {
			continue
		}
		p.key = rec.keys.toTime(rowKey(p.key[:0], rec.timeID, nil), p.row)
		if r.Value == nil {
			b.Delete(p.key)
		} else {
			b.Set(p.key, nil)
		}
	}
	return nil
}

// Reset empties the store and sets its position to 0, for a restore from the
// beginning.
func (p *Part) Reset() error {
	p.mustBeIdle()
	b := &p.batch
	defer b.Reset()
	p.clearNew(b)
	rec := p.rec
	rec.position, rec.last = 0, 0
	p.newest = math.MinInt64
	return p.applied(b, rec)
}

func (p *Part) applied(b *Batch, rec storeRecord) error {
	if p.d.closed.Load() {
		return ErrClosed
	}
	b.Set(p.catalogue, rec.bytes())
	if err := p.d.e.Write(b); err != nil {
		return fmt.Errorf("restoring store %q: %w", p.name, err)
	}
	p.load(rec)
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
