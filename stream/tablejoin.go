package stream

import (
	"github.com/semelstream/semel/stream/internal/runtime"
)

// Join pairs rows with the same key. A change on either side changes the
// result, and a delete on either side deletes it.
func (t Table[K, V]) Join[V2, R any](other Table[K, V2], f func(left V, right V2) R, opts ...Option) Table[K, R] {
	return joinTables(t, other, joinKind{name: "table-join"}, f == nil, opts, func(l V, _ bool, r V2, _ bool) R { return f(l, r) })
}

// LeftJoin is Join with a result for each row of t; ok is false where other
// has none.
func (t Table[K, V]) LeftJoin[V2, R any](other Table[K, V2], f func(left V, right V2, ok bool) R, opts ...Option) Table[K, R] {
	return joinTables(t, other, joinKind{name: "table-left-join", left: true}, f == nil, opts, func(l V, _ bool, r V2, ok bool) R { return f(l, r, ok) })
}

// OuterJoin is Join with a result for each key that either side has; the ok
// of a missing side is false.
func (t Table[K, V]) OuterJoin[V2, R any](other Table[K, V2], f func(left V, lok bool, right V2, rok bool) R, opts ...Option) Table[K, R] {
	return joinTables(t, other, joinKind{name: "table-outer-join", left: true, right: true}, f == nil, opts, f)
}

// A joinKind says which rows need no partner: those of the left side, of the
// right side, of both or of none.
type joinKind struct {
	name        string
	left, right bool
}

// matches says that there is a result of sides that are there or not.
func (k joinKind) matches(left, right bool) bool {
	return left && right || left && k.left || right && k.right
}

func joinTables[K, V, V2, R any](t Table[K, V], other Table[K, V2], kind joinKind, isNil bool, opts []Option, f func(V, bool, V2, bool) R) Table[K, R] {
	left, right, b := t.at(), other.at(), t.n.b
	n := &tableNode[K, R]{b: b, key: left.key}
	n.node = b.add(kind.name, settingsOf(opts), left.node, right.node)
	b.needFunc(n.node, isNil)
	b.copartition(n.node)
	left.needRows(n.node)
	right.needRows(n.node)
	n.reads = append(append(n.reads, left.reads...), right.reads...)

	d := &tableJoinDecl[K, V, V2, R]{n, left, right, kind, f}
	n.openRows = func(o *opener) (rows[K, R], error) { return d.rows(o, left.openRows, right.openRows) }
	n.openTold = func(o *opener) (rows[K, R], error) { return d.rows(o, left.toldRows, right.toldRows) }
	n.askOld = func() { left.needOld(); right.needOld() }
	if kind.left {
		left.needOld() // to know whether it was there
	}
	if kind.right {
		right.needOld()
	}
	if common := commonTables(left, right); len(common) > 0 {
		n.askOld()
		for _, told := range common {
			told.meet(func(o *opener) (meeting, error) { return d.open(o) })
		}
	}
	left.use(func(o *opener) (tablePort[K, V], error) {
		j, err := d.open(o)
		return leftPort[K, V, V2, R]{j}, err
	})
	right.use(func(o *opener) (tablePort[K, V2], error) {
		j, err := d.open(o)
		return rightPort[K, V, V2, R]{j}, err
	})
	return Table[K, R]{n}
}

// A tableJoinDecl is a join as it is declared.
type tableJoinDecl[K, V, V2, R any] struct {
	n     *tableNode[K, R]
	left  *tableNode[K, V]
	right *tableNode[K, V2]
	kind  joinKind
	f     func(V, bool, V2, bool) R
}

// open opens the join once, for both of its sides.
func (d *tableJoinDecl[K, V, V2, R]) open(o *opener) (*tableJoin[K, V, V2, R], error) {
	return share(o, d.n.node, func() (*tableJoin[K, V, V2, R], error) {
		rows, err := d.rows(o, d.left.toldRows, d.right.toldRows)
		if err != nil {
			return nil, err
		}
		out, err := d.n.open(o)
		return &tableJoin[K, V, V2, R]{joinedRows: *rows, out: out}, err
	})
}

func (d *tableJoinDecl[K, V, V2, R]) rows(o *opener, openLeft func(*opener) (rows[K, V], error), openRight func(*opener) (rows[K, V2], error)) (*joinedRows[K, V, V2, R], error) {
	left, err := openLeft(o)
	if err != nil {
		return nil, err
	}
	right, err := openRight(o)
	return &joinedRows[K, V, V2, R]{o, d, left, right}, err
}

// joinedRows works rows of a join out when they are asked for.
type joinedRows[K, V, V2, R any] struct {
	o     *opener
	d     *tableJoinDecl[K, V, V2, R]
	left  rows[K, V]
	right rows[K, V2]
}

