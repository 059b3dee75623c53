package stream

import (
	"bytes"

	"github.com/semelstream/semel/codec"
)

// A paneRun is rows of many keys, in order of their encoded keys.
type paneRun[A any] struct {
	keys []byte // encoded, one behind the other
	rows []runRow[A]
}

type runRow[A any] struct {
	end int // of its key
	v   A
	ms  int64
}

// key is the encoded key of the i-th row.
func (r *paneRun[A]) key(i int) []byte {
	if i == 0 {
		return r.keys[:r.rows[0].end]
	}
	return r.keys[r.rows[i-1].end:r.rows[i].end]
}

func (r *paneRun[A]) add(key []byte, v A, ms int64) {
	r.keys = append(r.keys, key...)
	r.rows = append(r.rows, runRow[A]{len(r.keys), v, ms})
}

// addKey is add of a key that is to be encoded.
func addKey[K, A any](r *paneRun[A], c codec.Codec[K], key K, v A, ms int64) (err error) {
	if r.keys, err = c.Append(r.keys, key); err == nil {
		r.rows = append(r.rows, runRow[A]{len(r.keys), v, ms})
	}
	return err
}

// merged fills r with the rows of a and those of the later panes of b.
func (r *paneRun[A]) merged(a, b *paneRun[A], merge func(a, b A) A) {
	r.clear()
	i, j := 0, 0
	for i < len(a.rows) && j < len(b.rows) {
		x, y := &a.rows[i], &b.rows[j]
		switch c := bytes.Compare(a.key(i), b.key(j)); {
		case c < 0:
			r.add(a.key(i), x.v, x.ms)
			i++
		case c > 0:
			r.add(b.key(j), y.v, y.ms)
			j++
		default:
			r.add(a.key(i), merge(x.v, y.v), max(x.ms, y.ms))
			i, j = i+1, j+1
		}
	}
	for ; i < len(a.rows); i++ {
		r.add(a.key(i), a.rows[i].v, a.rows[i].ms)
	}
	for ; j < len(b.rows); j++ {
		r.add(b.key(j), b.rows[j].v, b.rows[j].ms)
	}
}

// clear empties r and keeps its memory.
func (r *paneRun[A]) clear() {
	clear(r.rows)
	r.keys, r.rows = r.keys[:0], r.rows[:0]
}

// paneRuns are runs of neighbouring panes that become one: two by two, the short
// ones first, so that a row is merged no more often than the logarithm of the
// number of panes says.
type paneRuns[A any] struct {
	merge func(a, b A) A
	runs  []*paneRun[A]
	free  []*paneRun[A]
}

// push adds a run behind the others.
func (s *paneRuns[A]) push(r *paneRun[A]) {
	s.settle(2)
	s.runs = append(s.runs, r)
}

// all is one run of all; nil if there is none. It is valid until clear.
func (s *paneRuns[A]) all() *paneRun[A] {
	s.settle(0)
	if len(s.runs) == 0 {
		return nil
	}
	return s.runs[0]
}

// settle merges the last runs where the last one is no shorter than its
// neighbour divided by share; 0 merges all.
func (s *paneRuns[A]) settle(share int) {
	for n := len(s.runs); n > 1; n-- {
		a, b := s.runs[n-2], s.runs[n-1]
		if share > 0 && len(b.rows)*share < len(a.rows) {
			return
		}
		r := s.run()
		r.merged(a, b, s.merge)
		s.runs = append(s.runs[:n-2], r)
		s.release(a)
		s.release(b)
	}
}

func (s *paneRuns[A]) clear() {
	for _, r := range s.runs {
		s.release(r)
	}
	s.runs = s.runs[:0]
}

// run is an empty run.
func (s *paneRuns[A]) run() *paneRun[A] {
	n := len(s.free)
	if n == 0 {
		return &paneRun[A]{}
	}
	r := s.free[n-1]
	s.free = s.free[:n-1]
	return r
}

// release keeps the memory of a run.
func (s *paneRuns[A]) release(r *paneRun[A]) {
	r.clear()
	s.free = append(s.free, r)
}
