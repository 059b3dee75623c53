package state

import (
	"encoding/binary"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/semelstream/semel/codec"
)

// A SharedReader reads the typed rows of a [Shared]. All readers of one Shared
// have a cache of decoded rows in common. A reader belongs to one goroutine.
//
// A value belongs to the cache: to change what is inside it is to change it for
// everybody.
type SharedReader[K, V any] struct {
	c        *sharedRows[K, V]
	backward bool
	kbuf     []byte
}

// A sharedRows is the cache.
type sharedRows[K, V any] struct {
	s      *Shared
	key    codec.Codec[K]
	value  codec.Codec[V]
	most   atomic.Int64 // bytes of a shard
	shards [sharedShards]sharedShard[V]
}

const (
	sharedShards     = 32
	sharedCacheBytes = 16 << 20
	sharedRowBytes   = 64 // of a cached row besides its key and value
)

type sharedShard[V any] struct {
	mu    sync.RWMutex
	rows  map[string]sharedRow[V]
	bytes int64
}

// A sharedRow is a row, or that there is none.
type sharedRow[V any] struct {
	v    V
	time int64
	size int64
	ok   bool
}

// ReadShared makes a reader. The first one of a Shared says what the codecs
// are; later ones must be of the same types.
func ReadShared[K, V any](s *Shared, key codec.Codec[K], value codec.Codec[V]) (*SharedReader[K, V], error) {
	s.mu.Lock()
	if s.typed == nil {
		c := &sharedRows[K, V]{s: s, key: key, value: value}
		c.most.Store(sharedCacheBytes / sharedShards)
		for i := range c.shards {
			c.shards[i].rows = map[string]sharedRow[V]{}
		}
		s.typed, s.cache = c, c
	}
	s.mu.Unlock()
	return SharedOf[K, V](s)
}

// SharedOf makes a reader of a Shared that was read before as of these types.
func SharedOf[K, V any](s *Shared) (*SharedReader[K, V], error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, ok := s.typed.(*sharedRows[K, V])
	if !ok {
		return nil, fmt.Errorf("the rows of topic %s are read as %T and not as %T", s.topic, s.typed, c)
	}
	return &SharedReader[K, V]{c: c}, nil
}

// CacheBytes bounds what the readers' cache keeps; the default is 16 MiB.
func (r *SharedReader[K, V]) CacheBytes(n int64) { r.c.most.Store(max(n/sharedShards, 1)) }

// Get returns the row of key and its time.
func (r *SharedReader[K, V]) Get(key K) (v V, ms int64, ok bool, err error) {
	enc, err := r.c.key.Append(r.kbuf[:0], key)
	if err != nil {
		return v, 0, false, r.c.failed("encoding a key", err)
	}
	r.kbuf = enc
	row, err := r.c.get(enc)
	return row.v, row.time, row.ok, err
}

func (c *sharedRows[K, V]) shard(key []byte) *sharedShard[V] {
	return &c.shards[hashKey(key)%sharedShards]
}

func (c *sharedRows[K, V]) get(key []byte) (sharedRow[V], error) {
	sh := c.shard(key)
	sh.mu.RLock()
	row, ok := sh.rows[string(key)]
	sh.mu.RUnlock()
	if ok {
		return row, nil
	}
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if row, ok := sh.rows[string(key)]; ok {
		return row, nil
	}
	row, err := c.load(key)
	if err == nil {
		sh.add(key, row, c.most.Load())
	}
	return row, err
}

// add keeps a row, in the place of any others if there are too many.
func (sh *sharedShard[V]) add(key []byte, row sharedRow[V], most int64) {
	sh.rows[string(key)] = row
	sh.bytes += row.size
	for k, old := range sh.rows {
		if sh.bytes <= most {
			return
		}
		if k != string(key) || len(sh.rows) == 1 {
			sh.bytes -= old.size
			delete(sh.rows, k)
		}
	}
}

// forget implements sharedCache.
func (c *sharedRows[K, V]) forget(key []byte) {
	sh := c.shard(key)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if row, ok := sh.rows[string(key)]; ok {
		sh.bytes -= row.size
		delete(sh.rows, string(key))
	}
}

// load reads a row from the engine.
func (c *sharedRows[K, V]) load(key []byte) (row sharedRow[V], err error) {
	done, err := c.s.enter()
	if err != nil {
		return row, err
	}
	defer done()
	row.size = int64(len(key) + sharedRowBytes)
	row.ok, err = c.s.e.Get(append(append(make([]byte, 0, len(key)+1), sharedRowPrefix...), key...), func(b []byte) error {
		row.size += int64(len(b))
		row.v, row.time, err = c.decode(b)
		return err
	})
	if err != nil {
		return sharedRow[V]{}, c.failed("reading a row", err)
	}
	return row, nil
}

