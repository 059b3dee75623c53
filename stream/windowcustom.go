package stream

import (
	"cmp"
	"fmt"
	"slices"
)

// customOf is Windows.of for windows that the user cuts.
func (w *Windows) customOf(ms int64, spans []span) ([]span, error) {
	t := timeOf(ms).UTC() // the same everywhere
	for _, c := range w.cut(t) {
		s, err := w.checked(c)
		switch {
		case err != nil:
			return nil, err
		case ms < s.start || ms >= s.end:
			return nil, fmt.Errorf("the window from %v to %v does not hold %v, for which it was given", c.Start.UTC(), c.End.UTC(), t)
		}
		spans = append(spans, s)
	}
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.start, b.start) })
	for i := 1; i < len(spans); i++ {
		if spans[i].start == spans[i-1].start {
			return nil, fmt.Errorf("two windows of %v begin at %v; a window is known by its start", t, timeOf(spans[i].start).UTC())
		}
	}
	return spans, nil
}

// checked is a window of the user's in milliseconds.
func (w *Windows) checked(c Window) (span, error) {
	s := span{c.Start.UnixMilli(), c.End.UnixMilli()}
	switch {
	case !c.Start.Equal(timeOf(s.start)) || !c.End.Equal(timeOf(s.end)):
		return s, fmt.Errorf("the window from %v to %v is not of whole milliseconds", c.Start.UTC(), c.End.UTC())
	case s.start < 0 || s.end <= s.start:
		return s, fmt.Errorf("the window from %v to %v begins before 1970 or ends before it begins", c.Start.UTC(), c.End.UTC())
	case s.end-s.start > w.size:
		return s, fmt.Errorf("the window from %v to %v is longer than Custom's longest, %d ms", c.Start.UTC(), c.End.UTC(), w.size)
	}
	return s, nil
}

// endOf is where the window that begins at start ends.
func (w *Windows) endOf(start int64) (int64, error) {
	if w.kind != custom {
		return w.end(start), nil
	}
	spans, err := w.customOf(start, nil)
	if err != nil {
		return 0, err
	}
	for _, s := range spans {
		if s.start == start {
			return s.end, nil
		}
	}
	return 0, fmt.Errorf("there is no window that begins at %v, though a record was in one", timeOf(start).UTC())
}

// agrees checks that a window is the one that its start is known by.
func (w *Windows) agrees(s span) error {
	if w.kind != custom {
		return nil
	}
	end, err := w.endOf(s.start)
	if err == nil && end != s.end {
		err = fmt.Errorf("the window that begins at %v ends at %v or at %v; a window is known by its start",
			timeOf(s.start).UTC(), timeOf(s.end).UTC(), timeOf(end).UTC())
	}
	return err
}
