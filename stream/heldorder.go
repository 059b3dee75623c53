package stream

import (
	"cmp"

	"github.com/tidwall/btree"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/stream/internal/runtime"
)

// A heldAt is a change that is held back, as the order sees it, or a row that
// goes when it is old.
type heldAt[K any] struct {
	since   int64  // when the wait began, or the row's time
	encoded string // the key as in the store
	key     K
	size    int64 // of the row, 0 if nobody limits bytes
}

// A heldOrder is what is held back, by time and key. It lives in memory, and
// goes back with the record that changed it if that fails.
type heldOrder[K any] struct {
	tree  *btree.BTreeG[heldAt[K]]
	bytes int64
	task  *runtime.Task
	mark  uint64 // since which undos is
	undos []heldUndo[K]
}

// A heldUndo puts a place of the order back: what was there, if something was.
type heldUndo[K any] struct {
	at  heldAt[K]
	had bool
}

func newHeldOrder[K any](o *opener) *heldOrder[K] {
	less := func(a, b heldAt[K]) bool {
		return cmp.Or(cmp.Compare(a.since, b.since), cmp.Compare(a.encoded, b.encoded)) < 0
	}
	s := &heldOrder[K]{tree: btree.NewBTreeGOptions(less, btree.Options{NoLocks: true}), task: o.task}
	o.onUndo(s.undo)
	return s
}

func (s *heldOrder[K]) first() (heldAt[K], bool) { return s.tree.Min() }

func (s *heldOrder[K]) size() (keys int, bytes int64) { return s.tree.Len(), s.bytes }

// put adds a change, or replaces the one of the same time and key.
func (s *heldOrder[K]) put(at heldAt[K]) {
	before, had := s.set(at)
	if !had {
		before = at
	}
	s.log(heldUndo[K]{before, had})
}

func (s *heldOrder[K]) remove(at heldAt[K]) {
	if before, had := s.unset(at); had {
		s.log(heldUndo[K]{before, true})
	}
}

func (s *heldOrder[K]) set(at heldAt[K]) (before heldAt[K], had bool) {
	before, had = s.tree.Set(at)
	s.bytes += at.size
	if had {
		s.bytes -= before.size
	}
	return before, had
}

func (s *heldOrder[K]) unset(at heldAt[K]) (before heldAt[K], had bool) {
	if before, had = s.tree.Delete(at); had {
		s.bytes -= before.size
	}
	return before, had
}

func (s *heldOrder[K]) log(u heldUndo[K]) {
	if mark := s.task.Marks(); s.mark != mark {
		clear(s.undos)
		s.mark, s.undos = mark, s.undos[:0]
	}
	s.undos = append(s.undos, u)
}

func (s *heldOrder[K]) undo() {
	if s.mark != s.task.Marks() {
		return
	}
	for i := len(s.undos) - 1; i >= 0; i-- {
		if u := s.undos[i]; u.had {
			s.set(u.at)
		} else {
			s.unset(u.at)
		}
	}
	clear(s.undos)
	s.undos = s.undos[:0]
}

// A heldSizer encodes keys for the order, and rows where their size matters.
type heldSizer[K, V any] struct {
	key   codec.Codec[K]
	value codec.Codec[V]
	own   func(K) K // makes a key that can be kept
	buf   []byte
}

func newHeldSizer[K, V any](key codec.Codec[K], value codec.Codec[V]) heldSizer[K, V] {
	own := func(key K) K { return key }
	if o, ok := key.(codec.Owner[K]); ok {
		own = o.Own
	}
	return heldSizer[K, V]{key: key, value: value, own: own}
}

func (s *heldSizer[K, V]) of(key K, v V, sized bool) (encoded string, size int64, err error) {
	if s.buf, err = s.key.Append(s.buf[:0], key); err != nil {
		return "", 0, err
	}
	encoded = string(s.buf)
	if !sized {
		return encoded, 0, nil
	}
	if s.buf, err = s.value.Append(s.buf, v); err != nil {
		return "", 0, err
	}
	return encoded, int64(len(s.buf)), nil
}
