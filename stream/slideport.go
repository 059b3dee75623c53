package stream

import (
	"iter"
	"math"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/state"
	"github.com/semelstream/semel/stream/internal/graph"
	"github.com/semelstream/semel/stream/internal/runtime"
)

// aggregateSliding is what all aggregates by sliding windows are; see
// [aggregateWindows].
func aggregateSliding[K, V, A any](g WindowedGroup[K, V], kind, store string, opts []WindowOption, value codec.Codec[A], isNil bool,
	f func(key K, value V, row A, ok bool) (A, bool, error)) WindowedTable[K, A] {

	set := settingsOf(opts)
	if set.keyCodec == nil {
		set.keyCodec = g.g.set.keyCodec
	}
	s := g.g.byKey(store)
	b, w := s.n.b, g.w
	node := b.add(kind, set, s.n.node)
	b.needFunc(node, isNil)
	rules := slide{w.size, w.grace}
	if w.wrong != "" {
		b.problem(node, "%s", w.wrong)
	}
	kept := keepWindows(b, node, store, set, retained(b, node, set, 2*rules.apart+rules.grace), s.n.key, value)
	kept.store.NeverEarly = true // a result has the time of a record in its window
	kept.store.ByKey = true
	finals := &followFinalsOf[K, A]{node: node, store: kept.store, key: kept.key, value: kept.value}
	n := newWindowedTable(b, node, kept, keyOf(&w, kept.key))
	b.shapes[store] = shape{end: w.endOf, shows: func(start, ms int64) bool { return rules.row(start, ms).shows() }}
	n.finals = finals.source()
	n.openRows = func(o *opener) (rows[Windowed[K], A], error) {
		rows, err := kept.open(o)
		return slideTable[K, A]{rules, rows}, err
	}
	s.n.use(func(o *opener) (port[K, V], error) {
		rows, err := kept.open(o)
		if err != nil {
			return nil, err
		}
		p := &slidePort[K, V, A]{o: o, node: node, rules: rules, rows: rows, f: f, each: set.emitEach, time: o.operatorTime(node)}
		if p.out, err = n.open(o); err != nil {
			return nil, err
		}
		// The rules look back further than Kafka Streams' store does.
		p.expiry = expiryOf(o, node, windowEnd(kept.store.Retain, 2), rows.Expire)
		p.flushes = !p.each && heard(p.out)
		if p.flushes {
			p.headers.key = n.key
			o.onFlush(node, p.flush)
		}
		p.finals, err = finals.open(o, p)
		return p, err
	})
	return WindowedTable[K, A]{n}
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

// A slidePort does to a record's windows what the rules say.
type slidePort[K, V, A any] struct {
	o     *opener
	node  *graph.Node
	rules slide
	rows  *state.Window[K, A]
	f     func(key K, value V, row A, ok bool) (A, bool, error)
	time  operatorTime
	out   tablePort[Windowed[K], A]
	each  bool

	flushes bool                     // what changed is told when the transaction closes
	headers lastHeaders[Windowed[K]] // of the records that made the rows; for flush

	expiry *expiry
	finals *followFinals[K, A] // nil if nobody asks

	near   []slideRow // the rows around the record at hand
	values []A        // and their values
	steps  []slideStep
}

func (p *slidePort[K, V, A]) push(r Record[K, V]) error {
	switch {
	case r.NoKey:
		p.o.drop(p.node, noKey)
		return nil
	case r.NoValue:
		p.o.drop(p.node, tombstoned)
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
func (p *slidePort[K, V, A]) find(key K, ms, now int64) error {
	clear(p.values)
	p.near, p.values = p.near[:0], p.values[:0]
	from, to := p.rules.span(ms, now)
	for row, err := range p.rows.Fetch(key, from, to) {
		if err != nil {
			return err
		}
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

func (p *slidePort[K, V, A]) write(row slideRow, c change[Windowed[K], A]) error {
	if err := p.rows.Put(c.key.Key, row.start, c.new, p.rules.time(row)); err != nil {
		return err
	}
	p.expiry.put(row.start)
	if row.base {
		return nil
	}
	return p.finals.changed(c.key.Key, row.start+p.rules.apart, waiting[A]{c.old, c.hasOld}, waiting[A]{c.new, c.hasNew})
}

func (p *slidePort[K, V, A]) tell(c change[Windowed[K], A]) error {
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
func (p *slidePort[K, V, A]) flush() error {
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
func (p *slidePort[K, V, A]) observe(ms int64) { p.time.observe(ms) }

// openEnd is [follower.openEnd].
func (p *slidePort[K, V, A]) openEnd() int64 {
	if p.time.now == runtime.NoTime {
		return runtime.NoTime
	}
	return p.time.now - p.rules.grace
}

// ending is [follower.ending].
func (p *slidePort[K, V, A]) ending(from int64) iter.Seq2[followRow[K, A], error] {
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
func (p *slidePort[K, V, A]) expire() { p.expiry.run() }
