package stream

import (
	"cmp"
	"math"
	"slices"

	"github.com/semelstream/semel/state"
	"github.com/semelstream/semel/stream/internal/graph"
	"github.com/semelstream/semel/stream/internal/runtime"
)

// windowFinalsOf is an aggregate by windows as those see it that want its final
// rows.
type windowFinalsOf[K, A any] struct {
	node   *graph.Node
	kept   *keptWindows[K, A]
	w      Windows
	merge  func(a, b A) A // rows of panes; nil if they are of windows
	uses   []func(o *opener) (finalPort[Windowed[K], A], error)
	limits []finalLimit
}

func (f *windowFinalsOf[K, A]) use(limit finalLimit, open func(o *opener) (finalPort[Windowed[K], A], error)) {
	f.uses = append(f.uses, open)
	if limit.keys > 0 || limit.bytes > 0 {
		f.limits = append(f.limits, limit)
	}
}

func (f *windowFinalsOf[K, A]) shared(o *opener) (*windowFinals[K, A], error) {
	return share(o, f.node, func() (*windowFinals[K, A], error) {
		return &windowFinals[K, A]{windowFinalsOf: f, o: o, last: runtime.NoTime, next: runtime.NoTime}, nil
	})
}

func (f *windowFinalsOf[K, A]) sent(o *opener) (func(key Windowed[K]) bool, error) {
	in, err := f.shared(o)
	return func(key Windowed[K]) bool { return key.End.UnixMilli() <= in.last }, err
}

// open gives what finds the final rows in o's task; nil if nobody asks.
func (f *windowFinalsOf[K, A]) open(o *opener, time operatorTime, expiry *expiry) (*windowFinals[K, A], error) {
	if len(f.uses) == 0 {
		return nil, nil
	}
	in, err := f.shared(o)
	if err != nil {
		return nil, err
	}
	in.time, in.expiry = time, expiry
	if in.ports, err = openEach(o, f.uses); err != nil {
		return nil, err
	}
	if in.rows, err = f.kept.open(o); err != nil {
		return nil, err
	}
	if f.merge != nil {
		in.windows = &paneWindows[K, A]{
			w: f.w, key: f.kept.key, runs: paneRuns[A]{merge: f.merge}, rows: in.rows.ByStart, get: in.rows.Get, dirty: map[string]bool{},
		}
	}
	if len(f.limits) > 0 {
		in.waiting = newWaiting(o, f.limits, f.kept.key, f.kept.value)
	}
	// Kafka Streams keeps the time that it last sent windows for under the name
	// of the store.
	o.keepTimeOr(f.kept.store.Name, func() int64 { return in.last }, func(ms int64) { in.last = ms }, in.adopt)
	o.onFinal(f.node, in.run)
	return in, nil
}

// windowFinals finds the rows whose windows have closed by walking through the
// aggregate's own store, and remembers only how far it has come.
//
// A window closes when its end is no later than stream time less grace: when
// the aggregate takes no more records for it. Rows expire only after that, so
// that none goes before it was sent.
type windowFinals[K, A any] struct {
	*windowFinalsOf[K, A]
	o       *opener
	rows    *state.Window[K, A]
	time    operatorTime
	expiry  *expiry // nil if rows expire later
	ports   []finalPort[Windowed[K], A]
	waiting *waitingRows[K, A] // nil without a limit
	last    int64              // windows that end up to this time were sent
	next    int64              // no row's window that was not sent ends before it
	failed  error              // of adopt
	windows *paneWindows[K, A] // of panes; nil if rows are of windows
}

// adopt goes on with rows that were kept by Kafka Streams, with a suppress
// behind them: the largest time of a row is one that its suppress has met, so
// that it has sent what had closed by then. Without this they would be sent a
// second time.
func (f *windowFinals[K, A]) adopt() {
	latest := int64(runtime.NoTime)
	for row, err := range f.rows.ByStart(0, math.MaxInt64-1) {
		if err != nil {
			f.failed = err
			return
		}
		latest = max(latest, row.Time)
	}
	if latest != runtime.NoTime {
		f.last = f.time.observe(latest) - f.w.grace
	}
}

// run sends what has closed since last.
func (f *windowFinals[K, A]) run() error {
	if f.failed != nil {
		return f.o.rowsFailed(f.node, f.failed)
	}
	if f.time.now == runtime.NoTime {
		return nil
	}
	if closed := f.time.now - f.w.grace; closed > f.last {
		if closed >= f.next {
			if err := f.send(closed); err != nil {
				return err
			}
		}
		f.last = closed
	}
	if f.expiry != nil {
		f.expiry.run()
	}
	return f.check()
}

