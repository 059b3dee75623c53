package stream

import (
	"fmt"
	"time"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/state"
	"github.com/semelstream/semel/stream/internal/graph"
	"github.com/semelstream/semel/stream/internal/runtime"
)

// TTL deletes rows that are d old: whose time is d or more before stream time.
// A row's time is the largest of the records that wrote it, and stream time the
// largest of those that have come to a processor with the store, in its task.
// Rows go before the processor sees the record that makes them too old, without
// records none does, and the clock plays no part. A row written by a record that
// is d late goes with the next record.
//
// The deletes are part of the record's transaction and in the changelog, so that
// a store that is restored has forgotten the same. The order of the rows by
// time is kept in memory, with each key twice and some 60 bytes. D is in whole
// milliseconds, at least one.
func TTL(d time.Duration) KeyValueOption {
	return option(func(s *settings) { s.ttl, s.ttlSet = d, true })
}

// checkAging finds what is wrong with the limits of a store for processors.
func checkAging(b *Builder, store string, set settings) {
	switch {
	case set.ttlSet && (set.ttl <= 0 || set.ttl%time.Millisecond != 0):
		b.problem(nil, "store %q has a TTL of %v, which is no whole number of milliseconds from 1 on; give it one", store, set.ttl)
	case set.maxKeys < 0 || set.maxBytes < 0:
		b.problem(nil, "store %q has MaxKeys(%d) or MaxBytes(%d), which is no limit; give at least 1, or leave it out", store, set.maxKeys, set.maxBytes)
	}
}

// aging are the limits of a store that lets its oldest rows go.
type aging struct {
	ttl      int64 // ms; 0 is none
	maxKeys  int   // 0 is none
	maxBytes int64 // 0 is none
}

func agingOf(set settings) aging { return aging{set.ttl.Milliseconds(), set.maxKeys, set.maxBytes} }

// openAging opens what lets the oldest rows of kept go, once for all processors
// in a task; nil if all stay.
func openAging[K, V any](o *opener, kept *keptStore[K, V], limits aging, kv *state.KV[K, V]) (*agingRows[K, V], error) {
	if limits == (aging{}) {
		return nil, nil
	}
	return share(o, &graph.Node{ID: kept.id}, func() (*agingRows[K, V], error) {
		a := &agingRows[K, V]{
			aging: limits, kv: kv, time: o.number(runtime.NoTime),
			order: newHeldOrder(o), key: kept.key, value: kept.value,
		}
		o.keepTime(kept.store.Name+".ttl", func() int64 { return a.time.now }, a.time.set)
		if err := a.restore(); err != nil {
			return nil, fmt.Errorf("reading store %q: %w", kept.store.Name, err)
		}
		return a, nil
	})
}

// agingRows are the rows of such a store. The store has them by key; order has
// them by time, and is made anew from the store whenever the task is opened.
type agingRows[K, V any] struct {
	aging
	kv    *state.KV[K, V]
	time  *number // the largest time of a record that has come
	order *heldOrder
	key   codec.Codec[K]
	value codec.Codec[V]
	buf   []byte // scratch
}

func (a *agingRows[K, V]) restore() error {
	for row, err := range a.kv.All() {
		if err == nil {
			err = a.note(row.Key, row.Value, row.Time.UnixMilli())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (a *agingRows[K, V]) note(key K, v V, ms int64) error {
	at, err := a.place(key, v, ms, a.maxBytes > 0)
	if err == nil {
		a.order.put(at)
	}
	return err
}

// place is where a row stands in the order, with its size if that is wanted.
func (a *agingRows[K, V]) place(key K, v V, ms int64, sized bool) (at heldAt, err error) {
	if a.buf, err = a.key.Append(a.buf[:0], key); err != nil {
		return at, err
	}
	at = heldAt{since: ms, key: string(a.buf)}
	if !sized {
		return at, nil
	}
	a.buf, err = a.value.Append(a.buf, v)
	at.size = int64(len(a.buf))
	return at, err
}

// record takes the time of a record in that a processor is about to see.
func (a *agingRows[K, V]) record(ms int64) error {
	now := a.time.raise(ms)
	for a.ttl > 0 {
		first, ok := a.order.first()
		if !ok || first.since > now-a.ttl {
			break
		}
		if err := a.forget(first, now); err != nil {
			return err
		}
	}
	return nil
}

// put sets the row of key, whose time never falls, and lets the oldest rows go
// if there are too many now: this one too, if it is older than all others.
func (a *agingRows[K, V]) put(key K, v V, ms int64) error {
	ref, _, old, had, err := a.kv.Find(key)
	if err != nil {
		return err
	}
	at, err := a.place(key, v, ms, a.maxBytes > 0)
	if err != nil {
		return err
	}
	if had {
		ms = max(ms, old)
		at.since = ms
		a.order.remove(heldAt{since: old, key: at.key})
	}
	a.kv.Set(ref, v, ms)
	a.order.put(at)
	for a.full() {
		first, _ := a.order.first()
		if err := a.forget(first, ms); err != nil {
			return err
		}
	}
	return nil
}

func (a *agingRows[K, V]) full() bool {
	keys, bytes := a.order.size()
	return a.maxKeys > 0 && keys > a.maxKeys || a.maxBytes > 0 && bytes > a.maxBytes
}

func (a *agingRows[K, V]) delete(key K, ms int64) error {
	ref, v, old, had, err := a.kv.Find(key)
	if err != nil || !had {
		return err
	}
	at, err := a.place(key, v, old, false)
	if err != nil {
		return err
	}
	a.order.remove(at)
	a.kv.Remove(ref, ms)
	return nil
}

// forget deletes the oldest row; ms is the time of the tombstone.
func (a *agingRows[K, V]) forget(first heldAt, ms int64) error {
	key, err := a.key.Decode([]byte(first.key))
	if err != nil {
		return err
	}
	ref, _, _, _, err := a.kv.Find(key)
	if err != nil {
		return err
	}
	a.kv.Remove(ref, ms)
	a.order.remove(first)
	return nil
}

// An agingStore is [keyValue] of a store that lets its oldest rows go.
type agingStore[K, V any] struct {
	reader[K, V]
	rows *agingRows[K, V]
}

func (s *agingStore[K, V]) Put(key K, value V) error {
	return s.judge(s.rows.put(key, value, s.t.ms))
}

func (s *agingStore[K, V]) Delete(key K) error { return s.judge(s.rows.delete(key, s.t.ms)) }
