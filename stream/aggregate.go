package stream

import (
	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/state"
	"github.com/semelstream/semel/stream/internal/graph"
	"github.com/semelstream/semel/stream/internal/runtime"
)

// Aggregate adds each record to its key's row, which starts as A's zero
// value.
func (g Grouped[K, V]) Aggregate[A any](store string, add func(key K, value V, acc A) A, opts ...AggregateOption) Table[K, A] {
	return aggregate(g, "aggregate", store, opts, nil, add == nil, func(k K, v V, row A, _ bool) (A, bool, error) {
		return add(k, v, row), true, nil
	})
}

// Update is the general aggregate: f gets the row, if there is one, and
// returns the new row, or false to have none.
func (g Grouped[K, V]) Update[A any](store string, f func(key K, value V, row A, ok bool) (A, bool), opts ...AggregateOption) Table[K, A] {
	return aggregate(g, "update", store, opts, nil, f == nil, trying(f))
}

// trying is f as a function that can fail.
func trying[K, V, A any](f func(key K, value V, row A, ok bool) (A, bool)) func(key K, value V, row A, ok bool) (A, bool, error) {
	return func(k K, v V, row A, ok bool) (A, bool, error) {
		row, ok = f(k, v, row, ok)
		return row, ok, nil
	}
}

// TryUpdate is Update for a function that can fail.
func (g Grouped[K, V]) TryUpdate[A any](store string, f func(key K, value V, row A, ok bool) (A, bool, error), opts ...AggregateOption) Table[K, A] {
	return aggregate(g, "update", store, opts, nil, f == nil, f)
}

// aggregate is what all aggregates are: f makes a key's new row of a record
// and the old row. The stream is repartitioned first where that is needed;
// each aggregate of a [Grouped] has a topic of its own, named after its store.
func aggregate[K, V, A any](g Grouped[K, V], kind, store string, opts []AggregateOption, value codec.Codec[A], isNil bool,
	f func(key K, value V, row A, ok bool) (A, bool, error)) Table[K, A] {

	b, set := g.s.at().b, settingsOf(opts)
	s := g.byKey(store)
	if set.keyCodec == nil {
		set.keyCodec = g.set.keyCodec
	}
	node := b.add(kind, set, s.n.node)
	b.needFunc(node, isNil)
	a := newAggregation(b, node, store, set, s.n.key, value)
	a.touch = set.keyCodec == nil && s.n.key != nil // encoded as the source has it
	feedAggregation(a, s, f)
	return Table[K, A]{a.n}
}

// byKey is the stream partitioned by its key: behind a repartition topic named
// so if an operator before may have changed it.
func (g Grouped[K, V]) byKey(topic string) Stream[K, V] {
	if g.s.at().rekeyed {
		return repartition(g.s, topic, g.set)
	}
	return g.s
}

// An aggregation is rows that one stream or several update.
type aggregation[K, A any] struct {
	node  *graph.Node
	kept  *keptStore[K, A]
	n     *tableNode[K, A]
	each  bool
	touch bool // the keys of the sources before node are those of the rows
}

// newAggregation declares the rows of node.
func newAggregation[K, A any](b *Builder, node *graph.Node, store string, set settings, key codec.Codec[K], value codec.Codec[A]) *aggregation[K, A] {
	kept := keep(b, node, store, set, key, value)
	a := &aggregation[K, A]{node: node, kept: kept, n: newTable(b, node, kept), each: set.emitEach}
	if !a.each {
		a.n.openTold = func(o *opener) (rows[K, A], error) { return &toldRows[K, A]{o: o, a: a}, nil }
	}
	return a
}

// feedAggregation makes s update the rows by f.
func feedAggregation[K, V, A any](a *aggregation[K, A], s Stream[K, V], f func(key K, value V, row A, ok bool) (A, bool, error)) {
	s.n.use(func(o *opener) (port[K, V], error) {
		rows, err := a.open(o)
		return &aggregatePort[K, V, A]{rows, f}, err
	})
}

