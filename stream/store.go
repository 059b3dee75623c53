package stream

import (
	"errors"
	"fmt"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/state"
)

// A Store is a declared key-value store; In opens it inside a task, and
// panics in a processor that does not [Uses] it.
type Store[K, V any] struct {
	kept  *keptStore[K, V]
	aging aging
}

// Store declares a key-value store for processors; name it in [Uses]. Rows
// stay until they are deleted, unless [TTL], [MaxKeys] or [MaxBytes] says
// otherwise.
func (b *Builder) Store[K, V any](name string, key codec.Codec[K], value codec.Codec[V], opts ...KeyValueOption) Store[K, V] {
	set := settingsOf(opts)
	if key == nil || value == nil {
		b.problem(nil, "store %q lacks a codec; give Builder.Store one for keys and one for values", name)
	}
	checkAging(b, name, set)
	return Store[K, V]{newStore(b, nil, name, set, key, value), agingOf(set)}
}

// In opens the store for one call. What is written gets the time of the
// record at hand, or that of the timer.
func (s Store[K, V]) In(c Scope) state.KeyValue[K, V] {
	return used[state.KeyValue[K, V]](c, s.kept, "store", s.kept.store.Name)
}

// A reader is a store as processors read it. An error of the disk fails the
// task, whatever the processor makes of it.
type reader[K, V any] struct {
	t    *Task
	kv   *state.KV[K, V]
	scan ranges[K, V] // kv, in one direction
}

type ranges[K, V any] interface {
	Range(from, to K) state.Rows[K, V]
	Prefix(encoded []byte) state.Rows[K, V]
	From(key K) state.Rows[K, V]
	To(key K) state.Rows[K, V]
	All() state.Rows[K, V]
}

func (r *reader[K, V]) Get(key K) (V, bool, error) {
	v, _, ok, err := r.kv.Get(key)
	return v, ok, r.judge(err)
}

func (r *reader[K, V]) Range(from, to K) state.Rows[K, V]      { return r.rows(r.scan.Range(from, to)) }
func (r *reader[K, V]) Prefix(encoded []byte) state.Rows[K, V] { return r.rows(r.scan.Prefix(encoded)) }
func (r *reader[K, V]) From(key K) state.Rows[K, V]            { return r.rows(r.scan.From(key)) }
func (r *reader[K, V]) To(key K) state.Rows[K, V]              { return r.rows(r.scan.To(key)) }
func (r *reader[K, V]) All() state.Rows[K, V]                  { return r.rows(r.scan.All()) }
func (r *reader[K, V]) Len() int64                             { return r.kv.Len() }

// Backward is the same rows, last first.
func (r *reader[K, V]) Backward() state.Reader[K, V] {
	if _, forward := r.scan.(*state.KV[K, V]); !forward {
		return &reader[K, V]{r.t, r.kv, r.kv}
	}
	return &reader[K, V]{r.t, r.kv, r.kv.Backward()}
}

func (r *reader[K, V]) rows(rows state.Rows[K, V]) state.Rows[K, V] { return judged(r.t, rows) }

// judged passes rows on and judges the error at their end.
func judged[K, V any](t *Task, rows state.Rows[K, V]) state.Rows[K, V] {
	return func(yield func(state.Entry[K, V], error) bool) {
		for e, err := range rows {
			if !yield(e, t.judgeRows(err)) {
				return
			}
		}
	}
}

func (r *reader[K, V]) judge(err error) error { return r.t.judgeRows(err) }

// judgeRows keeps an error of the disk. A key or value that has no encoding is
// the processor's to handle.
func (t *Task) judgeRows(err error) error {
	if err == nil || errors.Is(err, codec.ErrEncode) {
		return err
	}
	return t.back(t.o.rowsFailed(t.node, fmt.Errorf("reading or writing rows: %w", err)))
}

// A keyValue is a store as processors read and write it.
type keyValue[K, V any] struct{ reader[K, V] }

func (s *keyValue[K, V]) Put(key K, value V) error { return s.judge(s.kv.Put(key, value, s.t.ms)) }
func (s *keyValue[K, V]) Delete(key K) error       { return s.judge(s.kv.Delete(key, s.t.ms)) }
