package state

import (
	"fmt"
	"sync"

	"github.com/semelstream/semel/internal/assert"
)

// A Write is committed changes on their way to the engine. Commit it, on any
// goroutine, then give it to [DB.Persisted] on the owner's.
type Write struct {
	e         Engine
	batch     *Batch
	positions []int64 // by part
	lasts     []uint32
	held      bool // stores are left out, and meta
	meta      []metaStored

	mu    sync.Mutex // held while Commit runs
	state writeState
	err   error
}

type writeState uint8

const (
	writeReady writeState = iota
	writeDone
	writeDropped
)

// Persist makes a Write of what is committed and not stored, with positions and
// meta. It returns nil if there is nothing, or while another Write is under
// way. It may be called while a transaction is open: rows that it changed are
// written as they were before it.
//
// Rows that expire may wait for one of the next Writes, with the positions of
// their stores, so that some need not be written at all; see [DB.Close].
func (d *DB) Persist() *Write {
	if d.write != nil || d.closed.Load() {
		return nil
	}
	return d.persist(d.holds())
}

// persist leaves out what may wait, if wait is set.
func (d *DB) persist(wait bool) *Write {
	w := &Write{e: d.e, batch: d.spare}
	for _, p := range d.parts {
		if wait && p.mayWait() {
			w.held = true
			w.positions = append(w.positions, p.stored.Load())
			w.lasts = append(w.lasts, p.storedLast)
			continue
		}
		w.positions = append(w.positions, p.rec.position)
		w.lasts = append(w.lasts, p.rec.last)
		if p.store != nil {
			if err := p.store.persist(w.batch); err != nil && w.err == nil {
				w.err = fmt.Errorf("store %q: %w", p.name, err)
			}
		}
		if p.rec.position != p.stored.Load() || p.rec.last != p.storedLast {
			w.batch.Set(p.catalogue, p.rec.bytes())
		}
	}
	if w.held {
		d.hold.writes++
	} else {
		d.hold = hold{}
		w.meta = d.meta.persist(w.batch)
	}
	if w.batch.Len() == 0 && w.err == nil {
		return nil
	}
	d.write, d.spare = w, nil
	return w
}

// Bytes is the size of what Commit writes.
func (w *Write) Bytes() int { return w.batch.Bytes() }

// Commit writes, once. After an error the engine has all of the Write or
// nothing, and the error goes to [DB.Persisted].
func (w *Write) Commit() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.state == writeDropped {
		return ErrRewound
	}
	assert.That(w.state == writeReady, "a Write was committed twice")
	w.state = writeDone
	if w.err == nil {
		w.batch.sort()
		w.err = w.e.Write(w.batch)
	}
	if w.err != nil {
		return fmt.Errorf("storing committed changes: %w", w.err)
	}
	return nil
}

// Persisted takes in how a Write went. After an error its changes are
// committed and not stored again, and a later Persist writes them anew. A Write
// that a Rewind dropped or waited for is ignored.
func (d *DB) Persisted(w *Write, err error) {
	if w == nil || d.write != w {
		return
	}
	failed := d.endWrite()
	assert.That(err != nil || failed == nil, "Persisted without the error of Commit: %v", failed)
	for i, p := range d.parts {
		if p.store != nil {
			p.store.persisted(err == nil)
		}
		if err == nil {
			p.stored.Store(w.positions[i])
			p.storedLast = w.lasts[i]
		}
	}
	if err == nil {
		for _, m := range w.meta {
			m.row.stored, m.row.has.stored = m.value, true
		}
	}
	d.epoch++
	d.trim()
}

// endWrite ends the Write under way: nothing of it is written after endWrite
// returned. It waits for a Commit that has begun, and returns its error or, if
// none has, ErrRewound.
func (d *DB) endWrite() error {
	w := d.write
	d.write = nil
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.state == writeReady {
		w.state, w.err = writeDropped, ErrRewound
	}
	w.batch.Reset()
	d.spare = w.batch
	return w.err
}