// open opens the rows once for all that update them.
func (a *aggregation[K, A]) open(o *opener) (*aggregateRows[K, A], error) {
	return share(o, a.node, func() (*aggregateRows[K, A], error) {
		kv, err := a.kept.open(o)
		if err != nil {
			return nil, err
		}
		out, err := a.n.open(o)
		if err != nil {
			return nil, err
		}
		if a.touch {
			o.touchAhead(a.node, kv.Touch)
		}
		p := &aggregateRows[K, A]{o: o, node: a.node, kv: kv, out: out, each: a.each}
		if !p.each {
			p.headers.key = a.kept.key
			o.onFlush(a.node, p.flush)
		}
		return p, nil
	})
}

// aggregateRows are rows that are updated at once, so that whoever looks at
// them sees each record's effect. What follows is told of the new rows at once
// too if each is set, else when the transaction closes.
type aggregateRows[K, A any] struct {
	o       *opener
	node    *graph.Node
	kv      *state.KV[K, A]
	out     tablePort[K, A]
	each    bool
	headers lastHeaders[K] // of the records that made the rows, unless each
	untold  bool           // rows have changed since the last flush, unless each
}

// toldRows are an aggregate's rows as what follows knows them: until the
// transaction closes, as they were when it began. The aggregate is found when
// it is first asked, since it is opened after what follows it.
type toldRows[K, A any] struct {
	o *opener
	a *aggregation[K, A]
	p *aggregateRows[K, A]
}

func (r *toldRows[K, A]) row(key K) (v A, ms int64, ok bool, err error) {
	if r.p == nil {
		if r.p, err = r.a.open(r.o); err != nil {
			return v, 0, false, err
		}
	}
	if r.p.untold {
		return r.p.kv.Before(key)
	}
	return r.p.kv.Get(key)
}

// An aggregatePort makes rows of the records of one stream.
type aggregatePort[K, V, A any] struct {
	*aggregateRows[K, A]
	f func(key K, value V, row A, ok bool) (A, bool, error)
}

func (p *aggregatePort[K, V, A]) push(r Record[K, V]) error {
	if p.o.lacks(p.node, r.NoKey, r.NoValue) {
		return nil
	}
	ref, old, oldMs, had, err := p.kv.Find(r.Key)
	if err != nil {
		return p.o.rowsFailed(p.node, err)
	}
	p.o.enter(p.node)
	row, has, err := p.f(r.Key, r.Value, old, had)
	if err != nil {
		return p.o.fail(p.node, runtime.OpFunction, err)
	}
	ms := r.Time.UnixMilli()
	if had {
		ms = max(ms, oldMs)
	}
	switch {
	case has:
		p.kv.Set(ref, row, ms)
	case had:
		p.kv.Remove(ref, ms)
	}
	if !p.each {
		return p.note(r.Key, r.Headers)
	}
	if !has {
		var none A
		row = none
	}
	return p.out.change(change[K, A]{
		key: r.Key, old: old, new: row, hasOld: had, hasNew: has, ms: ms, headers: r.Headers,
	})
}

func (p *aggregateRows[K, A]) note(key K, headers Headers) error {
	p.untold = true
	if err := p.headers.note(key, headers); err != nil {
		return p.o.rowsFailed(p.node, err)
	}
	return nil
}

// flush tells what became of each row in the transaction: its value before
// and now, and not what came in between. A row that came and went is not told.
func (p *aggregateRows[K, A]) flush() error {
	defer p.headers.forget()
	err := p.kv.Changed(func(c state.Changed[K, A]) error {
		headers, err := p.headers.of(c.Key)
		if err != nil {
			return p.o.rowsFailed(p.node, err)
		}
		mark := p.o.task.Savepoint()
		return p.o.task.Settle(mark, p.tell(change[K, A]{
			key: c.Key, old: c.Old, new: c.New, hasOld: c.OldOK, hasNew: c.OK, ms: c.Time, headers: headers,
		}))
	})
	p.untold = err != nil
	return err
}

// tell sends one change. A panic behind it is the failure of this change alone,
// which the policy may skip.
func (p *aggregateRows[K, A]) tell(c change[K, A]) (err error) {
	defer p.o.in.recovered(&err)
	return p.out.change(c)
}
