package state

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"
)

// A Shared is the rows of a whole topic, all of its partitions, as one
// goroutine reads it and any number of others look it up: a global table. It
// has no transaction. What is applied is committed in Kafka already.
//
// Apply, Rebuild, Settle and Touch come from one goroutine; readers, from any,
// see a row before or after a change and never in between. [ReadShared] makes
// them.
//
// # Rebuilding
//
// When the topic has lost what a partition's position points at, or what came
// since may have been deletes that are gone, the partition is read again from
// its start: [Shared.Rebuild]. Rows stay as they are meanwhile and are written
// over, and at the end [Shared.Settle] removes those of the partition that did
// not come again. Both survive a crash.
//
// A key that is in several partitions has one row, the one that was applied
// last.
type Shared struct {
	e      Engine
	life   sync.RWMutex // held by readers of e, and by Close
	closed bool         // guarded by life
	topic  string

	mu    sync.Mutex // guards what follows
	parts map[int32]sharedPart
	typed any         // the cache that readers share
	cache sharedCache // the same
	bad   error       // corruption that a reader has met

	batch Batch // the writer's
	row   []byte
}

// sharedCache is what a writer asks of the readers' cache.
type sharedCache interface{ forget(key []byte) }

// A sharedPart is how far a partition was read.
type sharedPart struct {
	next  int64  // the position
	gen   uint32 // of the rows that are written now
	swept uint32 // older ones are gone; less than gen while it is rebuilt
	seen  int64  // wall time, ms since 1970, at which the rows were as in the topic
}

// The keys of a Shared's engine, format 1. Numbers are big-endian.
//
//	00 'g'            format uint32, then the topic's name
//	00 'p' partition  next int64, gen uint32, swept uint32, seen int64
//	01 key            partition int32, gen uint32, time int64, value
const (
	sharedVersion    = 1
	sharedPartSize   = 8 + 4 + 4 + 8
	sharedHeaderSize = 4 + 4 + 8
)

var (
	sharedFormatKey  = []byte{0, 'g'}
	sharedPartPrefix = []byte{0, 'p'}
	sharedRowPrefix  = []byte{1}
)

// OpenShared reads what e, which the Shared owns from now on, holds of topic.
// Rows of another topic are deleted. If it fails, e is closed.
func OpenShared(e Engine, topic string) (*Shared, error) {
	s := &Shared{e: e, topic: topic, parts: map[int32]sharedPart{}}
	if err := s.open(); err != nil {
		_ = e.Close() // the first error tells more
		return nil, fmt.Errorf("opening the rows of topic %s: %w", topic, err)
	}
	return s, nil
}

func (s *Shared) open() error {
	var format []byte
	known, err := s.e.Get(sharedFormatKey, func(v []byte) error { format = slices.Clone(v); return nil })
	switch {
	case err != nil:
		return err
	case known && len(format) < 4:
		return fmt.Errorf("%w: a format of %d bytes", ErrCorrupt, len(format))
	case known && binary.BigEndian.Uint32(format) != sharedVersion:
		return fmt.Errorf("%w: shared rows of format %d, this version knows %d", ErrFormat, binary.BigEndian.Uint32(format), sharedVersion)
	case known && string(format[4:]) == s.topic:
		return s.readParts()
	}
	var b Batch
	b.DeleteRange([]byte{0}, []byte{2})
	b.Set(sharedFormatKey, append(binary.BigEndian.AppendUint32(nil, sharedVersion), s.topic...))
	return s.e.Write(&b)
}

func (s *Shared) readParts() error {
	it := s.e.Scan(sharedPartPrefix, prefixEnd(sharedPartPrefix), false)
	for it.Next() {
		k, v := it.Key()[len(sharedPartPrefix):], it.Value()
		if len(k) != 4 || len(v) != sharedPartSize {
			_ = it.Close()
			return fmt.Errorf("%w: a partition's record of %d and %d bytes", ErrCorrupt, len(k), len(v))
		}
		s.parts[int32(binary.BigEndian.Uint32(k))] = sharedPart{
			next: int64(binary.BigEndian.Uint64(v)), gen: binary.BigEndian.Uint32(v[8:]),
			swept: binary.BigEndian.Uint32(v[12:]), seen: int64(binary.BigEndian.Uint64(v[16:])),
		}
	}
	return it.Close()
}

func (b *Batch) setSharedPart(partition int32, p sharedPart) {
	v := binary.BigEndian.AppendUint64(make([]byte, 0, sharedPartSize), uint64(p.next))
	v = binary.BigEndian.AppendUint32(v, p.gen)
	v = binary.BigEndian.AppendUint32(v, p.swept)
	v = binary.BigEndian.AppendUint64(v, uint64(p.seen))
	b.Set(binary.BigEndian.AppendUint32(slices.Clone(sharedPartPrefix), uint32(partition)), v)
}

func (s *Shared) part(partition int32) (p sharedPart, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, ok = s.parts[partition]
	return p, ok
}

// Partitions are those that were ever read, in order.
func (s *Shared) Partitions() []int32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.parts))
}

// Position is the next offset of a partition that was not applied; false if
// none ever was.
func (s *Shared) Position(partition int32) (next int64, ok bool) {
	p, ok := s.part(partition)
	return p.next, ok
}

