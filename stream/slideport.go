package stream

import (
	"iter"
	"math"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/state"
	"github.com/semelstream/semel/stream/internal/graph"
	"github.com/semelstream/semel/stream/internal/runtime"
)

// declareSliding declares the rows of sliding windows.
func (a *windowAggregation[K, A]) declareSliding(b *Builder, store string, set settings, key codec.Codec[K], value codec.Codec[A]) {
	rules := slide{a.w.size, a.w.grace}
	if a.w.wrong != "" {
		b.problem(a.node, "%s", a.w.wrong)
	}
	a.kept = keepWindows(b, a.node, store, set, retained(b, a.node, set, 2*rules.apart+rules.grace), key, value)
	a.kept.store.NeverEarly = true // a result has the time of a record in its window
	a.kept.store.ByKey, a.kept.store.Windows = true, a.w.text()
	a.slides = &followFinalsOf[K, A]{node: a.node, store: a.kept.store, key: a.kept.key, value: a.kept.value}
	a.n = newWindowedTable(b, a.node, a.kept, keyOf(&a.w, a.kept.key))
	b.shapes[store] = shape{end: a.w.endOf, shows: func(start, ms int64) bool { return rules.row(start, ms).shows() }}
	a.n.finals = a.slides.source()
	a.n.openRows = func(o *opener) (rows[Windowed[K], A], error) {
		rows, err := a.kept.open(o)
		return slideTable[K, A]{rules, rows}, err
	}
}

// openSliding is open of sliding windows.
func (a *windowAggregation[K, A]) openSliding(o *opener) (*slideUpdates[K, A], error) {
	return share(o, a.node, func() (*slideUpdates[K, A], error) {
		rows, err := a.kept.open(o)
		if err != nil {
			return nil, err
		}
		p := &slideUpdates[K, A]{o: o, node: a.node, rules: slide{a.w.size, a.w.grace}, rows: rows, each: a.each, time: o.operatorTime(a.node)}
		if p.out, err = a.n.open(o); err != nil {
			return nil, err
		}
		// The rules look back further than Kafka Streams' store does.
		p.expiry = expiryOf(o, a.node, windowEnd(a.kept.store.Retain, 2), rows.Expire)
		p.flushes = !p.each && heard(p.out)
		if p.flushes {
			p.headers.key = a.n.key
			o.onFlush(a.node, p.flush)
		}
		p.finals, err = a.slides.open(o, p)
		return p, err
	})
}

// slideTable are the rows of a table of sliding windows.
type slideTable[K, A any] struct {
	rules slide
	rows  *state.Window[K, A]
}

func (t slideTable[K, A]) row(w Windowed[K]) (v A, ms int64, ok bool, err error) {
	v, ms, ok, err = t.rows.Get(w.Key, w.Start.UnixMilli())
	if !ok || !t.rules.row(w.Start.UnixMilli(), ms).shows() {
		var none A
		return none, 0, false, err
	}
	return v, ms, true, nil
}

// slideUpdates are the rows of a task and what is told of them.
type slideUpdates[K, A any] struct {
	o     *opener
	node  *graph.Node
	rules slide
	rows  *state.Window[K, A]
	time  operatorTime
	out   tablePort[Windowed[K], A]
	each  bool

	flushes bool                     // what changed is told when the transaction closes
	headers lastHeaders[Windowed[K]] // of the records that made the rows; for flush

	expiry *expiry
	finals *followFinals[K, A] // nil if nobody asks

	near   []slideRow              // the rows around the record at hand
	values []A                     // and their values
	found  []state.WindowRow[K, A] // scratch of find
	steps  []slideStep
}

// A slidePort does to the windows of one stream's records what the rules say.
type slidePort[K, V, A any] struct {
	*slideUpdates[K, A]
	f func(key K, value V, row A, ok bool) (A, bool, error)
}

func (p *slidePort[K, V, A]) push(r Record[K, V]) error {
	if p.o.lacks(p.node, r.NoKey, r.NoValue) {
		return nil
	}
	ms := r.Time.UnixMilli()
	now := p.time.observe(ms)
	if ms < p.rules.open(now) {
		p.o.drop(p.node, late)
		return nil
	}
	if err := p.find(r.Key, ms, now); err != nil {
		return p.o.rowsFailed(p.node, err)
	}
	for range p.rules.missed(p.near, ms, now) {
		p.o.drop(p.node, late)
	}
	p.steps = p.rules.plan(p.steps[:0], p.near, ms, now)
	for _, s := range p.steps {
		if err := p.step(r, s); err != nil {
			return err
		}
	}
	if p.finals == nil {
		p.expiry.run()
	}
	return nil
}

