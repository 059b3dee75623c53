package stream

import (
	"slices"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/stream/internal/runtime"
)

// pendingPanes are the windows that a transaction has changed and not told of,
// in order of first change. It goes back with the record that changed it if that
// fails.
type pendingPanes[K, A any] struct {
	w     *Windows
	key   codec.Codec[K]
	task  *runtime.Task
	index map[string]int // of keys, by encoded key
	keys  []pendingKey[A]
	order []pendingWindow

	mark  uint64 // since which undos is
	from  int    // how long order was then
	undos []pendingUndo[A]
	buf   []byte
}

type pendingWindow struct {
	key   int // its index
	start int64
}

// A pendingKey is what is pending of one key.
type pendingKey[A any] struct {
	encoded string
	spans   []span       // starts of windows from the first to the last
	sealed  []paneRow[A] // windows that have closed, by their starts: as they were then
}

// A pendingUndo is a key as it was.
type pendingUndo[A any] struct {
	key int
	was pendingKey[A]
}

func newPendingPanes[K, A any](o *opener, w *Windows, key codec.Codec[K]) *pendingPanes[K, A] {
	s := &pendingPanes[K, A]{w: w, key: key, task: o.task, index: map[string]int{}}
	o.onUndo(s.undo)
	return s
}

// find is the index of key, -1 if nothing of it is pending.
func (s *pendingPanes[K, A]) find(key K) (int, error) {
	var err error
	if s.buf, err = s.key.Append(s.buf[:0], key); err != nil {
		return -1, err
	}
	if i, ok := s.index[string(s.buf)]; ok {
		return i, nil
	}
	return -1, nil
}

// add makes the windows of key pending that begin from first to last.
func (s *pendingPanes[K, A]) add(key K, first, last int64) error {
	i, err := s.find(key)
	if err != nil {
		return err
	}
	if i < 0 {
		i = len(s.keys)
		k := pendingKey[A]{encoded: string(s.buf)}
		s.index[k.encoded] = i
		s.keys = append(s.keys, k)
	}
	k := &s.keys[i]
	if slices.ContainsFunc(k.spans, func(c span) bool { return c.start <= first && last <= c.end }) {
		return nil
	}
	s.log(i)
	s.append(i, first, last)
	k.spans = s.joined(k.spans, span{first, last})
	return nil
}

// append puts what is new into the order.
func (s *pendingPanes[K, A]) append(i int, first, last int64) {
	for start := first; 0 <= start && start <= last; start += s.w.every {
		if c := s.keys[i].span(start); c >= 0 {
			start = s.keys[i].spans[c].end
			continue
		}
		s.order = append(s.order, pendingWindow{i, start})
	}
}

// span is the index of the span that a window is in, -1 if it is in none.
func (k *pendingKey[A]) span(start int64) int {
	return slices.IndexFunc(k.spans, func(c span) bool { return c.start <= start && start <= c.end })
}

// joined is spans with one more, in a slice of its own: the old one is kept for
// undo.
func (s *pendingPanes[K, A]) joined(spans []span, add span) []span {
	out := make([]span, 0, len(spans)+1)
	for _, c := range spans {
		if c.end < add.start-s.w.every || c.start > windowEnd(add.end, s.w.every) {
			out = append(out, c)
			continue
		}
		add = span{min(add.start, c.start), max(add.end, c.end)}
	}
	return append(out, add)
}

// open says that a window is pending and not sealed.
func (k *pendingKey[A]) open(start int64) bool {
	return k.span(start) >= 0 && k.sealedAt(start) < 0
}

func (k *pendingKey[A]) sealedAt(start int64) int {
	return slices.IndexFunc(k.sealed, func(r paneRow[A]) bool { return r.start == start })
}

// seal keeps the row of a window as it is.
func (s *pendingPanes[K, A]) seal(i int, row paneRow[A]) {
	s.log(i)
	k := &s.keys[i]
	k.sealed = append(k.sealed[:len(k.sealed):len(k.sealed)], row)
}

func (s *pendingPanes[K, A]) log(i int) {
	if mark := s.task.Marks(); s.mark != mark {
		clear(s.undos)
		s.mark, s.undos, s.from = mark, s.undos[:0], len(s.order)
	}
	s.undos = append(s.undos, pendingUndo[A]{i, s.keys[i]})
}

func (s *pendingPanes[K, A]) undo() {
	if s.mark != s.task.Marks() || len(s.undos) == 0 {
		return
	}
	for _, u := range slices.Backward(s.undos) {
		s.keys[u.key] = u.was
	}
	s.order = s.order[:s.from]
	clear(s.undos)
	s.undos = s.undos[:0]
}

// forget begins a new transaction.
func (s *pendingPanes[K, A]) forget() {
	clear(s.index)
	clear(s.keys)
	clear(s.undos)
	s.keys, s.order, s.undos = s.keys[:0], s.order[:0], s.undos[:0]
}
