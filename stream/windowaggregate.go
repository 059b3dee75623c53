package stream

import (
	"math"
	"reflect"
	"time"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/state"
	"github.com/semelstream/semel/stream/internal/graph"
	"github.com/semelstream/semel/stream/internal/runtime"
)

// aggregateWindows is what all aggregates by window are: f makes the new row of
// a key and window of a record and the old row. Like [aggregate] it repartitions
// the stream first where that is needed. merge merges the rows of panes, if that
// is known.
func aggregateWindows[K, V, A any](g WindowedGroup[K, V], kind, store string, opts []WindowOption, value codec.Codec[A], isNil bool,
	merge func(a, b A) A, f func(key K, value V, row A, ok bool) (A, bool, error)) WindowedTable[K, A] {

	b, set := g.g.s.at().b, settingsOf(opts)
	s := g.g.byKey(store)
	if set.keyCodec == nil {
		set.keyCodec = g.g.set.keyCodec
	}
	node := b.add(kind, set, s.n.node)
	b.needFunc(node, isNil)
	if set.panes != nil && set.panes.merge == nil && merge != nil {
		set.panes = &paneSetting{merge: merge, of: reflect.TypeFor[A]()}
	}
	a := newWindowAggregation(b, node, store, set, g.w, s.n.key, value)
	a.touch = set.keyCodec == nil && s.n.key != nil // encoded as the source has it
	feedWindows(a, s, f)
	return WindowedTable[K, A]{a.n}
}

// A windowAggregation is rows by key and window that one stream or several
// update.
type windowAggregation[K, A any] struct {
	node  *graph.Node
	w     Windows
	kept  *keptWindows[K, A]
	n     *tableNode[Windowed[K], A]
	each  bool
	touch bool           // the keys of the sources before node are those of the rows
	merge func(a, b A) A // rows of panes; nil if they are of windows

	finals *windowFinalsOf[K, A]
	slides *followFinalsOf[K, A] // instead of finals, of sliding windows
}

// newWindowAggregation declares the rows of node.
func newWindowAggregation[K, A any](b *Builder, node *graph.Node, store string, set settings, w Windows, key codec.Codec[K], value codec.Codec[A]) *windowAggregation[K, A] {
	a := &windowAggregation[K, A]{node: node, w: w, each: set.emitEach}
	if w.kind == sliding {
		a.declareSliding(b, store, set, key, value)
		noPanes(b, node, set, w.text())
		return a
	}
	a.kept = keepWindows(b, node, store, set, retention(b, node, w, set), key, value)
	a.kept.store.NeverEarly = true // a result has the time of a record in its window
	a.n = newWindowedTable(b, node, a.kept, keyOf(&a.w, a.kept.key))
	a.kept.store.Windows = a.w.text()
	b.shapes[store] = shape{end: a.w.endOf}
	if a.merge = mergeOf[A](b, node, w, set); a.merge != nil {
		a.declarePanes(b)
	}
	a.finals = &windowFinalsOf[K, A]{node: node, kept: a.kept, w: w, merge: a.merge}
	if w.kind != unlimited {
		a.n.finals = &finalSource[Windowed[K], A]{use: a.finals.use, sent: a.finals.sent}
	}
	return a
}

// feedWindows makes s update the rows by f.
func feedWindows[K, V, A any](a *windowAggregation[K, A], s Stream[K, V], f func(key K, value V, row A, ok bool) (A, bool, error)) {
	s.n.use(func(o *opener) (port[K, V], error) {
		if a.w.kind == sliding {
			rows, err := a.openSliding(o)
			return &slidePort[K, V, A]{rows, f}, err
		}
		if a.merge != nil {
			rows, err := a.openPanes(o)
			return &panePort[K, V, A]{rows, f}, err
		}
		rows, err := a.open(o)
		return &windowPort[K, V, A]{rows, f}, err
	})
}

// open opens the rows once for all that update them.
func (a *windowAggregation[K, A]) open(o *opener) (*windowUpdates[K, A], error) {
	return share(o, a.node, func() (*windowUpdates[K, A], error) {
		rows, err := a.kept.open(o)
		if err != nil {
			return nil, err
		}
		p := &windowUpdates[K, A]{
			o: o, node: a.node, w: a.w, rows: rows, each: a.each, time: o.operatorTime(a.node),
			expiry: expiryOf(o, a.node, a.kept.store.Retain, rows.Expire),
		}
		if p.out, err = a.n.open(o); err != nil {
			return nil, err
		}
		if a.touch {
			o.touchAhead(a.node, p.touch)
		}
		switch {
		case !heard(p.out):
			p.each = false
		case !p.each:
			p.headers = &lastHeaders[Windowed[K]]{key: a.n.key}
			o.onFlush(a.node, p.flush)
		}
		p.finals, err = a.finals.open(o, p.time, p.expiry)
		return p, err
	})
}

// retention is for how long rows are kept from the start of their window on.
func retention(b *Builder, node *graph.Node, w Windows, set settings) int64 {
	if w.kind == noWindows {
		b.problem(node, "its Windows say nothing; give Windowed one of Tumbling, Hopping, Sliding, Unlimited or Custom")
		return 0
	}
	if w.wrong != "" {
		b.problem(node, "%s", w.wrong)
		return 0
	}
	least := windowEnd(w.size, w.grace)
	switch {
	case !set.retainSet:
		return least
	case set.retain < least:
		b.problem(node, "Retain(%v) is less than its windows take records for, %v with grace; give at least that, or leave it out",
			time.Duration(set.retain)*time.Millisecond, time.Duration(least)*time.Millisecond)
	}
	return set.retain
}