// find reads the rows that the rules want to see.
func (p *slideUpdates[K, A]) find(key K, ms, now int64) (err error) {
	clear(p.values)
	p.near, p.values = p.near[:0], p.values[:0]
	from, to := p.rules.span(ms, now)
	clear(p.found)
	if p.found, err = p.rows.AppendFetch(p.found[:0], key, from, to); err != nil {
		return err
	}
	for _, row := range p.found {
		p.near = append(p.near, p.rules.row(row.Start, row.Time))
		p.values = append(p.values, row.Value)
	}
	return nil
}

// step changes or makes one row.
func (p *slidePort[K, V, A]) step(r Record[K, V], s slideStep) (err error) {
	c := change[Windowed[K], A]{key: windowed(r.Key, s.row.start, windowEnd(s.row.start, p.rules.apart)), ms: s.row.last, headers: r.Headers}
	if s.from >= 0 && !p.near[s.from].gone {
		c.new, c.hasNew = p.values[s.from], true
	}
	if s.own && p.near[s.from].shows() {
		c.old, c.hasOld = c.new, true
	}
	if s.adds {
		p.o.enter(p.node)
		if c.new, c.hasNew, err = p.f(r.Key, r.Value, c.new, c.hasNew); err != nil {
			return p.o.fail(p.node, runtime.OpFunction, err)
		}
		s.row.gone = !c.hasNew
	}
	if !c.hasNew {
		var none A
		c.new = none
	}
	if err := p.write(s.row, c); err != nil {
		return p.o.rowsFailed(p.node, err)
	}
	if s.row.base {
		return nil
	}
	return p.tell(c)
}

func (p *slideUpdates[K, A]) write(row slideRow, c change[Windowed[K], A]) error {
	if err := p.rows.Put(c.key.Key, row.start, c.new, p.rules.time(row)); err != nil {
		return err
	}
	p.expiry.put(row.start)
	if row.base {
		return nil
	}
	return p.finals.changed(c.key.Key, row.start+p.rules.apart, waiting[A]{c.old, c.hasOld}, waiting[A]{c.new, c.hasNew})
}

func (p *slideUpdates[K, A]) tell(c change[Windowed[K], A]) error {
	switch {
	case p.each:
		return p.out.change(c)
	case p.flushes:
		if err := p.headers.note(c.key, c.headers); err != nil {
			return p.o.rowsFailed(p.node, err)
		}
	}
	return nil
}

// flush tells what became of each window in the transaction.
func (p *slideUpdates[K, A]) flush() error {
	defer p.headers.forget()
	return p.rows.Changed(func(w state.WindowChanged[K, A]) error {
		c := change[Windowed[K], A]{key: windowed(w.Key, w.Start, windowEnd(w.Start, p.rules.apart))}
		row := p.rules.row(w.Start, w.Time)
		if w.OK && row.shows() {
			c.new, c.hasNew = w.New, true
		}
		if w.OldOK && p.rules.row(w.Start, w.OldTime).shows() {
			c.old, c.hasOld = w.Old, true
		}
		if !c.hasNew && !c.hasOld {
			return nil
		}
		c.ms = row.last
		var err error
		if c.headers, err = p.headers.of(c.key); err != nil {
			return p.o.rowsFailed(p.node, err)
		}
		return p.o.settle(func() error { return p.out.change(c) })
	})
}

// observe is [follower.observe].
func (p *slideUpdates[K, A]) observe(ms int64) { p.time.observe(ms) }

// openEnd is [follower.openEnd].
func (p *slideUpdates[K, A]) openEnd() int64 {
	if p.time.now == runtime.NoTime {
		return runtime.NoTime
	}
	return p.time.now - p.rules.grace
}

// ending is [follower.ending].
func (p *slideUpdates[K, A]) ending(from int64) iter.Seq2[followRow[K, A], error] {
	return func(yield func(followRow[K, A], error) bool) {
		for r, err := range p.rows.ByStart(from-p.rules.apart, math.MaxInt64) {
			if err == nil && !p.rules.row(r.Start, r.Time).shows() {
				continue
			}
			key := windowed(r.Key, r.Start, windowEnd(r.Start, p.rules.apart))
			if !yield(followRow[K, A]{key, r.Value, r.Time}, err) {
				return
			}
		}
	}
}

// expire is [follower.expire].
func (p *slideUpdates[K, A]) expire() { p.expiry.run() }