func (f *windowFinals[K, A]) send(closed int64) error {
	switch {
	case f.merge != nil:
		return f.sendPanes(closed)
	case f.w.kind == custom:
		return f.sendCustom(closed)
	}
	return f.sendAligned(closed)
}

// sendAligned sends the rows of windows of one size: in order of their starts,
// they are in order of their ends.
func (f *windowFinals[K, A]) sendAligned(closed int64) error {
	for row, err := range f.rows.ByStart(f.from(), closed-f.w.size) {
		if err != nil {
			return f.o.rowsFailed(f.node, err)
		}
		if err := f.sendRow(row, f.w.end(row.Start)); err != nil {
			return err
		}
	}
	f.next = f.w.nextEnd(closed)
	return nil
}

// from is where the earliest window may begin that was not sent.
func (f *windowFinals[K, A]) from() int64 {
	if f.last < f.w.size {
		return 0
	}
	return f.last - f.w.size + 1
}

// nextEnd is the first end of an aligned window after ms.
func (w *Windows) nextEnd(ms int64) int64 {
	if ms < w.size {
		return w.size
	}
	return windowEnd(windowEnd((ms-w.size)/w.every*w.every, w.every), w.size)
}

func (f *windowFinals[K, A]) sendRow(row state.WindowRow[K, A], end int64) error {
	key := windowed(row.Key, row.Start, end)
	for _, p := range f.ports {
		if err := f.o.settle(func() error { return p.final(key, row.Value, row.Time) }); err != nil {
			return err
		}
	}
	if err := f.waiting.changed(row.Key, waiting[A]{row.Value, true}, waiting[A]{}); err != nil {
		return f.o.rowsFailed(f.node, err)
	}
	return nil
}

// sendCustom sends the rows of windows of any size: by end, then by start. It
// looks at all rows that were not sent, to know when the next one will be.
func (f *windowFinals[K, A]) sendCustom(closed int64) error {
	type due struct {
		row state.WindowRow[K, A]
		end int64
	}
	var dues []due
	next, at, end := int64(math.MaxInt64), int64(-1), int64(0)
	for row, err := range f.rows.ByStart(f.from(), math.MaxInt64-1) {
		if err != nil {
			return f.o.rowsFailed(f.node, err)
		}
		if row.Start != at {
			if end, err = f.w.endOf(row.Start); err != nil {
				return f.o.fail(f.node, runtime.OpFunction, err)
			}
			at = row.Start
		}
		switch {
		case end > closed:
			next = min(next, end)
		case end > f.last:
			dues = append(dues, due{row, end})
		}
	}
	slices.SortStableFunc(dues, func(a, b due) int { return cmp.Compare(a.end, b.end) })
	for _, d := range dues {
		if err := f.sendRow(d.row, d.end); err != nil {
			return err
		}
	}
	f.next = next
	return nil
}

// changed notes that a window's row was made, changed or removed.
func (f *windowFinals[K, A]) changed(key K, s span, from, to waiting[A]) error {
	f.next = min(f.next, s.end)
	if err := f.waiting.changed(key, from, to); err != nil {
		return f.o.rowsFailed(f.node, err)
	}
	return nil
}

// lastEnd is where the last window ends that a row is of.
func (f *windowFinals[K, A]) lastEnd(start int64) (int64, error) {
	if f.merge != nil {
		start = f.w.last(start)
	}
	return f.w.endOf(start)
}

// check fails the task if more rows wait than a Final allows.
func (f *windowFinals[K, A]) check() error {
	if f.waiting == nil {
		return nil
	}
	if f.waiting.keys.now == unknown {
		if err := f.count(); err != nil {
			return f.o.rowsFailed(f.node, err)
		}
	}
	for _, l := range f.limits {
		if err := f.waiting.within(l); err != nil {
			return f.o.settle(func() error {
				return &runtime.Failure{Op: opState, Operator: l.node.Name, Err: err, Policy: stop}
			})
		}
	}
	return nil
}

// count counts the rows that wait.
func (f *windowFinals[K, A]) count() error {
	f.waiting.keys.set(0)
	f.waiting.bytes.set(0)
	for row, err := range f.rows.ByStart(f.from(), math.MaxInt64-1) {
		if err != nil {
			return err
		}
		end, err := f.lastEnd(row.Start)
		if err != nil {
			return err
		}
		if end > f.last {
			if err := f.waiting.count(row.Key, waiting[A]{}, waiting[A]{row.Value, true}); err != nil {
				return err
			}
		}
	}
	return nil
}
