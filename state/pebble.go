package state

import (
	"errors"
	"fmt"
	"os"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/vfs"
	"go.uber.org/zap"
)

// PebbleOptions of a Pebble engine.
type PebbleOptions struct {
	FS           vfs.FS      // default the disk
	Budget       *Budget     // default a small one of its own
	Logger       *zap.Logger // default none
	MemTableSize uint64      // bytes, default 16 MiB; what a crash loses at most, times a few
	// Fatal is called when Pebble cannot go on, as when its manifest cannot
	// be written. It must not return; the default panics, since a crash is
	// safe at any time.
	Fatal func(msg string)
	// Tune changes Pebble's own options at last, for tests.
	Tune func(*pebble.Options)
}

const (
	defaultMemTable = 16 << 20
	// pebbleFormat is pinned, so that a newer Pebble does not change
	// directories that an older release must still be able to open.
	pebbleFormat       = pebble.FormatValueSeparation
	maxKeptPebbleBatch = 16 << 20
)

// OpenPebble opens an engine in dir, which it makes with mode 0700 if needed.
// It writes no log of its own: after a crash the engine is at some earlier
// Write, and the changelog has the rest. Errors are ErrInUse, ErrCorrupt,
// ErrFormat or the disk's.
func OpenPebble(dir string, o PebbleOptions) (Engine, error) {
	o = o.withDefaults()
	home, err := openHome(o.FS, dir)
	if err != nil {
		return nil, err
	}
	e := &pebbleEngine{home: home, log: o.Logger.With(zap.String("dir", home.dir))}
	e.flushes.changed = make(chan struct{})
	budget := o.Budget
	if budget == nil {
		budget = NewBudget(ownBlockBytes, ownOpenFiles)
		e.budget = budget
	}
	if e.db, err = pebble.Open(home.data(), e.options(o, budget)); err != nil {
		_ = e.closeRest()                   // the first error tells more
		if errors.Is(err, os.ErrNotExist) { // of a directory that is whole
			err = fmt.Errorf("%w: %w", ErrCorrupt, err)
		}
		return nil, fmt.Errorf("opening %s: %w", home.dir, corrupt(err))
	}
	if err := home.made(); err != nil {
		_ = e.db.Close()
		_ = e.closeRest()
		return nil, err
	}
	return e, nil
}

func (o PebbleOptions) withDefaults() PebbleOptions {
	if o.FS == nil {
		o.FS = vfs.Default
	}
	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}
	if o.MemTableSize == 0 {
		o.MemTableSize = defaultMemTable
	}
	if o.Fatal == nil {
		o.Fatal = func(msg string) { panic("semel: pebble: " + msg) }
	}
	return o
}

func (e *pebbleEngine) options(o PebbleOptions, b *Budget) *pebble.Options {
	po := &pebble.Options{
		FS:                          o.FS,
		Cache:                       b.blocks,
		FileCache:                   b.files,
		FormatMajorVersion:          pebbleFormat,
		DisableWAL:                  true,
		MemTableSize:                o.MemTableSize,
		MemTableStopWritesThreshold: 4,
		L0CompactionThreshold:       4,
		L0StopWritesThreshold:       64,
		LBaseMaxBytes:               64 << 20,
		CompactionConcurrencyRange:  func() (lower, upper int) { return 1, 2 },
		Logger:                      pebbleLogger{e.log, o.Fatal},
		EventListener:               e.events(),
	}
	for i := range po.Levels {
		po.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
		po.Levels[i].BlockSize = 8 << 10
	}
	if o.Tune != nil {
		o.Tune(po)
	}
	return po
}

type pebbleEngine struct {
	home    *home
	db      *pebble.DB
	budget  *Budget // its own, nil if shared
	log     *zap.Logger
	flushes flushState
}

func (e *pebbleEngine) Get(key []byte, use func([]byte) error) (bool, error) {
	v, closer, err := e.db.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, corrupt(err)
	}
	err = use(v)
	if cerr := closer.Close(); err == nil && cerr != nil {
		err = corrupt(cerr)
	}
	return true, err
}

func (e *pebbleEngine) Scan(from, to []byte, backward bool) Iterator {
	// Pebble may keep the bounds, so it gets its own.
	o := &pebble.IterOptions{LowerBound: ownBound(from), UpperBound: ownBound(to)}
	it, err := e.db.NewIter(o)
	return &pebbleIter{it: it, err: err, backward: backward}
}

func ownBound(b []byte) []byte {
	if b == nil {
		return nil
	}
	return append([]byte{}, b...)
}

func (e *pebbleEngine) Write(b *Batch) error {
	if err := e.flushes.stuck(); err != nil {
		return err // else it would fill the memtables and wait for ever
	}
	pb := e.db.NewBatchWithSize(b.Bytes()+16*b.Len(), pebble.WithMaxRetainedSizeBytes(maxKeptPebbleBatch))
	defer func() { _ = pb.Close() }() // gives its memory back; what was written is known by then
	if err := b.Each(func(kind OpKind, key, value []byte) error { return addOp(pb, kind, key, value) }); err != nil {
		return err
	}
	return corrupt(pb.Commit(pebble.NoSync))
}

func addOp(pb *pebble.Batch, kind OpKind, key, value []byte) error {
	switch kind {
	case OpSet:
		d := pb.SetDeferred(len(key), len(value))
		copy(d.Key, key)
		copy(d.Value, value)
		return d.Finish()
	case OpDelete:
		return pb.Delete(key, nil)
	case OpDeleteRange:
		return pb.DeleteRange(key, value, nil)
	}
	return fmt.Errorf("a batch has an operation %d", kind)
}

func (e *pebbleEngine) Flush() error { return corrupt(e.flushes.run(e.db)) }

func (e *pebbleEngine) Close() error {
	err := e.Flush()
	if cerr := e.db.Close(); err == nil {
		err = corrupt(cerr)
	}
	if cerr := e.closeRest(); err == nil {
		err = cerr
	}
	return err
}

func (e *pebbleEngine) closeRest() error {
	if e.budget != nil {
		e.budget.Close()
	}
	return e.home.Close()
}

// corrupt marks what Pebble calls corruption as ErrCorrupt.
func corrupt(err error) error {
	if err != nil && pebble.IsCorruptionError(err) {
		return fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return err
}

type pebbleIter struct {
	it       *pebble.Iterator
	err      error // of making it
	backward bool
	begun    bool
}

func (i *pebbleIter) Next() bool {
	if i.it == nil {
		return false
	}
	begun := i.begun
	i.begun = true
	switch {
	case begun && i.backward:
		return i.it.Prev()
	case begun:
		return i.it.Next()
	case i.backward:
		return i.it.Last()
	}
	return i.it.First()
}

func (i *pebbleIter) Seek(key []byte) bool {
	if i.it == nil {
		return false
	}
	i.begun = true
	if i.backward {
		return i.it.SeekLT(key)
	}
	return i.it.SeekGE(key)
}

func (i *pebbleIter) Key() []byte   { return i.it.Key() }
func (i *pebbleIter) Value() []byte { return i.it.Value() }

func (i *pebbleIter) Err() error {
	if i.it == nil {
		return corrupt(i.err)
	}
	return corrupt(i.it.Error())
}

func (i *pebbleIter) Close() error {
	if i.it == nil {
		return corrupt(i.err)
	}
	return corrupt(i.it.Close())
}
