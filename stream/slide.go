package stream

import "math"

// The rules of sliding windows, apart from stores and values.
//
// A key's windows are [t-apart, t] and [t+1, t+1+apart] for the time t of each
// of its records, both ends included: between two of these starts nothing
// enters or leaves. A window that would begin before 0 is [0, apart]. Windows
// without records are left out.
//
// No record is kept. What a new window holds is read from the row that begins
// last at or before it: the records are the same, as otherwise a row would
// begin in between, or all of them have left, which the row's largest record
// time tells. This needs a row wherever the records change in what is still
// open. Where a record is too late for [t-apart, t], they change at the first
// start that is open, which is no window's: the row there is a base, which
// only later windows are made from, and nobody is told of it.

// A slideRow is a row as the rules see it.
type slideRow struct {
	start int64
	last  int64 // the largest time of its records
	base  bool  // it is no window's
	gone  bool  // the user's function has deleted it; its records still count
}

// A slideStep is what a record does to one window.
type slideStep struct {
	row  slideRow
	from int  // the row that its value is taken from, by index; -1 is none
	own  bool // from is its own row
	adds bool // the record belongs to it
}

// A slide is a kind of sliding windows.
type slide struct{ apart, grace int64 }

// open is the first start of a window that is open at stream time now.
func (s slide) open(now int64) int64 { return now - s.grace - s.apart }

// first is the start of the first window of a record at t: its own, or the
// first that is open. late says that its own is not.
func (s slide) first(t, now int64) (start int64, late bool) {
	start = max(t-s.apart, 0)
	if open := s.open(now); start < open {
		return open, true
	}
	return start, false
}

// span are the starts of the rows that plan looks at.
func (s slide) span(t, now int64) (from, to int64) {
	first, _ := s.first(t, now)
	return max(first-s.apart-1, 0), next(t)
}

// next is the first start behind a record at t; at the end of time there is
// none.
func next(t int64) int64 { return max(t+1, t) }

// missed is for how many windows a record at t comes too late: its own, and
// those that there are.
func (s slide) missed(rows []slideRow, t, now int64) (n int) {
	first, late := s.first(t, now)
	if !late {
		return 0
	}
	n = 1
	for _, r := range rows {
		if own := max(t-s.apart, 0); own < r.start && r.start < first && !r.base {
			n++
		}
	}
	return n
}

// plan is what a record at t, at stream time now, does to the windows that
// begin within span, of which rows are those that there are, in order. The
// record must belong to an open window. The steps are in order of starts.
func (s slide) plan(steps []slideStep, rows []slideRow, t, now int64) []slideStep {
	first, late := s.first(t, now)
	i := 0
	for i < len(rows) && rows[i].start < first {
		i++
	}
	before := i - 1 // the row that tells what is at first
	if i == len(rows) || rows[i].start != first {
		// The start is a window's if the record before has just left there.
		left := before >= 0 && rows[before].last == first-1
		steps = append(steps, s.made(rows, before, slideRow{start: first, last: t, base: late && !left}, true))
	}
	// Where all records have left, the record is alone from there on: the
	// windows that followed them come to be. That happens once at most.
	alone := func(before int) {
		if before < 0 {
			return
		}
		if start := rows[before].last + 1; start > first && start <= t {
			steps = append(steps, slideStep{slideRow{start: start, last: t}, -1, false, true})
		}
	}
	for ; i < len(rows) && rows[i].start <= t; i++ {
		if before >= 0 && rows[before].last+1 < rows[i].start {
			alone(before)
		}
		r := rows[i]
		r.last = max(r.last, t)
		if r.start == first && !late {
			r.base = false
		}
		steps = append(steps, slideStep{r, i, true, true})
		before = i
	}
	alone(before)
	return s.follow(steps, rows[:min(i+1, len(rows))], before, t)
}

// follow adds the window that follows the record at t, if others are in it.
func (s slide) follow(steps []slideStep, rows []slideRow, before int, t int64) []slideStep {
	if t == math.MaxInt64 {
		return steps
	}
	next := slideRow{start: t + 1}
	if last := len(rows) - 1; last >= 0 && rows[last].start == next.start {
		if r := rows[last]; r.base {
			r.base = false
			steps = append(steps, slideStep{r, last, true, false})
		}
		return steps
	}
	if before >= 0 && rows[before].last >= next.start {
		next.last = rows[before].last
		steps = append(steps, s.made(rows, before, next, false))
	}
	return steps
}

// made is the step that makes row from what the row before it tells.
func (s slide) made(rows []slideRow, before int, row slideRow, adds bool) slideStep {
	if before < 0 || rows[before].last < row.start {
		return slideStep{row, -1, false, adds}
	}
	row.last = max(row.last, rows[before].last)
	row.gone = rows[before].gone
	return slideStep{row, before, false, adds}
}

// A row's time in its store is the largest time of its records, as in Kafka
// Streams. That lies within the window: a time before it says that the row is a
// base, or deleted, or both.

func (s slide) time(r slideRow) int64 {
	ms := r.last
	if r.base {
		ms -= s.apart + 1
	}
	if r.gone {
		ms -= 2 * (s.apart + 1)
	}
	return ms
}

// row undoes time.
func (s slide) row(start, ms int64) slideRow {
	r := slideRow{start: start, last: ms}
	if ms < start {
		marks := (start - ms + s.apart) / (s.apart + 1)
		r.last += marks * (s.apart + 1)
		r.base, r.gone = marks&1 != 0, marks&2 != 0
	}
	return r
}

// shows says that there is a row for those who look: one of a window, that has
// a value.
func (r slideRow) shows() bool { return !r.base && !r.gone }
