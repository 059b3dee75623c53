package state

import (
	"bytes"
	"fmt"
	"iter"
)

// A WindowRow is a row of a [Window].
type WindowRow[K, V any] struct {
	Key   K
	Start int64
	Value V
	Time  int64 // of the record that wrote it
}

// WindowRows is a sequence of rows that ends at the first error.
type WindowRows[K, V any] = iter.Seq2[WindowRow[K, V], error]

// A WindowScan reads the rows of a Window in one direction. Both ends of
// stretches of keys and of time belong to them. Rows may be changed while a
// scan runs, as in [Scan].
//
// A KindWindow or KindWindowOnce store is in order of start, then encoded key. A
// KindWindowByKey store is in order of segment, then encoded key, then start,
// then the order in which rows were added; rows of a key that another key begins
// with may stand between those of the other.
type WindowScan[K, V any] struct {
	s         *Window[K, V]
	backward  bool
	committed bool
}

// Backward is the other direction.
func (c WindowScan[K, V]) Backward() WindowScan[K, V] {
	c.backward = !c.backward
	return c
}

// Fetch are the rows of key that start from from to to.
func (c WindowScan[K, V]) Fetch(key K, from, to int64) WindowRows[K, V] {
	k, err := c.s.encode(nil, key)
	if err == nil && c.s.o.p.rec.keys.kind == KindWindowByKey {
		return c.rows(c.oneKey(k, from, to), nil)
	}
	return c.rows(c.keyRange(k, k, from, to), err)
}

// FetchRange are the rows of the keys from first to last that start from from
// to to.
func (c WindowScan[K, V]) FetchRange(first, last K, from, to int64) WindowRows[K, V] {
	f, err := c.s.encode(nil, first)
	if err != nil {
		return c.rows(route{}, err)
	}
	l, err := c.s.encode(nil, last)
	return c.rows(c.keyRange(f, l, from, to), err)
}

// FetchAll are the rows that start from from to to.
func (c WindowScan[K, V]) FetchAll(from, to int64) WindowRows[K, V] {
	if c.s.o.p.rec.keys.kind.byStart() {
		return c.ByStart(from, to)
	}
	if from = max(from, 0); from > to {
		return c.rows(nowhere, nil)
	}
	keys := c.s.o.p.rec.keys
	return c.rows(route{
		span: timeSpan(from/keys.segment, to/keys.segment),
		course: accepting(func(key []byte) bool {
			at := keys.time(key)
			return from <= at && at <= to
		}),
	}, nil)
}

// All are all rows.
func (c WindowScan[K, V]) All() WindowRows[K, V] { return c.FetchAll(0, maxTime) }

// ByStart are the rows that start from from to to, in order of start, then
// encoded key, then the order in which they were added. A KindWindowByKey store
// must have its [Spec.ByTime].
func (c WindowScan[K, V]) ByStart(from, to int64) WindowRows[K, V] {
	if from = max(from, 0); from > to {
		return c.rows(nowhere, nil)
	}
	p := c.s.o.p
	r := route{span: timeSpan(from, to), byTime: p.rec.keys.kind == KindWindowByKey}
	if r.byTime && p.rec.timeID == 0 {
		return c.rows(nowhere, fmt.Errorf("store %q has no order by time: its Spec lacks ByTime", p.name))
	}
	return c.rows(r, nil)
}

// nowhere is the route of no row.
var nowhere = route{span: span{from: []byte{}, to: []byte{}}}

// timeSpan are the keys that begin with a number from first to last.
func timeSpan(first, last int64) span {
	return span{from: addTime(nil, first), to: addTime(nil, last+1)} // behind the last of all is a number too
}

// oneKey is the route of one key in segments.
func (c WindowScan[K, V]) oneKey(key []byte, from, to int64) route {
	if from = max(from, 0); from > to {
		return nowhere
	}
	n := segmentSize + len(key) + windowTail
	return c.segments(from, to, inSegments{
		low: addTime(bytes.Clone(key), from), high: addTime(bytes.Clone(key), to+1),
		// What begins with key is of key, unless it is longer.
		accept: func(row []byte) bool { return len(row) == n },
	})
}

// keyRange is the route of several keys.
func (c WindowScan[K, V]) keyRange(first, last []byte, from, to int64) route {
	if from = max(from, 0); from > to || bytes.Compare(first, last) > 0 {
		return nowhere
	}
	keys := c.s.o.p.rec.keys
	if keys.kind.byStart() {
		return route{
			span:   span{from: append(addTime(nil, from), first...), to: append(append(addTime(nil, to), last...), 0)},
			course: byStart{first, last},
		}
	}
	return c.segments(from, to, inSegments{
		low: first, high: highEnd(first, last, to),
		accept: func(row []byte) bool {
			k, at := keys.inner(row), keys.time(row)
			return bytes.Compare(first, k) <= 0 && bytes.Compare(k, last) <= 0 && from <= at && at <= to
		},
	})
}

func (c WindowScan[K, V]) segments(from, to int64, course inSegments) route {
	seg := c.s.o.p.rec.keys.segment
	return route{span: segmentSpan(from/seg, to/seg, course), course: course}
}

// segmentSpan is from course's low end in the first segment to its high end in
// the last.
func segmentSpan(first, last int64, course inSegments) span {
	return span{from: append(addTime(nil, first), course.low...), to: append(addTime(nil, last), course.high...)}
}

// highEnd is a key behind all of those from first to last with times up to to.
// A key may begin another and come behind it all the same, when its time is
// larger than what the other goes on with; such a key is the last one cut off.
func highEnd(first, last []byte, to int64) (high []byte) {
	for n := len(last); n >= 0 && bytes.Compare(last[:n], first) >= 0; n-- {
		if end := addTime(bytes.Clone(last[:n]), to+1); bytes.Compare(end, high) > 0 {
			high = end
		}
	}
	return high
}

func (c WindowScan[K, V]) rows(r route, err error) WindowRows[K, V] {
	r.backward = c.backward
	if c.committed {
		return viewRows(c.s.o, r, err, c.s.row)
	}
	return walk(c.s.o, r, err, c.s.row)
}

func (s *Window[K, V]) scan() WindowScan[K, V] { return WindowScan[K, V]{s: s} }

// Fetch are the rows of key that start from from to to. See [WindowScan].
func (s *Window[K, V]) Fetch(key K, from, to int64) WindowRows[K, V] {
	return s.scan().Fetch(key, from, to)
}

// FetchRange are the rows of the keys from first to last that start from from
// to to.
func (s *Window[K, V]) FetchRange(first, last K, from, to int64) WindowRows[K, V] {
	return s.scan().FetchRange(first, last, from, to)
}

// FetchAll are the rows that start from from to to.
func (s *Window[K, V]) FetchAll(from, to int64) WindowRows[K, V] { return s.scan().FetchAll(from, to) }

// ByStart are the rows that start from from to to, in order of start, then
// encoded key. A KindWindowByKey store must have its [Spec.ByTime].
func (s *Window[K, V]) ByStart(from, to int64) WindowRows[K, V] { return s.scan().ByStart(from, to) }

// All are all rows.
func (s *Window[K, V]) All() WindowRows[K, V] { return s.scan().All() }

// Backward reads the same rows last first.
func (s *Window[K, V]) Backward() WindowScan[K, V] { return s.scan().Backward() }
