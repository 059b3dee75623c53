package stream

// A paneRow is the row of one pane, or of several that are merged.
type paneRow[A any] struct {
	start int64 // of the pane
	v     A
	ms    int64
	ok    bool // there is one
}

// with is r merged with the row of later panes.
func (r paneRow[A]) with(later paneRow[A], merge func(a, b A) A) paneRow[A] {
	switch {
	case !later.ok:
		return r
	case !r.ok:
		return later
	}
	r.v, r.ms = merge(r.v, later.v), max(r.ms, later.ms)
	return r
}

// A paneFold makes the windows of one key of its panes. From one window to the
// next some panes leave and some enter; so it has the merge of the newer panes,
// and of the older ones what they are together with all older ones behind them:
// a pane is merged twice, however many windows it is in.
type paneFold[A any] struct {
	merge func(a, b A) A
	rows  []paneRow[A] // in order
	tails []paneRow[A] // of rows before mid: each merged with what follows up to mid
	lo    int          // the first row of the window
	mid   int          // the first of the newer ones
	hi    int          // the first behind the window
	newer paneRow[A]
}

// begin takes new rows, to be filled in by add.
func (f *paneFold[A]) begin() {
	clear(f.rows)
	f.rows = f.rows[:0]
	f.again()
}

// again goes back to the first window.
func (f *paneFold[A]) again() {
	clear(f.tails)
	f.tails = f.tails[:0]
	f.lo, f.mid, f.hi, f.newer = 0, 0, 0, paneRow[A]{}
}

func (f *paneFold[A]) add(r paneRow[A]) {
	if r.ok {
		f.rows = append(f.rows, r)
	}
}

// window is the row of the window from start to last, which is its last time.
// Windows are asked for in order.
func (f *paneFold[A]) window(start, last int64) paneRow[A] {
	for ; f.hi < len(f.rows) && f.rows[f.hi].start <= last; f.hi++ {
		f.newer = f.newer.with(f.rows[f.hi], f.merge)
	}
	for f.lo < f.hi && f.rows[f.lo].start < start {
		f.lo++
	}
	if f.lo >= f.mid {
		f.turn()
	}
	if f.lo == f.mid {
		return f.newer
	}
	return f.tails[f.lo].with(f.newer, f.merge)
}

// turn makes all rows of the window older ones.
func (f *paneFold[A]) turn() {
	for len(f.tails) < f.hi {
		f.tails = append(f.tails, paneRow[A]{})
	}
	var tail paneRow[A]
	for i := f.hi - 1; i >= f.lo; i-- {
		tail = f.rows[i].with(tail, f.merge)
		f.tails[i] = tail
	}
	f.mid, f.newer = f.hi, paneRow[A]{}
}
