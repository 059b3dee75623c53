package stream

import (
	"cmp"

	"github.com/tidwall/btree"

	"github.com/semelstream/semel/stream/internal/runtime"
)

// A heldAt is a change that is held back, as the order sees it, or a row that
// goes when it is old.
type heldAt struct {
	since int64  // when the wait began, or the row's time
	key   string // as in the store
	size  int64  // of the row, 0 if nobody limits bytes
}

// A heldOrder is what is held back, by time and key. It lives in memory, and
// goes back with the record that changed it if that fails.
type heldOrder struct {
	tree  *btree.BTreeG[heldAt]
	bytes int64
	task  *runtime.Task
	mark  uint64 // since which undos is
	undos []heldUndo
}

// A heldUndo puts a place of the order back: what was there, if something was.
type heldUndo struct {
	at  heldAt
	had bool
}

func newHeldOrder(o *opener) *heldOrder {
	less := func(a, b heldAt) bool {
		return cmp.Or(cmp.Compare(a.since, b.since), cmp.Compare(a.key, b.key)) < 0
	}
	s := &heldOrder{tree: btree.NewBTreeGOptions(less, btree.Options{NoLocks: true}), task: o.task}
	o.onUndo(s.undo)
	return s
}

func (s *heldOrder) first() (heldAt, bool) { return s.tree.Min() }

func (s *heldOrder) size() (keys int, bytes int64) { return s.tree.Len(), s.bytes }

// put adds a change, or replaces the one of the same time and key.
func (s *heldOrder) put(at heldAt) {
	before, had := s.set(at)
	if !had {
		before = at
	}
	s.log(heldUndo{before, had})
}

func (s *heldOrder) remove(at heldAt) {
	if before, had := s.unset(at); had {
		s.log(heldUndo{before, true})
	}
}

func (s *heldOrder) set(at heldAt) (before heldAt, had bool) {
	before, had = s.tree.Set(at)
	s.bytes += at.size
	if had {
		s.bytes -= before.size
	}
	return before, had
}

func (s *heldOrder) unset(at heldAt) (before heldAt, had bool) {
	if before, had = s.tree.Delete(at); had {
		s.bytes -= before.size
	}
	return before, had
}

func (s *heldOrder) log(u heldUndo) {
	if mark := s.task.Marks(); s.mark != mark {
		clear(s.undos)
		s.mark, s.undos = mark, s.undos[:0]
	}
	s.undos = append(s.undos, u)
}

func (s *heldOrder) undo() {
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
