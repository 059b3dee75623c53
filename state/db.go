package state

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"go.uber.org/zap"
)

// A Spec is a store to open.
type Spec struct {
	Name string
	Kind Kind // default KindKeyValue
	// Segment is how much time one segment of a windowed store covers, in ms;
	// default 1 minute. What expires goes from the engine in whole segments. It
	// is kept from when the store was made: a later one is of no account.
	Segment int64
	// ByTime keeps an order by time, for [Window.ByStart] of a KindWindowByKey
	// and [Session.ByEnd]. It costs a second, small row each. A store that once
	// had it keeps it.
	ByTime bool
	// History is for how long, in ms, a KindVersioned store may forget no
	// version while it is restored; 0 is for ever.
	History int64
}

const defaultSegment = 60_000

// Options of a DB.
type Options struct {
	Stores []Spec
	// CacheBytes bounds the clean entries that the stores keep in memory, all
	// together; default 64 MiB. What is not stored yet comes on top: see
	// [DB.DirtyBytes] and [DB.PendingBytes].
	CacheBytes int64
	Logger     *zap.Logger // default none
}

const defaultCacheBytes = 64 << 20

// A DB is the stores of one task on one engine, behind one transaction.
//
// A change lives through five states, and only the last is on the engine:
//
//	open       Put, Set, Delete           Undo takes it back to the last Mark
//	closing    Freeze                     its commit is under way
//	committed  Committed                  the changelog has it
//	in a Write Persist                    its batch is made
//	stored     Persisted                  the engine has it
//
// At any time the rows on the engine are what the changelog says up to
// Position, exactly, since rows and positions are in one batch and only
// committed changes get there; but those that have expired may be missing.
//
// A DB with its Parts and KVs belongs to one goroutine. Three things may run
// elsewhere until Close begins: [Write.Commit], [DB.Flush], and reads through
// a [View]. If there are views, the owner holds Lock during all its calls but
// Close, which takes it itself.
type DB struct {
	mu      sync.Mutex
	e       Engine
	log     *zap.Logger
	parts   []*Part
	byName  map[string]*Part
	others  []string // stores on the engine that are not open
	meta    meta
	side    uint8  // 0 or 1: which of the two logs and counts is the open transaction's
	closing bool   // the other one's is of a transaction that is neither open nor committed
	gen     uint64 // number of the last mark
	tx      uint64 // number of the open transaction
	epoch   uint64 // changes when rows move between overlay and engine
	write   *Write // under way
	spare   *Batch // for the next Write
	closed  atomic.Bool
	cache   int64    // the most that clean may be
	clean   int64    // bytes of entries that are as on the engine
	dirty   [2]int64 // bytes of entries changed in each transaction
	pending int64    // bytes of entries that are committed and not stored
	hand    int      // the part whose entries are evicted next
	hold    hold
}

// A Part is one store as its changelog sees it.
type Part struct {
	d          *DB
	name       string
	rec        storeRecord // position is the committed one
	stored     atomic.Int64
	isStored   bool   // the catalogue has it
	seq        scalar // the last sequence number; committed it is rec's
	storedLast uint32 // what the engine has of it
	history    int64  // ms that Apply must keep, 0 is for ever
	newest     int64  // the largest time that Apply saw
	store      store  // nil until somebody opens it
	typed      any    // the KV around store
	batch      Batch  // for Apply
	key, val   []byte
	row        []byte // a row's key
	catalogue  []byte // key of its record
}

// store is what a DB asks of a typed store.
type store interface {
	undo()
	freeze()
	changes(f func(key, value []byte, time int64) error) error
	committed()
	persist(b *Batch) error
	persisted(ok bool)
	rewind() // what is not a row goes back to the last commit
	evict(steps int) (left int)
	entries() int
	waits() bool // for a Write
	idle() bool  // nothing but clean entries
	drop()       // everything
}

// Open reads the positions and meta of e, which the DB owns from now on, and
// makes those stores that are new. If it fails, e is closed.
func Open(e Engine, o Options) (*DB, error) {
	d := &DB{
		e: e, log: o.Logger, byName: map[string]*Part{}, gen: 1, epoch: 1, tx: 1,
		cache: o.CacheBytes, spare: &Batch{},
	}
	if d.cache <= 0 {
		d.cache = defaultCacheBytes
	}
	if d.log == nil {
		d.log = zap.NewNop()
	}
	if err := d.open(o.Stores); err != nil {
		_ = e.Close() // the first error tells more
		return nil, fmt.Errorf("opening state: %w", err)
	}
	return d, nil
}

func (d *DB) open(specs []Spec) error {
	if err := d.checkFormat(); err != nil {
		return err
	}
	known, err := d.catalogue()
	if err != nil {
		return err
	}
	for _, s := range specs {
		if s.Kind == 0 {
			s.Kind = KindKeyValue
		}
		if err := d.addPart(s, known); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(known)) {
		if d.byName[name] == nil {
			d.others = append(d.others, name)
		}
	}
	return d.writeCatalogue()
}

// Parts are the stores, in the order of Options.Stores.
func (d *DB) Parts() []*Part { return d.parts }

// Part is one of the stores by name, nil if there is none.
func (d *DB) Part(store string) *Part { return d.byName[store] }

// Name is the store's.
func (p *Part) Name() string { return p.name }

// Position is the next changelog offset that the engine does not hold; 0 if it
// never held any. It may be called from any goroutine.
func (p *Part) Position() int64 { return p.stored.Load() }

// CommittedPosition is the next changelog offset that neither the engine nor
// the committed changes in memory hold.
func (p *Part) CommittedPosition() int64 { return p.rec.position }

// Lock keeps views out, for a batch of records rather than for one.
func (d *DB) Lock() { d.mu.Lock() }

// Unlock lets them in.
func (d *DB) Unlock() { d.mu.Unlock() }

// Flush makes what is stored survive a crash. It may be called from any
// goroutine.
func (d *DB) Flush() error {
	if d.closed.Load() {
		return ErrClosed
	}
	if err := d.e.Flush(); err != nil {
		return fmt.Errorf("flushing state: %w", err)
	}
	return nil
}

// Close ends the DB and its engine. What the last Persist left out is stored;
// what else is not stored is forgotten, as in [DB.Rewind]. It waits for views and
// for a Write that commits.
func (d *DB) Close() (err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed.Load() {
		return nil
	}
	err = d.storeHeld()
	d.closed.Store(true)
	if d.write != nil {
		_ = d.endWrite() // the next Open reads what came of it
	}
	d.dropStores()
	if err = errors.Join(err, d.e.Close()); err != nil {
		return fmt.Errorf("closing state: %w", err)
	}
	return nil
}