func (j *joinedRows[K, V, V2, R]) row(key K) (v R, ms int64, ok bool, err error) {
	l, lms, lok, err := j.left.row(key)
	if err != nil {
		return v, 0, false, err
	}
	r, rms, rok, err := j.right.row(key)
	if err != nil || !j.d.kind.matches(lok, rok) {
		return v, 0, false, err
	}
	return j.apply(l, lok, r, rok), latest(lms, lok, rms, rok), true, nil
}

func (j *joinedRows[K, V, V2, R]) apply(l V, lok bool, r V2, rok bool) R {
	j.o.enter(j.d.n.node)
	return j.d.f(l, lok, r, rok)
}

// latest is the later of two times that are there or not.
func latest(a int64, aok bool, b int64, bok bool) int64 {
	switch {
	case !aok:
		return b
	case !bok:
		return a
	}
	return max(a, b)
}

// A tableJoin is a join at work. It compares rows as it has been told of them,
// not as they may be in the stores already: only then are the values before
// that it sends on those that it sent before.
type tableJoin[K, V, V2, R any] struct {
	joinedRows[K, V, V2, R]
	out tablePort[K, R]

	// Of a change that comes to both sides.
	depth int // of the tables that are telling it
	l     change[K, V]
	r     change[K, V2]
	lmet  bool
	rmet  bool
}

type leftPort[K, V, V2, R any] struct{ *tableJoin[K, V, V2, R] }

func (p leftPort[K, V, V2, R]) change(c change[K, V]) error {
	if c.past {
		p.o.drop(p.d.n.node, oldVersion)
		return nil
	}
	if p.depth > 0 {
		if p.lmet {
			c.old, c.hasOld = p.l.old, p.l.hasOld
		}
		p.tableJoin.l, p.tableJoin.lmet = c, true
		return nil
	}
	row, ms, ok, err := p.right.row(c.key)
	if err != nil {
		return p.o.rowsFailed(p.d.n.node, err)
	}
	if !ok && (!p.d.kind.left || !c.hasOld && !c.hasNew) {
		return nil
	}
	return p.send(c, unchanged(c.key, row, ms, ok), c.headers)
}

type rightPort[K, V, V2, R any] struct{ *tableJoin[K, V, V2, R] }

func (p rightPort[K, V, V2, R]) change(c change[K, V2]) error {
	if c.past {
		p.o.drop(p.d.n.node, oldVersion)
		return nil
	}
	if p.depth > 0 {
		if p.rmet {
			c.old, c.hasOld = p.r.old, p.r.hasOld
		}
		p.tableJoin.r, p.tableJoin.rmet = c, true
		return nil
	}
	row, ms, ok, err := p.left.row(c.key)
	if err != nil {
		return p.o.rowsFailed(p.d.n.node, err)
	}
	if !ok && (!p.d.kind.right || !c.hasOld && !c.hasNew) {
		return nil
	}
	return p.send(unchanged(c.key, row, ms, ok), c, c.headers)
}

// unchanged is a row that stays as it is.
func unchanged[K, V any](key K, v V, ms int64, ok bool) change[K, V] {
	if !ok {
		ms = runtime.NoTime
	}
	return change[K, V]{key: key, old: v, new: v, hasOld: ok, hasNew: ok, ms: ms}
}

// send tells what the changes of both sides are to the result.
func (j *tableJoin[K, V, V2, R]) send(l change[K, V], r change[K, V2], headers Headers) error {
	kind := j.d.kind
	c := change[K, R]{key: l.key, ms: max(l.ms, r.ms), headers: headers}
	if c.hasNew = kind.matches(l.hasNew, r.hasNew); c.hasNew {
		c.new = j.apply(l.new, l.hasNew, r.new, r.hasNew)
	}
	if j.d.n.wantOld {
		if c.hasOld = kind.matches(l.hasOld, r.hasOld); c.hasOld {
			c.old = j.apply(l.old, l.hasOld, r.old, r.hasOld)
		}
		if !c.hasOld && !c.hasNew {
			return nil
		}
	}
	return j.out.change(c)
}

// begin, end and forget make a tableJoin a meeting.
func (j *tableJoin[K, V, V2, R]) begin() { j.depth++ }

func (j *tableJoin[K, V, V2, R]) end() error {
	if j.depth--; j.depth > 0 || !j.lmet && !j.rmet {
		return nil
	}
	l, r, lmet, rmet := j.l, j.r, j.lmet, j.rmet
	j.forget()
	switch {
	case !rmet:
		return leftPort[K, V, V2, R]{j}.change(l)
	case !lmet:
		return rightPort[K, V, V2, R]{j}.change(r)
	case !j.d.kind.matches(l.hasOld, r.hasOld) && !j.d.kind.matches(l.hasNew, r.hasNew):
		return nil
	}
	return j.send(l, r, r.headers)
}

func (j *tableJoin[K, V, V2, R]) forget() {
	var l change[K, V]
	var r change[K, V2]
	j.depth, j.l, j.r, j.lmet, j.rmet = 0, l, r, false, false
}
