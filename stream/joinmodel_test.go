package stream

import (
	"cmp"
	"slices"
)

// A JoinModel is the definition of a stream-stream join, by brute force: it
// keeps everything and looks through all of it for each record.
type JoinModel struct {
	Before, After, Grace int64
	Left, Right          bool // passes what finds no partner
	now                  int64
	all                  []*JoinInput
}

// A JoinInput is a record of one side.
type JoinInput struct {
	Right          bool
	Key, Value     string
	Ms             int64
	NoKey, NoValue bool

	paired, alone bool
}

// A JoinResult is a pair or, with one side nil, a record that is sent alone.
type JoinResult struct{ Left, Right *JoinInput }

// Ms is the result's time.
func (r JoinResult) Ms() int64 {
	switch {
	case r.Left == nil:
		return r.Right.Ms
	case r.Right == nil:
		return r.Left.Ms
	}
	return max(r.Left.Ms, r.Right.Ms)
}

// Any is one of the result's records.
func (r JoinResult) Any() *JoinInput {
	if r.Left == nil {
		return r.Right
	}
	return r.Left
}

// Feed is what x leads to: results in order, or that it is dropped.
func (m *JoinModel) Feed(x JoinInput) (out []JoinResult, dropped bool) {
	m.now = max(m.now, x.Ms)
	switch {
	case x.NoValue, x.NoKey && !m.passes(&x):
		return nil, true
	case x.NoKey:
		return []JoinResult{single(&x)}, false
	}
	if x.Ms == m.now {
		out = m.sendAlone()
	}
	if m.closed(&x) {
		return out, true
	}
	for _, y := range m.partners(&x) {
		x.paired, y.paired = true, true
		if x.Right {
			out = append(out, JoinResult{y, &x})
		} else {
			out = append(out, JoinResult{&x, y})
		}
	}
	m.all = append(m.all, &x)
	return out, false
}

func single(x *JoinInput) JoinResult {
	if x.Right {
		return JoinResult{Right: x}
	}
	return JoinResult{Left: x}
}

func (m *JoinModel) passes(x *JoinInput) bool {
	if x.Right {
		return m.Right
	}
	return m.Left
}

// closed: no partner of x can be in time any more, as far as x is concerned.
func (m *JoinModel) closed(x *JoinInput) bool {
	open := m.After
	if x.Right {
		open = m.Before
	}
	return m.now > x.Ms+max(open, 0)+m.Grace
}

func (m *JoinModel) sendAlone() (out []JoinResult) {
	var due []*JoinInput
	for _, x := range m.all {
		if m.passes(x) && !x.paired && !x.alone && m.closed(x) {
			x.alone = true
			due = append(due, x)
		}
	}
	slices.SortStableFunc(due, func(a, b *JoinInput) int {
		return cmp.Or(cmp.Compare(a.Ms, b.Ms), -compareBools(a.Right, b.Right), cmp.Compare(a.Key, b.Key))
	})
	for _, x := range due {
		out = append(out, single(x))
	}
	return out
}

func compareBools(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

func (m *JoinModel) partners(x *JoinInput) (found []*JoinInput) {
	for _, y := range m.all {
		l, r := x, y
		if x.Right {
			l, r = y, x
		}
		if y.Right != x.Right && y.Key == x.Key && !y.alone && l.Ms-m.Before <= r.Ms && r.Ms <= l.Ms+m.After {
			found = append(found, y)
		}
	}
	slices.SortStableFunc(found, func(a, b *JoinInput) int { return cmp.Compare(a.Ms, b.Ms) })
	return found
}
