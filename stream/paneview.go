package stream

import (
	"bytes"
	"math"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/state"
)

// A paneShape is what the rows of a store by panes do not say themselves.
type paneShape[K, A any] struct {
	w      Windows
	retain int64
	key    codec.Codec[K]
	merge  func(a, b A) A
}

// windows are the rows of windows that begin from from to to, made of those of
// panes: in order of start and encoded key, as those of a store by windows.
func (s *paneShape[K, A]) windows(view *state.WindowView[K, A], panes func(v *state.WindowView[K, A], from, to int64) state.WindowRows[K, A],
	from, to int64) state.WindowRows[K, A] {

	return func(yield func(state.WindowRow[K, A], error) bool) {
		m := paneWindows[K, A]{w: s.w, key: s.key, runs: paneRuns[A]{merge: s.merge}, rows: func(from, to int64) state.WindowRows[K, A] {
			return panes(view, from, to)
		}}
		for start := s.w.onGrid(max(from, 0)); 0 <= start && start <= to; start += s.w.every {
			pane, ok, err := firstStart(m.rows(start, s.w.inside(to)))
			if start = max(start, s.w.first(pane)); err == nil && (!ok || start > to) {
				return
			}
			var run *paneRun[A]
			if err == nil {
				run, err = s.window(&m, view, start)
			}
			if err != nil {
				yield(state.WindowRow[K, A]{}, err)
				return
			}
			if !s.yield(run, start, yield) {
				return
			}
		}
	}
}

// yield passes the rows of a window on.
func (s *paneShape[K, A]) yield(run *paneRun[A], start int64, yield func(state.WindowRow[K, A], error) bool) bool {
	for i, row := range run.rows {
		key, err := s.key.Decode(bytes.Clone(run.key(i)))
		if !yield(state.WindowRow[K, A]{Key: key, Start: start, Value: row.v, Time: row.ms}, err) || err != nil {
			return false
		}
	}
	return true
}

// window is the window that begins at start. Panes expire while others are read,
// so whether the window is kept is asked afterwards: then none of it has gone
// before.
func (s *paneShape[K, A]) window(m *paneWindows[K, A], view *state.WindowView[K, A], start int64) (*paneRun[A], error) {
	panes, _, err := m.panes(start, s.w.inside(start))
	if err != nil {
		return nil, err
	}
	latest, ok, err := firstStart(view.Backward().FetchAll(0, math.MaxInt64-1))
	if err != nil || !ok || start <= s.w.last(latest)-s.retain {
		return &paneRun[A]{}, err
	}
	if run := m.whole(panes); run != nil {
		return run, nil
	}
	return &paneRun[A]{}, nil
}
