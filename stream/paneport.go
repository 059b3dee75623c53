package stream

import (
	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/internal/assert"
	"github.com/semelstream/semel/state"
	"github.com/semelstream/semel/stream/internal/graph"
	"github.com/semelstream/semel/stream/internal/runtime"
)

// declarePanes makes the rows those of panes.
func (a *windowAggregation[K, A]) declarePanes(b *Builder) {
	s := a.kept.store
	s.Panes, s.Windows = true, "panes of "+a.w.text()
	b.shapes[s.Name] = shape{end: a.w.endOf, panes: &paneShape[K, A]{a.w, s.Retain, a.kept.key, a.merge}}
	a.n.openRows = func(o *opener) (rows[Windowed[K], A], error) {
		in, err := a.paneRows(o)
		return paneTable[K, A]{in}, err
	}
}

// paneRows are the rows of panes of a task.
func (a *windowAggregation[K, A]) paneRows(o *opener) (*paneRows[K, A], error) {
	return share(o, a.node, func() (*paneRows[K, A], error) {
		rows, err := a.kept.open(o)
		if err != nil {
			return nil, err
		}
		in := &paneRows[K, A]{w: a.w, merge: a.merge, rows: rows}
		// Of windows that are kept, all panes are.
		in.expiry = expiryOf(o, a.node, a.kept.store.Retain, func(first int64) { rows.Expire(max(a.w.onGrid(first), first)) })
		return in, nil
	})
}

type paneRows[K, A any] struct {
	w      Windows
	merge  func(a, b A) A
	rows   *state.Window[K, A]
	expiry *expiry
}

// load fills f with the panes of key from the window that begins at first to the
// one that begins at last, as get has them.
func (p *paneRows[K, A]) load(f *paneFold[A], key K, first, last int64, get func(K, int64) (A, int64, bool, error)) error {
	f.merge = p.merge
	f.begin()
	newest := p.expiry.latest.now // no pane is later than this window's first ones
	if newest == runtime.NoTime {
		return nil
	}
	to := min(p.w.inside(last), windowEnd(newest, p.w.every-1))
	for pane := first; 0 <= pane && pane <= to; pane = p.w.nextPane(pane) {
		v, ms, ok, err := get(key, pane)
		if err != nil {
			return err
		}
		f.add(paneRow[A]{pane, v, ms, ok})
	}
	return nil
}

// paneTable are the rows of a table of windows that has panes.
type paneTable[K, A any] struct{ in *paneRows[K, A] }

func (t paneTable[K, A]) row(key Windowed[K]) (v A, ms int64, ok bool, err error) {
	start := key.Start.UnixMilli()
	if start < t.in.expiry.bound() || t.in.w.last(start) != start {
		return v, 0, false, nil
	}
	var f paneFold[A]
	err = t.in.load(&f, key.Key, start, start, t.in.rows.Get)
	r := f.window(start, t.in.w.inside(start))
	return r.v, r.ms, r.ok, err
}

// openPanes is open of rows by panes.
func (a *windowAggregation[K, A]) openPanes(o *opener) (*paneUpdates[K, A], error) {
	return share(o, a.node, func() (*paneUpdates[K, A], error) {
		rows, err := a.paneRows(o)
		if err != nil {
			return nil, err
		}
		p := &paneUpdates[K, A]{paneRows: rows, o: o, node: a.node, key: a.kept.key, each: a.each, wantOld: a.n.wantOld, time: o.operatorTime(a.node)}
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
			p.pending = newPendingPanes[K, A](o, &p.w, a.kept.key)
			o.onFlush(a.node, p.flush)
		}
		if p.finals, err = a.finals.open(o, p.time, nil); err != nil {
			return nil, err
		}
		// Until the transaction closes, panes of windows may be asked for that
		// have changed in it and expired.
		o.onFlush(a.node, func() error { p.expiry.run(); return nil })
		return p, nil
	})
}

// paneUpdates are the rows of a task, of panes. What follows is told of windows,
// as by [windowUpdates].
type paneUpdates[K, A any] struct {
	*paneRows[K, A]
	o       *opener
	node    *graph.Node
	key     codec.Codec[K]
	out     tablePort[Windowed[K], A]
	each    bool
	wantOld bool
	pending *pendingPanes[K, A]       // nil if nobody hears of them at a flush
	headers *lastHeaders[Windowed[K]] // too
	time    operatorTime
	finals  *windowFinals[K, A] // nil if nobody asks

	now, was paneFold[A] // scratch
	olds     []paneRow[A]
}

// A panePort updates the panes of one stream's records.
type panePort[K, V, A any] struct {
	*paneUpdates[K, A]
	f func(key K, value V, row A, ok bool) (A, bool, error)
}

