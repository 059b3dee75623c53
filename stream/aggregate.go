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
	return aggregate(g, "update", store, opts, nil, f == nil, func(k K, v V, row A, ok bool) (A, bool, error) {
		row, ok = f(k, v, row, ok)
		return row, ok, nil
	})
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

	s, b := g.s, g.s.at().b
	set := settingsOf(opts)
	if s.n.rekeyed {
		s = repartition(s, store, g.set)
	}
	if set.keyCodec == nil {
		set.keyCodec = g.set.keyCodec
	}
	node := b.add(kind, set, s.n.node)
	b.needFunc(node, isNil)
	kept := keep(b, node, store, set, s.n.key, value)
	n := newTable(b, node, kept)
	s.n.use(func(o *opener) (port[K, V], error) {
		kv, err := kept.open(o)
		if err != nil {
			return nil, err
		}
		out, err := n.open(o)
		if err != nil {
			return nil, err
		}
		if set.keyCodec == nil && s.n.key != nil { // encoded as the source has it
			o.touchAhead(node, kv.Touch)
		}
		p := &aggregatePort[K, V, A]{o: o, node: node, kv: kv, f: f, out: out, each: set.emitEach}
		if !p.each {
			p.headers.key = kept.key
			o.onFlush(node, p.flush)
		}
		return p, nil
	})
	return Table[K, A]{n}
}

// An aggregatePort updates rows at once, so that whoever looks at them sees
// each record's effect. It tells of the new rows at once too if each is set,
// else when the transaction closes.
type aggregatePort[K, V, A any] struct {
	o       *opener
	node    *graph.Node
	kv      *state.KV[K, A]
	f       func(key K, value V, row A, ok bool) (A, bool, error)
	out     tablePort[K, A]
	each    bool
	headers lastHeaders[K] // of the records that made the rows, unless each
}

func (p *aggregatePort[K, V, A]) push(r Record[K, V]) error {
	switch {
	case r.NoKey:
		p.o.drop(p.node, noKey)
		return nil
	case r.NoValue:
		p.o.drop(p.node, tombstoned)
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
		return p.note(r)
	}
	if !has {
		var none A
		row = none
	}
	return p.out.change(change[K, A]{
		key: r.Key, old: old, new: row, hasOld: had, hasNew: has, ms: ms, headers: r.Headers,
	})
}

func (p *aggregatePort[K, V, A]) note(r Record[K, V]) error {
	if err := p.headers.note(r.Key, r.Headers); err != nil {
		return p.o.rowsFailed(p.node, err)
	}
	return nil
}

// flush tells what became of each row in the transaction: its value before
// and now, and not what came in between. A row that came and went is not told.
func (p *aggregatePort[K, V, A]) flush() error {
	defer p.headers.forget()
	return p.kv.Changed(func(c state.Changed[K, A]) error {
		headers, err := p.headers.of(c.Key)
		if err != nil {
			return p.o.rowsFailed(p.node, err)
		}
		mark := p.o.task.Savepoint()
		return p.o.task.Settle(mark, p.tell(change[K, A]{
			key: c.Key, old: c.Old, new: c.New, hasOld: c.OldOK, hasNew: c.OK, ms: c.Time, headers: headers,
		}))
	})
}

// tell sends one change. A panic behind it is the failure of this change alone,
// which the policy may skip.
func (p *aggregatePort[K, V, A]) tell(c change[K, A]) (err error) {
	defer p.o.in.recovered(&err)
	return p.out.change(c)
}
