package stream

import (
	"fmt"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/state"
	"github.com/semelstream/semel/stream/internal/graph"
)

// keptWindows is a declared store of rows by key and window, with its types.
type keptWindows[K, V any] struct {
	store *graph.Store
	id    int // of the shared opening
	key   codec.Codec[K]
	value codec.Codec[V]
}

// keepWindows declares the store of node's rows, which are kept for retain
// milliseconds from the start of their window on.
func keepWindows[K, V any](b *Builder, node *graph.Node, store string, set settings, retain int64, key codec.Codec[K], value codec.Codec[V]) *keptWindows[K, V] {
	id := -1 - len(b.graph.Stores) // no node has it
	s := &keptWindows[K, V]{
		store: b.addStore(node, store, graph.Window, set), id: id,
		key:   codecFor(b, node, set.keyCodec, key),
		value: codecFor(b, node, set.valueCodec, value),
	}
	withCodecs(s.store, s.key, s.value).Retain = retain
	b.autoName(node, store)
	return s
}

// open gives the store of o's task.
func (s *keptWindows[K, V]) open(o *opener) (*state.Window[K, V], error) {
	return share(o, &graph.Node{ID: s.id}, func() (*state.Window[K, V], error) {
		w, err := state.OpenWindow(o.task.DB(), s.store.Name, s.key, s.value)
		if err != nil {
			return nil, fmt.Errorf("opening store %q: %w", s.store.Name, err)
		}
		if s.store.NeverEarly { // for the restore, which comes before the operator
			keepExpiry(o, s.store.Name, w)
		}
		return w, nil
	})
}

// newWindowedTable is a table whose rows are kept by key and window.
func newWindowedTable[K, V any](b *Builder, node *graph.Node, kept *keptWindows[K, V], key codec.Codec[Windowed[K]]) *tableNode[Windowed[K], V] {
	return &tableNode[Windowed[K], V]{
		b: b, node: node, key: key, value: kept.value,
		openRows: func(o *opener) (rows[Windowed[K], V], error) {
			w, err := kept.open(o)
			return windowRows[K, V]{w}, err
		},
	}
}

// windowRows are the rows of a table that has a store by key and window.
type windowRows[K, V any] struct{ w *state.Window[K, V] }

func (r windowRows[K, V]) row(key Windowed[K]) (V, int64, bool, error) {
	return r.w.Get(key.Key, key.Start.UnixMilli())
}

// keyOf is the codec of w's windowed keys.
func keyOf[K any](w *Windows, key codec.Codec[K]) codec.Codec[Windowed[K]] {
	c := windowKey[K]{key, w.size}
	if w.kind == custom {
		return customKey[K]{c, w.endOf}
	}
	return c
}
