package model

import (
	"fmt"
	"maps"
	"slices"

	"github.com/semelstream/semel/internal/assert"
	"github.com/semelstream/semel/state"
)

// A Disk has the stores of one process and outlives it. Of what was written
// to a store a crash keeps what was flushed and any number of the batches
// after it, from the first on and each of them wholly.
type Disk struct {
	w      *World
	stores map[string]*files
	fail   error
}

// files are one store on the disk.
type files struct {
	flushed state.Engine
	after   []*state.Batch
	open    *engine
}

func newDisk(w *World) *Disk { return &Disk{w: w, stores: map[string]*files{}} }

// Open opens a store, empty if it is new. A store is open once at a time.
func (d *Disk) Open(name string) (state.Engine, error) {
	if d.fail != nil {
		return nil, fmt.Errorf("opening %s: %w", name, d.fail)
	}
	f := d.stores[name]
	if f == nil {
		f = &files{flushed: state.NewMemory()}
		d.stores[name] = f
	}
	if f.open != nil {
		return nil, fmt.Errorf("opening %s: %w", name, state.ErrInUse)
	}
	f.open = &engine{Engine: f.read(), disk: d, files: f}
	return f.open, nil
}

// Read is the store as opening it would show it, for checks; nil if there is
// none.
func (d *Disk) Read(name string) state.Engine {
	f := d.stores[name]
	if f == nil {
		return nil
	}
	return f.read()
}

// Names are the stores in order.
func (d *Disk) Names() []string { return slices.Sorted(maps.Keys(d.stores)) }

// Remove deletes a store that is not open.
func (d *Disk) Remove(name string) error {
	if f := d.stores[name]; f != nil && f.open != nil {
		return fmt.Errorf("removing %s: %w", name, state.ErrInUse)
	}
	delete(d.stores, name)
	return nil
}

// Fail makes every open, write and flush fail with err, until Fail(nil).
func (d *Disk) Fail(err error) { d.fail = err }

// Wipe is a new, empty disk in the place of this one. The process must be
// dead.
func (d *Disk) Wipe() { d.stores = map[string]*files{} }

func (d *Disk) crash() {
	for _, name := range d.Names() {
		f := d.stores[name]
		if f.open == nil {
			continue
		}
		f.open.dead, f.open = true, nil
		f.after = f.after[:d.w.rand.IntN(len(f.after)+1)]
	}
}

// read makes an engine with all that was written.
func (f *files) read() state.Engine {
	e := state.NewMemory()
	var b state.Batch
	it := f.flushed.Scan(nil, nil, false)
	for it.Next() {
		b.Set(it.Key(), it.Value())
	}
	assert.That(it.Close() == nil, "a memory engine cannot be read")
	for _, b := range append([]*state.Batch{&b}, f.after...) {
		assert.That(e.Write(b) == nil, "a memory engine cannot be written")
	}
	return e
}

// engine is an open store.
type engine struct {
	state.Engine // what reads see
	disk         *Disk
	files        *files
	dead         bool // closed, or its process is dead
}

func (e *engine) Write(b *state.Batch) error {
	if e.dead {
		return state.ErrClosed
	}
	if err := e.disk.fail; err != nil {
		return err
	}
	e.files.after = append(e.files.after, clone(b))
	return e.Engine.Write(b)
}

func (e *engine) Flush() error {
	if e.dead {
		return state.ErrClosed
	}
	if err := e.disk.fail; err != nil {
		return err
	}
	for _, b := range e.files.after {
		if err := e.files.flushed.Write(b); err != nil {
			return err
		}
	}
	e.files.after = nil
	return nil
}

func (e *engine) Close() error {
	if e.dead {
		return nil
	}
	err := e.Flush()
	e.dead, e.files.open = true, nil
	return err
}

func clone(b *state.Batch) *state.Batch {
	c := new(state.Batch)
	_ = b.Each(func(kind state.OpKind, key, value []byte) error {
		switch kind {
		case state.OpSet:
			c.Set(key, value)
		case state.OpDelete:
			c.Delete(key)
		case state.OpDeleteRange:
			c.DeleteRange(key, value)
		}
		return nil
	})
	return c
}