// decode decodes a row's value from bytes that are never used again, since a
// codec may return a view of them.
func (c *sharedRows[K, V]) decode(b []byte) (v V, ms int64, err error) {
	if len(b) < sharedHeaderSize {
		return v, 0, fmt.Errorf("%w: a row of %d bytes", ErrCorrupt, len(b))
	}
	ms = int64(binary.BigEndian.Uint64(b[8:]))
	v, err = c.value.Decode(append([]byte{}, b[sharedHeaderSize:]...))
	return v, ms, err
}

func (c *sharedRows[K, V]) failed(what string, err error) error { return c.s.failed(what, err) }

// enter keeps Close out until done is called.
func (s *Shared) enter() (done func(), err error) {
	s.life.RLock()
	if s.closed {
		s.life.RUnlock()
		return nil, ErrClosed
	}
	return s.life.RUnlock, nil
}

// Backward reads the same rows last first.
func (r *SharedReader[K, V]) Backward() *SharedReader[K, V] {
	return &SharedReader[K, V]{c: r.c, backward: !r.backward}
}

// All are all rows. A walk over rows is no snapshot.
func (r *SharedReader[K, V]) All() Rows[K, V] { return r.rows(nil, nil, nil) }

// Range are the rows from from to to, both included.
func (r *SharedReader[K, V]) Range(from, to K) Rows[K, V] {
	lo, err := r.bound(from)
	if err != nil {
		return r.rows(nil, nil, err)
	}
	hi, err := r.bound(to)
	return r.rows(lo, append(hi, 0), err)
}

// From are the rows from key on.
func (r *SharedReader[K, V]) From(key K) Rows[K, V] {
	lo, err := r.bound(key)
	return r.rows(lo, nil, err)
}

// To are the rows up to key, which is included.
func (r *SharedReader[K, V]) To(key K) Rows[K, V] {
	hi, err := r.bound(key)
	return r.rows(nil, append(hi, 0), err)
}

// Prefix are the rows whose encoded keys begin so.
func (r *SharedReader[K, V]) Prefix(encoded []byte) Rows[K, V] {
	lo := append(append([]byte{}, sharedRowPrefix...), encoded...)
	return r.rows(lo, prefixEnd(lo), nil)
}

func (r *SharedReader[K, V]) bound(key K) ([]byte, error) {
	b, err := r.c.key.Append(append([]byte{}, sharedRowPrefix...), key)
	if err != nil {
		return nil, r.c.failed("encoding a key", err)
	}
	return b, nil
}

// rows reads between two keys of the engine; nil is open.
func (r *SharedReader[K, V]) rows(from, to []byte, err error) Rows[K, V] {
	if from == nil {
		from = sharedRowPrefix
	}
	if to == nil {
		to = prefixEnd(sharedRowPrefix)
	}
	return func(yield func(Entry[K, V], error) bool) {
		if err != nil {
			yield(Entry[K, V]{}, err)
			return
		}
		var chunk []Entry[K, V]
		for from, to, more := from, to, true; more; {
			var err error
			if chunk, from, to, more, err = r.chunk(chunk[:0], from, to); err != nil {
				yield(Entry[K, V]{}, err)
				return
			}
			for _, e := range chunk {
				if !yield(e, nil) {
					return
				}
			}
		}
	}
}

// chunk reads the first rows of a range and returns what of it is left, so that
// Close does not wait for whoever walks.
func (r *SharedReader[K, V]) chunk(out []Entry[K, V], from, to []byte) (_ []Entry[K, V], lo, hi []byte, more bool, err error) {
	done, err := r.c.s.enter()
	if err != nil {
		return out, nil, nil, false, err
	}
	defer done()
	it := r.c.s.e.Scan(from, to, r.backward)
	defer func() {
		if cerr := it.Close(); err == nil && cerr != nil {
			err = r.c.failed("reading rows", cerr)
		}
	}()
	var last []byte
	for len(out) < viewChunk {
		if !it.Next() {
			return out, nil, nil, false, nil
		}
		last = append(last[:0], it.Key()...)
		var e Entry[K, V]
		if e.Key, err = r.c.key.Decode(append([]byte{}, it.Key()[1:]...)); err != nil {
			return out, nil, nil, false, r.c.failed("decoding a key", err)
		}
		var ms int64
		if e.Value, ms, err = r.c.decode(it.Value()); err != nil {
			return out, nil, nil, false, r.c.failed("decoding a row", err)
		}
		e.Time = time.UnixMilli(ms)
		out = append(out, e)
	}
	if r.backward {
		return out, from, last, true, nil
	}
	return out, append(last, 0), to, true, nil
}

// Len is how many rows there are. It counts them.
func (r *SharedReader[K, V]) Len() int64 {
	s := r.c.s
	done, err := s.enter()
	if err != nil {
		return 0 // the next read of a row has the error
	}
	defer done()
	n := int64(0)
	it := s.e.Scan(sharedRowPrefix, prefixEnd(sharedRowPrefix), false)
	for it.Next() {
		n++
	}
	if it.Close() != nil {
		return 0
	}
	return n
}
