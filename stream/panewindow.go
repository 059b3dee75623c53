package stream

import (
	"bytes"
	"slices"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/state"
)

// keptTails is how many rows of merged panes are kept in memory from one window
// to the next, in a task. Where there are more, each window reads all of its
// panes.
const keptTails = 1 << 20

// A paneWindows makes windows of all keys, one after the other, of the panes in a
// store. As a [paneFold] it keeps what the older panes are together with all that
// follow them, and the newer ones as one; so a row is read and merged twice,
// however many windows it is in.
//
// Rows may change in panes that were read. Their keys are noted, and asked for
// anew.
type paneWindows[K, A any] struct {
	w     Windows
	key   codec.Codec[K]
	runs  paneRuns[A]
	rows  func(from, to int64) state.WindowRows[K, A]
	get   func(key K, start int64) (A, int64, bool, error)
	tails []paneTail[A] // oldest first
	newer *paneRun[A]   // of panes behind the tails
	read  int64         // panes up to this time were read
	dirty map[string]bool

	fold         paneFold[A] // scratch, as are those that follow
	out, patched paneRun[A]
}

// A paneTail is a pane together with those behind it.
type paneTail[A any] struct {
	start int64
	run   *paneRun[A]
}

// changed notes that a row of a pane has changed.
func (s *paneWindows[K, A]) changed(key K, pane int64) error {
	if len(s.tails) == 0 || pane > s.read {
		return nil
	}
	enc, err := s.key.Append(nil, key)
	if err == nil {
		s.dirty[string(enc)] = true
	}
	return err
}

// window is the window that begins at start, which is later than the one before.
func (s *paneWindows[K, A]) window(start int64) (*paneRun[A], error) {
	for len(s.tails) > 0 && s.tails[0].start < start {
		s.runs.release(s.tails[0].run)
		s.tails = s.tails[1:]
	}
	if len(s.tails) == 0 || len(s.dirty) > len(s.tails[0].run.rows)/4 {
		s.drop()
		return s.turn(start)
	}
	if err := s.readOn(s.w.inside(start)); err != nil {
		return nil, err
	}
	s.out.merged(s.tails[0].run, s.newer, s.runs.merge)
	if len(s.dirty) == 0 {
		return &s.out, nil
	}
	return &s.patched, s.patch(start)
}

// drop forgets what is kept.
func (s *paneWindows[K, A]) drop() {
	for _, t := range s.tails {
		s.runs.release(t.run)
	}
	if s.newer != nil {
		s.runs.release(s.newer)
	}
	s.tails, s.newer = nil, nil
	s.runs.clear()
	clear(s.dirty)
}

// turn reads all panes of a window and makes tails of them.
func (s *paneWindows[K, A]) turn(start int64) (*paneRun[A], error) {
	panes, n, err := s.panes(start, s.w.inside(start))
	if err != nil {
		return nil, err
	}
	if n > keptTails {
		return s.whole(panes), nil
	}
	for i := len(panes) - 2; i >= 0; i-- {
		run := s.runs.run()
		run.merged(panes[i].run, panes[i+1].run, s.runs.merge)
		s.runs.release(panes[i].run)
		panes[i].run = run
	}
	s.tails, s.newer, s.read = panes, s.runs.run(), s.w.inside(start)
	if len(panes) == 0 {
		return s.newer, nil
	}
	return panes[0].run, nil
}

// whole merges the panes of a window and keeps nothing.
func (s *paneWindows[K, A]) whole(panes []paneTail[A]) *paneRun[A] {
	s.runs.clear()
	for _, p := range panes {
		s.runs.push(p.run)
	}
	return s.runs.all()
}

// panes are the runs of the panes from from to to, and how many rows they have
// that are kept as tails.
func (s *paneWindows[K, A]) panes(from, to int64) (panes []paneTail[A], n int, err error) {
	for row, err := range s.rows(from, to) {
		if last := len(panes) - 1; err == nil && (last < 0 || panes[last].start != row.Start) {
			panes = append(panes, paneTail[A]{row.Start, s.runs.run()})
		}
		if err == nil {
			err = addKey(panes[len(panes)-1].run, s.key, row.Key, row.Value, row.Time)
		}
		if err != nil {
			return nil, 0, err
		}
	}
	for i := range panes {
		n += (i + 1) * len(panes[i].run.rows) // a tail has at most these
	}
	return panes, n, nil
}

// readOn adds the panes up to to to the newer ones.
func (s *paneWindows[K, A]) readOn(to int64) error {
	panes, _, err := s.panes(s.read+1, to)
	if err != nil {
		return err
	}
	for _, p := range panes {
		run := s.runs.run()
		run.merged(s.newer, p.run, s.runs.merge)
		s.runs.release(s.newer)
		s.runs.release(p.run)
		s.newer = run
	}
	s.read = to
	return nil
}

// patch puts the rows of dirty keys right.
func (s *paneWindows[K, A]) patch(start int64) error {
	var dirty []string
	for k := range s.dirty {
		dirty = append(dirty, k)
	}
	slices.Sort(dirty)
	s.patched.clear()
	i := 0
	for _, k := range dirty {
		for ; i < len(s.out.rows) && bytes.Compare(s.out.key(i), []byte(k)) < 0; i++ {
			s.patched.add(s.out.key(i), s.out.rows[i].v, s.out.rows[i].ms)
		}
		if i < len(s.out.rows) && string(s.out.key(i)) == k {
			i++
		}
		row, err := s.one([]byte(k), start)
		if err != nil {
			return err
		}
		if row.ok {
			s.patched.add([]byte(k), row.v, row.ms)
		}
	}
	for ; i < len(s.out.rows); i++ {
		s.patched.add(s.out.key(i), s.out.rows[i].v, s.out.rows[i].ms)
	}
	return nil
}

// one is the window of one key.
func (s *paneWindows[K, A]) one(encoded []byte, start int64) (row paneRow[A], err error) {
	key, err := s.key.Decode(encoded)
	if err != nil {
		return row, err
	}
	s.fold.merge = s.runs.merge
	s.fold.begin()
	for pane := start; 0 <= pane && pane <= s.w.inside(start); pane = s.w.nextPane(pane) {
		v, ms, ok, err := s.get(key, pane)
		if err != nil {
			return row, err
		}
		s.fold.add(paneRow[A]{pane, v, ms, ok})
	}
	return s.fold.window(start, s.w.inside(start)), nil
}
