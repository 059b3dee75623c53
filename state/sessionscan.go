package state

import (
	"bytes"
	"fmt"
	"iter"
)

// A SessionRow is a row of a [Session].
type SessionRow[K, V any] struct {
	Key        K
	Start, End int64
	Value      V
	Time       int64 // of the record that wrote it
}

// SessionRows is a sequence of rows that ends at the first error.
type SessionRows[K, V any] = iter.Seq2[SessionRow[K, V], error]

// A SessionScan reads the rows of a Session in one direction: in order of
// segment, then encoded key, then end, then start. Rows of a key that another
// key begins with may stand between those of the other. Rows may be changed
// while a scan runs, as in [Scan].
type SessionScan[K, V any] struct {
	s         *Session[K, V]
	backward  bool
	committed bool
}

// Backward is the other direction.
func (c SessionScan[K, V]) Backward() SessionScan[K, V] {
	c.backward = !c.backward
	return c
}

// Overlapping are the sessions of key that end at earliestEnd or later and start
// at latestStart or earlier, in order of end, then start.
func (c SessionScan[K, V]) Overlapping(key K, earliestEnd, latestStart int64) SessionRows[K, V] {
	k, err := c.s.encode(nil, key)
	earliestEnd = max(earliestEnd, 0)
	n := segmentSize + len(k) + sessionTail
	course := inSegments{
		low: addTime(bytes.Clone(k), earliestEnd), high: addTime(bytes.Clone(k), afterAll),
		// What begins with key is of key, unless it is longer.
		accept: func(row []byte) bool { return len(row) == n && sessionStart(row) <= latestStart },
	}
	return c.segments(earliestEnd, course, err)
}

// afterAll is, as bytes, behind every time.
const afterAll = -1 << 63

// Fetch are the sessions of key.
func (c SessionScan[K, V]) Fetch(key K) SessionRows[K, V] { return c.Overlapping(key, 0, maxTime) }

// FetchRange are the sessions of the keys from first to last, both included.
func (c SessionScan[K, V]) FetchRange(first, last K) SessionRows[K, V] {
	f, err := c.s.encode(nil, first)
	if err != nil {
		return c.rows(nowhere, err)
	}
	l, err := c.s.encode(nil, last)
	if err != nil || bytes.Compare(f, l) > 0 {
		return c.rows(nowhere, err)
	}
	keys := c.s.o.p.rec.keys
	return c.segments(0, inSegments{
		low: f, high: highEnd(f, l, maxTime),
		accept: func(row []byte) bool {
			k := keys.inner(row)
			return bytes.Compare(f, k) <= 0 && bytes.Compare(k, l) <= 0
		},
	}, nil)
}

// All are all sessions.
func (c SessionScan[K, V]) All() SessionRows[K, V] { return c.rows(route{}, nil) }

// ByEnd are the sessions that end from from to to, in order of end, then start,
// then encoded key. The store must have its [Spec.ByTime].
func (c SessionScan[K, V]) ByEnd(from, to int64) SessionRows[K, V] {
	p := c.s.o.p
	if p.rec.timeID == 0 {
		return c.rows(nowhere, fmt.Errorf("store %q has no order by time: its Spec lacks ByTime", p.name))
	}
	if from = max(from, 0); from > to {
		return c.rows(nowhere, nil)
	}
	return c.rows(route{span: timeSpan(from, to), byTime: true}, nil)
}

func (c SessionScan[K, V]) segments(earliestEnd int64, course inSegments, err error) SessionRows[K, V] {
	seg := c.s.o.p.rec.keys.segment
	return c.rows(route{span: segmentSpan(earliestEnd/seg, maxTime/seg, course), course: course}, err)
}

func (c SessionScan[K, V]) rows(r route, err error) SessionRows[K, V] {
	r.backward = c.backward
	if c.committed {
		return viewRows(c.s.o, r, err, c.s.row)
	}
	return walk(c.s.o, r, err, c.s.row)
}

func (s *Session[K, V]) scan() SessionScan[K, V] { return SessionScan[K, V]{s: s} }

// Overlapping are the sessions of key that end at earliestEnd or later and start
// at latestStart or earlier, in order of end, then start.
func (s *Session[K, V]) Overlapping(key K, earliestEnd, latestStart int64) SessionRows[K, V] {
	return s.scan().Overlapping(key, earliestEnd, latestStart)
}

// Fetch are the sessions of key.
func (s *Session[K, V]) Fetch(key K) SessionRows[K, V] { return s.scan().Fetch(key) }

// FetchRange are the sessions of the keys from first to last, both included.
func (s *Session[K, V]) FetchRange(first, last K) SessionRows[K, V] {
	return s.scan().FetchRange(first, last)
}

// ByEnd are the sessions that end from from to to, in order of end, then start,
// then encoded key. The store must have its [Spec.ByTime].
func (s *Session[K, V]) ByEnd(from, to int64) SessionRows[K, V] { return s.scan().ByEnd(from, to) }

// All are all sessions.
func (s *Session[K, V]) All() SessionRows[K, V] { return s.scan().All() }

// Backward reads the same rows last first.
func (s *Session[K, V]) Backward() SessionScan[K, V] { return s.scan().Backward() }
