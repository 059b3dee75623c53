package stream

import (
	"fmt"
	"slices"

	"github.com/semelstream/semel/codec"
)

// waitingRows counts the rows that wait to be final, where there is a limit to
// them. It does nothing if it is nil.
type waitingRows[K, A any] struct {
	key   codec.Codec[K]
	value codec.Codec[A]
	keys  *number // unknown until they are counted
	bytes *number // stays 0 if no limit is in bytes
	sized bool
	buf   []byte
	err   error // of an encoding, until count returns it
}

// unknown is the number of rows when nobody has counted them since the task was
// opened.
const unknown = -1

func newWaiting[K, A any](o *opener, limits []finalLimit, key codec.Codec[K], value codec.Codec[A]) *waitingRows[K, A] {
	sized := slices.ContainsFunc(limits, func(l finalLimit) bool { return l.bytes > 0 })
	return &waitingRows[K, A]{key: key, value: value, keys: o.number(unknown), bytes: o.number(0), sized: sized}
}

// waiting is a row's value, if there is a row.
type waiting[A any] struct {
	v  A
	ok bool
}

// changed notes that a row changed.
func (w *waitingRows[K, A]) changed(key K, from, to waiting[A]) error {
	if w == nil || w.keys.now == unknown {
		return nil
	}
	return w.count(key, from, to)
}

func (w *waitingRows[K, A]) count(key K, from, to waiting[A]) error {
	keys, bytes := w.keys.now, w.bytes.now
	if from.ok {
		keys, bytes = keys-1, bytes-w.size(key, from.v)
	}
	if to.ok {
		keys, bytes = keys+1, bytes+w.size(key, to.v)
	}
	w.keys.set(keys)
	w.bytes.set(bytes)
	err := w.err
	w.err = nil
	return err
}

// size is a row's size in the changelog, as far as it is the user's.
func (w *waitingRows[K, A]) size(key K, v A) int64 {
	if !w.sized || w.err != nil {
		return 0
	}
	if w.buf, w.err = w.key.Append(w.buf[:0], key); w.err == nil {
		w.buf, w.err = w.value.Append(w.buf, v)
	}
	return int64(len(w.buf))
}

// within is an error if l is exceeded.
func (w *waitingRows[K, A]) within(l finalLimit) error {
	switch keys, bytes := w.keys.now, w.bytes.now; {
	case l.keys > 0 && keys > int64(l.keys):
		return fmt.Errorf("%d rows wait for their windows to close, MaxKeys allows %d; raise it, or leave it out", keys, l.keys)
	case l.bytes > 0 && bytes > l.bytes:
		return fmt.Errorf("%d bytes of rows wait for their windows to close, MaxBytes allows %d; raise it, or leave it out", bytes, l.bytes)
	}
	return nil
}