// Seen is when the partition was last known to be as in the topic, in ms since
// 1970; 0 if never.
func (s *Shared) Seen(partition int32) int64 {
	p, _ := s.part(partition)
	return p.seen
}

// Rebuilding says that the partition is being read again.
func (s *Shared) Rebuilding(partition int32) bool {
	p, _ := s.part(partition)
	return p.swept != p.gen
}

// Apply writes records of a partition and its new position, which is behind the
// last of them, together or not at all. A row without a value is deleted.
func (s *Shared) Apply(partition int32, rows iter.Seq[Row], next int64) error {
	p, _ := s.part(partition)
	b := &s.batch
	defer b.Reset()
	for r := range rows {
		key := append(append(s.row[:0], sharedRowPrefix...), r.Key...)
		n := len(key)
		if r.Value == nil {
			b.Delete(key)
			s.row = key
			continue
		}
		key = binary.BigEndian.AppendUint32(key, uint32(partition))
		key = binary.BigEndian.AppendUint32(key, p.gen)
		key = binary.BigEndian.AppendUint64(key, uint64(r.Time))
		key = append(key, r.Value...)
		b.Set(key[:n], key[n:])
		s.row = key
	}
	p.next = next
	b.setSharedPart(partition, p)
	return s.write(b, map[int32]sharedPart{partition: p})
}

// write writes a batch and lets readers see it.
func (s *Shared) write(b *Batch, parts map[int32]sharedPart) error {
	if err := s.e.Write(b); err != nil {
		return fmt.Errorf("writing rows of topic %s: %w", s.topic, err)
	}
	s.mu.Lock()
	maps.Copy(s.parts, parts)
	cache := s.cache
	s.mu.Unlock()
	if cache == nil {
		return nil
	}
	// A reader that found the old row caches it under the lock under which it is
	// forgotten here: whoever comes first, the old row is gone in the end.
	return b.Each(func(_ OpKind, key, _ []byte) error {
		if key[0] == sharedRowPrefix[0] {
			cache.forget(key[1:])
		}
		return nil
	})
}

// Rebuild begins to read a partition again, from an offset on, or for the first
// time. Now is in ms since 1970.
func (s *Shared) Rebuild(partition int32, from, now int64) error {
	p, known := s.part(partition)
	p.next, p.seen = from, now
	if known {
		p.gen++
	}
	var b Batch
	b.setSharedPart(partition, p)
	return s.write(&b, map[int32]sharedPart{partition: p})
}

// settleRows is how many rows are removed in one write.
const settleRows = 1024

// Settle ends a rebuild: rows of the partition that did not come again go.
func (s *Shared) Settle(partition int32) error {
	p, _ := s.part(partition)
	if p.swept == p.gen {
		return nil
	}
	b := &s.batch
	defer b.Reset()
	it := s.e.Scan(sharedRowPrefix, prefixEnd(sharedRowPrefix), false)
	for it.Next() {
		v := it.Value()
		if len(v) < sharedHeaderSize {
			_ = it.Close()
			return s.failed("reading rows", fmt.Errorf("%w: a row of %d bytes", ErrCorrupt, len(v)))
		}
		if int32(binary.BigEndian.Uint32(v)) != partition || binary.BigEndian.Uint32(v[4:]) == p.gen {
			continue
		}
		b.Delete(it.Key())
		if b.Len() == settleRows {
			if err := s.write(b, nil); err != nil {
				_ = it.Close()
				return err
			}
			b.Reset()
		}
	}
	if err := it.Close(); err != nil {
		return s.failed("reading rows", err)
	}
	p.swept = p.gen
	b.setSharedPart(partition, p)
	return s.write(b, map[int32]sharedPart{partition: p})
}

// Touch notes that all partitions are as in the topic at now, in ms since 1970.
func (s *Shared) Touch(now int64) error {
	var b Batch
	parts := map[int32]sharedPart{}
	for _, n := range s.Partitions() {
		p, _ := s.part(n)
		p.seen = now
		parts[n] = p
		b.setSharedPart(n, p)
	}
	if b.Len() == 0 {
		return nil
	}
	return s.write(&b, parts)
}

// Corrupt is the corruption that a reader or the writer has met, if any. Its
// error there is no ErrCorrupt, since it says nothing about other state.
func (s *Shared) Corrupt() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bad
}

// failed is an error of reading.
func (s *Shared) failed(what string, err error) error {
	if !errors.Is(err, ErrCorrupt) {
		return fmt.Errorf("global table of topic %s: %s: %w", s.topic, what, err)
	}
	s.mu.Lock()
	s.bad = err
	s.mu.Unlock()
	return fmt.Errorf("global table of topic %s: %s: %v", s.topic, what, err)
}

// Flush makes what was applied survive a crash.
func (s *Shared) Flush() error {
	if err := s.e.Flush(); err != nil {
		return fmt.Errorf("flushing rows of topic %s: %w", s.topic, err)
	}
	return nil
}

// Close ends the Shared and its engine. Reads of what is not in the readers'
// cache fail with ErrClosed from then on.
func (s *Shared) Close() error {
	s.life.Lock()
	defer s.life.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	return s.e.Close()
}
