package stream

import (
	"fmt"
	"math"
	"time"
)

// Windows says how time is cut. A record later than grace after the end of a
// window no longer counts in it; grace is always the last argument, and 0 is
// an answer.
//
// Durations are whole milliseconds. Windows are cut out of time since 1970-01-01
// UTC, and none begins earlier.
type Windows struct {
	kind  windowKind
	size  int64 // ms; the longest of custom windows, the distance of sliding ones
	every int64 // ms between starts
	start int64 // of the unlimited window
	grace int64
	cut   func(time.Time) []Window
	wrong string // what is wrong with it, and what to write
}

type windowKind uint8

const (
	noWindows windowKind = iota // the zero Windows
	aligned                     // tumbling and hopping
	sliding
	unlimited
	custom
)

// text says what a window's start means, for descriptions.
func (w *Windows) text() string {
	ms := func(n int64) string { return (time.Duration(n) * time.Millisecond).String() }
	switch {
	case w.kind == aligned && w.every == w.size:
		return "tumbling windows of " + ms(w.size)
	case w.kind == aligned:
		return "hopping windows of " + ms(w.size) + " every " + ms(w.every)
	case w.kind == sliding:
		return "sliding windows of " + ms(w.size)
	case w.kind == unlimited:
		return "one window from " + time.UnixMilli(w.start).UTC().Format(time.RFC3339Nano)
	case w.kind == custom:
		return "custom windows"
	}
	return ""
}

// Tumbling windows are [start, start+size), side by side from the epoch.
func Tumbling(size, grace time.Duration) Windows { return Hopping(size, size, grace) }

// Hopping windows are [start, start+size) with a new one each every. A record
// is in all windows that reach over it.
func Hopping(size, every, grace time.Duration) Windows {
	w := Windows{kind: aligned, size: size.Milliseconds(), every: every.Milliseconds()}
	w.setGrace(grace)
	w.whole("size", size)
	w.whole("every", every)
	if w.every > w.size {
		w.complain("a new window each %v leaves out records between windows of %v; let every be at most the size", every, size)
	}
	return w
}

// Sliding windows hold records at most apart from each other, one window for
// each different set of records. Both ends belong to the window.
func Sliding(apart, grace time.Duration) Windows {
	w := Windows{kind: sliding, size: apart.Milliseconds()}
	w.setGrace(grace)
	w.whole("apart", apart)
	return w
}

// Unlimited is one window that begins at start and never closes. Earlier
// records are in no window.
func Unlimited(start time.Time) Windows {
	w := Windows{kind: unlimited, size: math.MaxInt64, start: start.UnixMilli()}
	if w.start < 0 {
		w.complain("it begins before 1970; begin at time.UnixMilli(0) or later")
	}
	return w
}

// Custom cuts time by cut, which returns the windows that t falls into, none
// longer than longest: calendar months, shifts, opening hours. A window is
// known by its start, so cut must give the same window for each time in it, its
// start among them. Windows that are otherwise fail the record.
func Custom(longest, grace time.Duration, cut func(t time.Time) []Window) Windows {
	w := Windows{kind: custom, size: longest.Milliseconds(), cut: cut}
	w.setGrace(grace)
	w.whole("longest", longest)
	if cut == nil {
		w.complain("its function is nil; give it one")
	}
	return w
}

func (w *Windows) setGrace(d time.Duration) {
	w.grace = d.Milliseconds()
	if d < 0 || d%time.Millisecond != 0 {
		w.complain("grace %v is no whole number of milliseconds from 0 on; give it one", d)
	}
}

// whole says that d, which is called name, must be positive and of whole
// milliseconds.
func (w *Windows) whole(name string, d time.Duration) {
	if d <= 0 || d%time.Millisecond != 0 {
		w.complain("%s %v is no whole number of milliseconds from 1 on; give it one", name, d)
	}
}

func (w *Windows) complain(format string, args ...any) {
	if w.wrong == "" {
		w.wrong = fmt.Sprintf(format, args...)
	}
}

// end is where the window that begins at start ends, of windows of one size.
func (w *Windows) end(start int64) int64 { return windowEnd(start, w.size) }

func windowEnd(start, size int64) int64 {
	if start > math.MaxInt64-size {
		return math.MaxInt64
	}
	return start + size
}

// A span is a window in milliseconds.
type span struct{ start, end int64 }

// of adds the windows of a time to spans, in order of their starts.
func (w *Windows) of(ms int64, spans []span) ([]span, error) {
	switch w.kind {
	case aligned:
		for start := w.first(ms); 0 <= start && start <= ms; start += w.every { // it is negative behind the end of time
			spans = append(spans, span{start, w.end(start)})
		}
		return spans, nil
	case unlimited:
		if ms >= w.start {
			spans = append(spans, span{w.start, math.MaxInt64})
		}
		return spans, nil
	default:
		return w.customOf(ms, spans)
	}
}

// first is where the earliest of the aligned windows of a time begins.
func (w *Windows) first(ms int64) int64 {
	if ms < w.size {
		return 0
	}
	return (ms-w.size)/w.every*w.every + w.every
}

// A Window is a stretch of time. End is not part of time windows, and is part
// of sliding windows and sessions.
type Window struct{ Start, End time.Time }

// Windowed is a key within one window.
type Windowed[K any] struct {
	Key K
	Window
}

// windowed is a windowed key of times in milliseconds.
func windowed[K any](key K, start, end int64) Windowed[K] {
	return Windowed[K]{key, Window{timeOf(start), timeOf(end)}}
}
