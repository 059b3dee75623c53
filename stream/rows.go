package stream

import (
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/state"
	"github.com/semelstream/semel/stream/internal/graph"
	"github.com/semelstream/semel/stream/internal/runtime"
)

// A keptStore is a declared key-value store with its types: of a table, of an
// aggregate, of processors. A task opens it once, whoever asks.
type keptStore[K, V any] struct {
	store *graph.Store
	id    int // of the shared opening
	key   codec.Codec[K]
	value codec.Codec[V]
}

// keep declares the store of node's rows.
func keep[K, V any](b *Builder, node *graph.Node, store string, set settings, key codec.Codec[K], value codec.Codec[V]) *keptStore[K, V] {
	s := newStore(b, node, store, set,
		codecFor(b, node, set.keyCodec, key),
		codecFor(b, node, set.valueCodec, value))
	b.autoName(node, store)
	return s
}

// newStore declares a store; without node it is one for processors.
func newStore[K, V any](b *Builder, node *graph.Node, name string, set settings, key codec.Codec[K], value codec.Codec[V]) *keptStore[K, V] {
	switch {
	case set.versioned && node == nil:
		b.problem(nil, "store %q keeps no versions; use Builder.VersionedStore, or leave Versioned out", name)
	case set.versioned:
		b.problem(node, "its store %q keeps no versions; leave Versioned out, and add .Stored(\"name\", stream.Versioned(history)) behind it", name)
	}
	// Openings are shared by node; a store is no node, and takes a number that
	// none has.
	id := -1 - len(b.graph.Stores)
	return &keptStore[K, V]{withCodecs(b.addStore(node, name, graph.KeyValue, set), key, value), id, key, value}
}

// withCodecs notes how the rows of s are encoded, for descriptions.
func withCodecs[K, V any](s *graph.Store, key codec.Codec[K], value codec.Codec[V]) *graph.Store {
	s.Key, s.Value = codec.Name(key), codec.Name(value)
	return s
}

// open gives the store of o's task.
func (s *keptStore[K, V]) open(o *opener) (*state.KV[K, V], error) {
	return share(o, &graph.Node{ID: s.id}, func() (*state.KV[K, V], error) {
		kv, err := state.OpenKV(o.task.DB(), s.store.Name, s.key, s.value)
		if err != nil {
			return nil, fmt.Errorf("opening store %q: %w", s.store.Name, err)
		}
		return kv, nil
	})
}

// newTable is a table whose rows are kept in a store of node's.
func newTable[K, V any](b *Builder, node *graph.Node, kept *keptStore[K, V]) *tableNode[K, V] {
	tells := &telling{node: node}
	return &tableNode[K, V]{
		b: b, node: node, key: kept.key, value: kept.value, store: kept.store,
		reads: []*telling{tells}, tells: tells,
		openRows: func(o *opener) (rows[K, V], error) {
			kv, err := kept.open(o)
			return storedRows[K, V]{kv}, err
		},
	}
}

// storedRows are the rows of a table that has a store.
type storedRows[K, V any] struct{ kv *state.KV[K, V] }

func (r storedRows[K, V]) row(key K) (V, int64, bool, error) { return r.kv.Get(key) }

// touch is for [opener.touchAhead].
func (r storedRows[K, V]) touch(keys [][]byte) { r.kv.Touch(keys) }

// rowsFailed is the failure of reading or writing rows in n. A key that has no
// encoding is the record's fault; anything else is the disk's, which no policy
// about records may let pass.
func (o *opener) rowsFailed(n *graph.Node, err error) error {
	switch f := (*runtime.Failure)(nil); {
	case errors.As(err, &f):
		return f // of something above that works the rows out
	case errors.Is(err, codec.ErrEncode):
		return o.fail(n, runtime.OpEncode, err)
	}
	return &runtime.Failure{Op: opState, Operator: o.name(n), Err: err, Policy: stop}
}

// opState is the step at which a store failed, which is no record's fault.
const opState runtime.Op = "state"

func stop(*runtime.Task, *runtime.Failure, *kgo.Record) runtime.Verdict {
	return runtime.Verdict{Action: runtime.ActFail}
}
