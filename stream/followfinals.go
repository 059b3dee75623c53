package stream

import (
	"iter"
	"math"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/stream/internal/graph"
	"github.com/semelstream/semel/stream/internal/runtime"
)

// followFinalsOf is an aggregate by windows that follow the records, sessions
// and sliding ones, as those see it that want its final rows.
type followFinalsOf[K, A any] struct {
	node   *graph.Node
	store  *graph.Store
	key    codec.Codec[K]
	value  codec.Codec[A]
	uses   []func(o *opener) (finalPort[Windowed[K], A], error)
	limits []finalLimit
}

// source is what Final asks. The store must be walked through in order of time
// then.
func (f *followFinalsOf[K, A]) source() *finalSource[Windowed[K], A] {
	return &finalSource[Windowed[K], A]{use: f.use, sent: f.sent}
}

func (f *followFinalsOf[K, A]) use(limit finalLimit, open func(o *opener) (finalPort[Windowed[K], A], error)) {
	f.store.ByTime = true
	f.uses = append(f.uses, open)
	if limit.keys > 0 || limit.bytes > 0 {
		f.limits = append(f.limits, limit)
	}
}

func (f *followFinalsOf[K, A]) shared(o *opener) (*followFinals[K, A], error) {
	return share(o, f.node, func() (*followFinals[K, A], error) {
		return &followFinals[K, A]{followFinalsOf: f, o: o, closed: runtime.NoTime, next: runtime.NoTime}, nil
	})
}

func (f *followFinalsOf[K, A]) sent(o *opener) (func(key Windowed[K]) bool, error) {
	in, err := f.shared(o)
	return func(key Windowed[K]) bool { return key.End.UnixMilli() < in.closed }, err
}

// A followRow is a row of a window with both ends included.
type followRow[K, A any] struct {
	key Windowed[K]
	v   A
	ms  int64
}

// A follower is an aggregate at work in a task: what its finals are made of.
type follower[K, A any] interface {
	// openEnd is the first end of a window that takes records; runtime.NoTime
	// before the first record.
	openEnd() int64
	// ending are the rows of windows that end at from or later, in order of
	// their ends.
	ending(from int64) iter.Seq2[followRow[K, A], error]
	// observe takes a time in.
	observe(ms int64)
	// expire lets go of rows that are kept no longer.
	expire()
}

// open begins to look for final rows in o's task, if anybody asks; else it
// returns nil.
func (f *followFinalsOf[K, A]) open(o *opener, of follower[K, A]) (*followFinals[K, A], error) {
	if len(f.uses) == 0 {
		return nil, nil
	}
	in, err := f.shared(o)
	if err != nil {
		return nil, err
	}
	in.of = of
	if in.ports, err = openEach(o, f.uses); err != nil {
		return nil, err
	}
	if len(f.limits) > 0 {
		in.waiting = newWaiting(o, f.limits, f.key, f.value)
	}
	// Under this name Kafka Streams keeps the time before which windows that
	// ended were sent.
	o.keepTimeOr(f.store.Name, func() int64 { return in.closed }, func(ms int64) { in.closed = ms }, in.adopt)
	o.onFinal(f.node, in.run)
	return in, nil
}

// followFinals finds the rows whose windows have closed by walking through the
// aggregate's own store, and remembers only how far it has come.
//
// A window closes when a record at its end would not be taken any more, which
// is later than it would be if the end did not belong to it: by the very
// record that brings stream time there another one of the window can come. So
// what was sent is never touched again, and nothing is sent twice.
type followFinals[K, A any] struct {
	*followFinalsOf[K, A]
	o       *opener
	of      follower[K, A]
	ports   []finalPort[Windowed[K], A]
	waiting *waitingRows[K, A] // nil without a limit
	closed  int64              // windows that end before were sent
	next    int64              // no window that was not sent ends before; may be too early
	failed  error              // of adopt
}

// adopt is that of [windowFinals].
func (f *followFinals[K, A]) adopt() {
	latest := int64(runtime.NoTime)
	for row, err := range f.of.ending(0) {
		if err != nil {
			f.failed = err
			return
		}
		latest = max(latest, row.ms)
	}
	if latest != runtime.NoTime {
		f.of.observe(latest)
		f.closed = f.of.openEnd()
	}
}

// run sends what has closed.
func (f *followFinals[K, A]) run() error {
	if f.failed != nil {
		return f.o.rowsFailed(f.node, f.failed)
	}
	closed := f.of.openEnd()
	if closed == runtime.NoTime {
		return nil
	}
	if closed > max(f.closed, 0) {
		if closed > f.next {
			if err := f.send(closed); err != nil {
				return err
			}
		}
		f.closed = closed
	}
	f.of.expire()
	return f.check()
}

func (f *followFinals[K, A]) send(closed int64) error {
	f.next = math.MaxInt64
	for row, err := range f.of.ending(max(f.closed, 0)) {
		if err != nil {
			return f.o.rowsFailed(f.node, err)
		}
		if end := row.key.End.UnixMilli(); end >= closed {
			f.next = end
			return nil
		}
		if err := f.sendRow(row); err != nil {
			return err
		}
	}
	return nil
}

func (f *followFinals[K, A]) sendRow(row followRow[K, A]) error {
	for _, p := range f.ports {
		if err := f.o.settle(func() error { return p.final(row.key, row.v, row.ms) }); err != nil {
			return err
		}
	}
	if err := f.waiting.changed(row.key.Key, waiting[A]{row.v, true}, waiting[A]{}); err != nil {
		return f.o.rowsFailed(f.node, err)
	}
	return nil
}

// changed notes that the row of a window that ends at end was made, changed or
// removed.
func (f *followFinals[K, A]) changed(key K, end int64, from, to waiting[A]) error {
	if f == nil {
		return nil
	}
	f.next = min(f.next, end)
	return f.waiting.changed(key, from, to)
}

// check fails the task if more rows wait than a Final allows.
func (f *followFinals[K, A]) check() error {
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
func (f *followFinals[K, A]) count() error {
	f.waiting.keys.set(0)
	f.waiting.bytes.set(0)
	for row, err := range f.of.ending(max(f.closed, 0)) {
		if err != nil {
			return err
		}
		if err := f.waiting.count(row.key.Key, waiting[A]{}, waiting[A]{row.v, true}); err != nil {
			return err
		}
	}
	return nil
}