// windowUpdates are the rows of a task, which are updated at once. What follows
// is told of the new rows at once too if each is set, else when the transaction
// closes.
type windowUpdates[K, A any] struct {
	o       *opener
	node    *graph.Node
	w       Windows
	rows    *state.Window[K, A]
	out     tablePort[Windowed[K], A]
	each    bool
	headers *lastHeaders[Windowed[K]] // of the records that made the rows; nil if nobody hears of them at a flush
	time    operatorTime
	expiry  *expiry
	finals  *windowFinals[K, A] // nil if nobody asks
	spans   []span              // scratch
}

// A windowPort updates the rows of the windows of one stream's records.
type windowPort[K, V, A any] struct {
	*windowUpdates[K, A]
	f func(key K, value V, row A, ok bool) (A, bool, error)
}

func (p *windowPort[K, V, A]) push(r Record[K, V]) (err error) {
	if p.o.lacks(p.node, r.NoKey, r.NoValue) {
		return nil
	}
	ms := r.Time.UnixMilli()
	closed := p.time.observe(ms) - p.w.grace
	p.o.enter(p.node)
	if p.spans, err = p.w.of(ms, p.spans[:0]); err != nil {
		return p.o.fail(p.node, runtime.OpFunction, err)
	}
	if len(p.spans) == 0 {
		p.o.drop(p.node, noWindow)
	}
	for _, s := range p.spans {
		if s.end <= closed {
			p.o.drop(p.node, late)
			continue
		}
		if err := p.update(r, s, ms); err != nil {
			return err
		}
	}
	if p.finals == nil {
		p.expiry.run()
	}
	return nil
}

// touch makes the rows ready that records at stream time will need. Others are
// few, or of windows that are not there yet.
func (p *windowUpdates[K, A]) touch(keys [][]byte) {
	if p.time.now == runtime.NoTime || p.w.kind != aligned {
		return
	}
	for start := p.w.first(p.time.now); 0 <= start && start <= p.time.now; start += p.w.every {
		p.rows.Touch(start, keys)
	}
}

// update adds a record to one window.
func (p *windowPort[K, V, A]) update(r Record[K, V], s span, ms int64) error {
	ref, old, oldMs, had, err := p.rows.Find(r.Key, s.start)
	if err != nil {
		return p.o.rowsFailed(p.node, err)
	}
	if !had {
		if err := p.w.agrees(s); err != nil {
			return p.o.fail(p.node, runtime.OpFunction, err)
		}
	}
	p.o.enter(p.node)
	row, has, err := p.f(r.Key, r.Value, old, had)
	if err != nil {
		return p.o.fail(p.node, runtime.OpFunction, err)
	}
	if had {
		ms = max(ms, oldMs)
	}
	switch {
	case has:
		p.rows.Set(ref, row, ms)
		p.expiry.put(s.start)
	case had:
		p.rows.Remove(ref, ms)
	}
	if p.finals != nil {
		if err := p.finals.changed(r.Key, s, waiting[A]{old, had}, waiting[A]{row, has}); err != nil {
			return err
		}
	}
	if !p.each {
		return p.note(r.Key, s, r.Headers)
	}
	if !has {
		var none A
		row = none
	}
	return p.out.change(change[Windowed[K], A]{
		key: windowed(r.Key, s.start, s.end), old: old, new: row, hasOld: had, hasNew: has, ms: ms, headers: r.Headers,
	})
}

func (p *windowUpdates[K, A]) note(key K, s span, headers Headers) error {
	if p.headers == nil {
		return nil
	}
	if err := p.headers.note(windowed(key, s.start, s.end), headers); err != nil {
		return p.o.rowsFailed(p.node, err)
	}
	return nil
}

// flush tells what became of each row in the transaction, as that of an
// aggregatePort does.
func (p *windowUpdates[K, A]) flush() error {
	defer p.headers.forget()
	return p.rows.Changed(func(c state.WindowChanged[K, A]) error {
		end, err := p.w.endOf(c.Start)
		if err != nil {
			return p.o.fail(p.node, runtime.OpFunction, err)
		}
		key := windowed(c.Key, c.Start, end)
		headers, err := p.headers.of(key)
		if err != nil {
			return p.o.rowsFailed(p.node, err)
		}
		return p.o.settle(func() error {
			return p.out.change(change[Windowed[K], A]{
				key: key, old: c.Old, new: c.New, hasOld: c.OldOK, hasNew: c.OK, ms: c.Time, headers: headers,
			})
		})
	})
}

// An expiry lets go of rows that began too long ago. As in Kafka Streams it goes
// by the latest start of a window that a row was put in, so that what a store
// shows depends on nothing but its rows. It never reaches windows that still
// take records.
type expiry struct {
	retain int64
	latest *number // start
	expire func(before int64)
}

// expiryOf makes the expiry of n's store; it goes on where it was.
func expiryOf(o *opener, n *graph.Node, retain int64, expire func(before int64)) *expiry {
	e := &expiry{retain, o.number(runtime.NoTime), expire}
	o.keepTime(n.Name+" start", func() int64 { return e.latest.now }, func(ms int64) {
		e.latest.set(ms)
		e.run()
	})
	return e
}

func (e *expiry) put(start int64) { e.latest.raise(start) }

func (e *expiry) run() {
	if first := e.bound(); first > 0 {
		e.expire(first)
	}
}

// bound is the first start that is kept.
func (e *expiry) bound() int64 {
	if e.latest.now == runtime.NoTime || e.retain == math.MaxInt64 {
		return 0
	}
	return max(e.latest.now-e.retain+1, 0)
}