func (p *panePort[K, V, A]) push(r Record[K, V]) error {
	if p.o.lacks(p.node, r.NoKey, r.NoValue) {
		return nil
	}
	ms := r.Time.UnixMilli()
	closed := p.time.observe(ms) - p.w.grace
	if ms < 0 {
		p.o.drop(p.node, noWindow)
		return nil
	}
	begin, last := p.w.first(ms), p.w.last(ms)
	first := begin
	for ; 0 <= first && first <= last && p.w.end(first) <= closed; first += p.w.every {
		p.o.drop(p.node, late)
	}
	if first < 0 || first > last {
		return nil
	}
	// A window that has closed does not have this record, and its pane will.
	if err := p.seal(r.Key, begin, first); err != nil {
		return p.o.rowsFailed(p.node, err)
	}
	return p.update(r, ms, first, last)
}

// update adds a record to its pane; the windows that take it begin from first
// to last.
func (p *panePort[K, V, A]) update(r Record[K, V], ms, first, last int64) error {
	pane := p.w.pane(ms)
	if p.each && p.wantOld {
		if err := p.before(r.Key, first, last); err != nil {
			return p.o.rowsFailed(p.node, err)
		}
	}
	ref, old, oldMs, had, err := p.rows.Find(r.Key, pane)
	if err != nil {
		return p.o.rowsFailed(p.node, err)
	}
	p.o.enter(p.node)
	row, has, err := p.f(r.Key, r.Value, old, had)
	if err != nil {
		return p.o.fail(p.node, runtime.OpFunction, err)
	}
	if !has { // the assertion's arguments cost an allocation
		assert.That(false, "%s: a record has deleted the row of a pane", p.node.Name)
	}
	if had {
		ms = max(ms, oldMs)
	}
	p.rows.Set(ref, row, ms)
	p.expiry.put(last)
	if p.finals != nil {
		if err := p.finals.windows.changed(r.Key, pane); err != nil {
			return p.o.rowsFailed(p.node, err)
		}
		if err := p.finals.changed(r.Key, span{first, p.w.end(first)}, waiting[A]{old, had}, waiting[A]{row, true}); err != nil {
			return err
		}
	}
	if p.each {
		return p.tell(r.Key, r.Headers, first, last)
	}
	return p.note(r.Key, r.Headers, first, last)
}

// touch makes the rows ready that records at stream time will need.
func (p *paneUpdates[K, A]) touch(keys [][]byte) {
	if p.time.now >= 0 {
		p.rows.Touch(p.w.pane(p.time.now), keys)
	}
}

// before notes the windows of a key as they are before a record.
func (p *paneUpdates[K, A]) before(key K, first, last int64) error {
	clear(p.olds)
	p.olds = p.olds[:0]
	if err := p.load(&p.was, key, first, last, p.rows.Get); err != nil {
		return err
	}
	for start := first; 0 <= start && start <= last; start += p.w.every {
		p.olds = append(p.olds, p.was.window(start, p.w.inside(start)))
	}
	return nil
}

// tell tells of the windows of a key at once.
func (p *paneUpdates[K, A]) tell(key K, headers Headers, first, last int64) error {
	if err := p.load(&p.now, key, first, last, p.rows.Get); err != nil {
		return p.o.rowsFailed(p.node, err)
	}
	for i, start := 0, first; 0 <= start && start <= last; i, start = i+1, start+p.w.every {
		row, old := p.now.window(start, p.w.inside(start)), paneRow[A]{}
		if p.wantOld {
			old = p.olds[i]
		}
		if err := p.out.change(change[Windowed[K], A]{
			key: windowed(key, start, p.w.end(start)), old: old.v, new: row.v, hasOld: old.ok, hasNew: true, ms: row.ms, headers: headers,
		}); err != nil {
			return err
		}
	}
	return nil
}

// note keeps the windows of a key to be told of when the transaction closes.
func (p *paneUpdates[K, A]) note(key K, headers Headers, first, last int64) error {
	if p.pending == nil {
		return nil
	}
	if err := p.pending.add(key, first, last); err != nil {
		return p.o.rowsFailed(p.node, err)
	}
	if len(headers) == 0 && len(p.headers.last) == 0 {
		return nil
	}
	for start := first; 0 <= start && start <= last; start += p.w.every {
		if err := p.headers.note(windowed(key, start, p.w.end(start)), headers); err != nil {
			return p.o.rowsFailed(p.node, err)
		}
	}
	return nil
}

// seal keeps the rows of windows from begin to before first that have closed and
// are to be told of.
func (p *paneUpdates[K, A]) seal(key K, begin, first int64) error {
	if p.pending == nil || begin == first {
		return nil
	}
	i, err := p.pending.find(key)
	if i < 0 || err != nil {
		return err
	}
	loaded := false
	for start := begin; start < first; start += p.w.every {
		if !p.pending.keys[i].open(start) {
			continue
		}
		if !loaded {
			if err := p.load(&p.now, key, start, first-p.w.every, p.rows.Get); err != nil {
				return err
			}
			loaded = true
		}
		row := p.now.window(start, p.w.inside(start))
		row.start = start
		p.pending.seal(i, row)
	}
	return nil
}
