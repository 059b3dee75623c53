package stream

import (
	"reflect"

	"github.com/semelstream/semel/stream/internal/graph"
)

// Hopping windows that overlap much share most of their records. A pane is a
// stretch of record time between two times at which one of the windows begins or
// ends: all records of a pane are in the same windows, and a window is the merge
// of its panes.

// Panes keeps a row per key and pane of hopping windows, instead of one per key
// and window: a record then changes one row and not one of each of its windows,
// and one record of the changelog. A pane is what lies between two times at
// which a window begins or ends; windows of a minute every ten seconds have
// panes of ten seconds. What is sent is the same. Behind Final that is one
// result per key and window, so that nothing grows with the overlap but what is
// merged when a window closes.
//
// Panes fits Count and Reduce, whose function must be associative; [PanesBy] is
// for Aggregate. Where the records of a window come out of order, those of its
// earlier panes count first: let the order not matter to functions where it may
// happen.
//
// The store's rows and its changelog are not those of Kafka Streams, nor those
// that the aggregate has without this option: it must be there from the first
// start of an application on, or the store must get another name. Whoever looks
// a closed window up, in a [WindowView] or in a join, may see records that came
// too late for it, but in time for a window that it shares a pane with.
func Panes() WindowOption {
	return option(func(s *settings) { s.panes = &paneSetting{} })
}

// PanesBy is [Panes] for Aggregate, whose rows merge combines: a is of earlier
// panes than b. It must be associative, return what adding all records to one
// row would have made, and leave a and b as they are, which are rows of the
// store.
func PanesBy[A any](merge func(a, b A) A) WindowOption {
	return option(func(s *settings) {
		s.panes = &paneSetting{merge: merge, of: reflect.TypeFor[A](), given: true, isNil: merge == nil}
	})
}

// A paneSetting is how rows of panes are merged.
type paneSetting struct {
	merge any          // func(a, b A) A; nil if it is not known
	of    reflect.Type // A
	given bool         // by the user
	isNil bool
}

// mergeOf is how the rows of node's panes are merged; nil if its rows are of
// windows.
func mergeOf[A any](b *Builder, node *graph.Node, w Windows, set settings) func(a, b A) A {
	switch {
	case set.panes == nil || w.wrong != "" || w.kind == noWindows: // else somebody complains
		return nil
	case w.kind == aligned && w.every == w.size:
		b.problem(node, "its %s do not overlap, so that each is a pane of its own; leave Panes out", w.text())
		return nil
	case w.kind != aligned:
		noPanes(b, node, set, w.text())
		return nil
	case set.panes.isNil:
		b.problem(node, "PanesBy gets no function; give it one that merges two rows")
		return nil
	case set.panes.merge == nil:
		b.problem(node, "Panes does not know how its rows are merged; give PanesBy(merge) to Aggregate, or leave Panes out: rows of Update and of cogroups may be deleted, and are not merged")
		return nil
	case node.Kind == "window-update" || node.Kind == "window-cogroup":
		b.problem(node, "its rows may be deleted, and those of panes are merged; use Aggregate, or leave PanesBy out")
		return nil
	}
	merge, ok := set.panes.merge.(func(a, b A) A)
	if !ok {
		b.problem(node, "PanesBy gets a function that merges rows of %v where they are of %v; give it one of %[2]v", set.panes.of, reflect.TypeFor[A]())
	}
	return merge
}

// noPanes is for windows that have none.
func noPanes(b *Builder, node *graph.Node, set settings, windows string) {
	if set.panes != nil {
		b.problem(node, "Panes is for hopping windows, and not for %s; leave it out", windows)
	}
}

// pane is where the pane of a time begins.
func (w *Windows) pane(ms int64) int64 {
	start := w.last(ms)
	if ms-start < w.size%w.every {
		return start
	}
	return start + w.size%w.every
}

// nextPane is where the pane behind the one of pane begins; negative behind the
// end of time.
func (w *Windows) nextPane(pane int64) int64 {
	start, rest := w.last(pane), w.size%w.every
	if pane-start < rest {
		return start + rest
	}
	return start + w.every
}

// last is where the latest of the aligned windows of a time begins.
func (w *Windows) last(ms int64) int64 { return ms / w.every * w.every }

// inside is the last time of the window that begins at start.
func (w *Windows) inside(start int64) int64 { return windowEnd(start, w.size-1) }

// onGrid is the first start of an aligned window from ms on; negative behind the
// end of time.
func (w *Windows) onGrid(ms int64) int64 {
	start := w.last(ms)
	if start < ms {
		start += w.every
	}
	return start
}
