package stream

import (
	"fmt"
	"iter"
	"math"
	"time"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/state"
	"github.com/semelstream/semel/stream/internal/graph"
	"github.com/semelstream/semel/stream/internal/runtime"
)

// keptSessions is a declared store of rows by key and session, with its types
// and its table.
type keptSessions[K, A any] struct {
	store  *graph.Store
	node   *graph.Node
	id     int // of the shared opening
	key    codec.Codec[K]
	value  codec.Codec[A]
	rules  session
	table  *tableNode[Windowed[K], A]
	finals *followFinalsOf[K, A]
	touch  bool // the keys of the sources before node are those of the rows
}

// keepSessions declares the store of node's rows.
func keepSessions[K, A any](b *Builder, node *graph.Node, store string, set settings, rules session, key codec.Codec[K], value codec.Codec[A]) *keptSessions[K, A] {
	id := -1 - len(b.graph.Stores) // no node has it
	s := &keptSessions[K, A]{
		store: b.addStore(node, store, graph.Session, set), node: node, id: id, rules: rules,
		key:   codecFor(b, node, set.keyCodec, key),
		value: codecFor(b, node, set.valueCodec, value),
	}
	b.autoName(node, store)
	noPanes(b, node, set, "sessions")
	withCodecs(s.store, s.key, s.value).Retain = retained(b, node, set, rules.gap+rules.grace)
	s.finals = &followFinalsOf[K, A]{node: node, store: s.store, key: s.key, value: s.value}
	s.table = &tableNode[Windowed[K], A]{
		b: b, node: node, key: sessionKey[K]{s.key}, value: s.value, finals: s.finals.source(),
		openRows: func(o *opener) (rows[Windowed[K], A], error) {
			rows, err := s.open(o)
			return sessionTable[K, A]{rows}, err
		},
	}
	return s
}

// retained is for how long rows are kept: as long as they take records, which
// is least, or as the user says.
func retained(b *Builder, n *graph.Node, set settings, least int64) int64 {
	if set.retainSet && set.retain < least {
		b.problem(n, "Retain(%v) is less than records are taken for, %v; give at least that, or leave it out",
			milliseconds(set.retain), milliseconds(least))
	}
	return max(set.retain, least)
}

func milliseconds(ms int64) time.Duration { return time.Duration(ms) * time.Millisecond }

// open gives the store of o's task.
func (s *keptSessions[K, A]) open(o *opener) (*state.Session[K, A], error) {
	return share(o, &graph.Node{ID: s.id}, func() (*state.Session[K, A], error) {
		rows, err := state.OpenSession(o.task.DB(), s.store.Name, s.key, s.value)
		if err != nil {
			return nil, fmt.Errorf("opening store %q: %w", s.store.Name, err)
		}
		return rows, nil
	})
}

// sessionTable are the rows of a table that has a store by key and session.
type sessionTable[K, A any] struct{ rows *state.Session[K, A] }

func (t sessionTable[K, A]) row(w Windowed[K]) (A, int64, bool, error) {
	return t.rows.Get(w.Key, w.Start.UnixMilli(), w.End.UnixMilli())
}

// rows opens what ports change sessions with.
func (s *keptSessions[K, A]) rows(o *opener, each bool) (*sessionRows[K, A], error) {
	return share(o, s.node, func() (*sessionRows[K, A], error) {
		rows, err := s.open(o)
		if err != nil {
			return nil, err
		}
		p := &sessionRows[K, A]{o: o, node: s.node, rules: s.rules, rows: rows, time: o.operatorTime(s.node), each: each}
		if p.out, err = s.table.open(o); err != nil {
			return nil, err
		}
		// A session is open for a millisecond longer than Kafka Streams' store
		// shows it.
		p.expiry = expiryOf(o, s.node, windowEnd(s.store.Retain, 1), rows.Expire)
		p.flushes = !each && heard(p.out)
		if p.flushes {
			p.last.key = s.table.key
			o.onFlush(s.node, p.flush)
		}
		if s.touch {
			o.touchAhead(s.node, rows.Touch)
		}
		p.finals, err = s.finals.open(o, p)
		return p, err
	})
}

// sessionRows are the sessions of a task and what is told of them.
type sessionRows[K, A any] struct {
	o     *opener
	node  *graph.Node
	rules session
	rows  *state.Session[K, A]
	time  operatorTime
	out   tablePort[Windowed[K], A]
	each  bool
	old   []state.SessionRow[K, A] // that the record at hand joins, in order of their ends

	flushes bool                     // what changed is told when the transaction closes
	last    lastHeaders[Windowed[K]] // of the records that made the rows; for flush

	expiry *expiry
	finals *followFinals[K, A] // nil if nobody asks
}

// find gathers the sessions that a record at ms becomes one with, and says from
// when to when that is.
func (p *sessionRows[K, A]) find(key K, ms, now int64) (joined period, err error) {
	joined = period{ms, ms}
	from, to := p.rules.reach(ms, now)
	clear(p.old)
	p.old, err = p.rows.AppendOverlapping(p.old[:0], key, from, to)
	for _, row := range p.old {
		joined = joined.with(period{row.Start, row.End})
	}
	return joined, err
}

// write puts a session in place of those that it was joined of, and tells of
// it.
func (p *sessionRows[K, A]) write(key K, s period, row A, has bool, headers Headers) error {
	if err := p.replace(key, s, row, has); err != nil {
		return p.o.rowsFailed(p.node, err)
	}
	if p.finals == nil {
		p.expiry.run()
	}
	switch {
	case p.each:
		return p.tellEach(key, s, row, has, headers)
	case p.flushes:
		return p.note(key, s, headers)
	}
	return nil
}

func (p *sessionRows[K, A]) replace(key K, s period, row A, has bool) error {
	for _, old := range p.old {
		if err := p.finals.changed(key, old.End, waiting[A]{old.Value, true}, waiting[A]{}); err != nil {
			return err
		}
		if has && (period{old.Start, old.End}) == s {
			continue // it is written over
		}
		if err := p.rows.Delete(key, old.Start, old.End, old.End); err != nil {
			return err
		}
	}
	if !has {
		return nil
	}
	p.expiry.put(s.end)
	if err := p.rows.Put(key, s.start, s.end, row, s.end); err != nil {
		return err
	}
	return p.finals.changed(key, s.end, waiting[A]{}, waiting[A]{row, true})
}

// observe is [follower.observe].
func (p *sessionRows[K, A]) observe(ms int64) { p.time.observe(ms) }

// openEnd is [follower.openEnd].
func (p *sessionRows[K, A]) openEnd() int64 {
	if p.time.now == runtime.NoTime {
		return runtime.NoTime
	}
	return p.rules.open(p.time.now)
}

// ending is [follower.ending].
func (p *sessionRows[K, A]) ending(from int64) iter.Seq2[followRow[K, A], error] {
	return func(yield func(followRow[K, A], error) bool) {
		for r, err := range p.rows.ByEnd(from, math.MaxInt64) {
			if !yield(followRow[K, A]{windowed(r.Key, r.Start, r.End), r.Value, r.End}, err) {
				return
			}
		}
	}
}

// expire is [follower.expire].
func (p *sessionRows[K, A]) expire() { p.expiry.run() }

// tellEach tells of one record's effect. As in Kafka Streams the old sessions
// are deleted first, unless a session of one point stays one.
func (p *sessionRows[K, A]) tellEach(key K, s period, row A, has bool, headers Headers) error {
	c := change[Windowed[K], A]{key: windowed(key, s.start, s.end), new: row, hasNew: has, ms: s.end, headers: headers}
	for _, old := range p.old {
		if s.point() {
			c.old, c.hasOld = old.Value, true
			break
		}
		gone := change[Windowed[K], A]{key: windowed(key, old.Start, old.End), old: old.Value, hasOld: true, ms: old.End, headers: headers}
		if err := p.out.change(gone); err != nil {
			return err
		}
	}
	if !has {
		var none A
		c.new = none
	}
	return p.out.change(c)
}

// note keeps the headers for what flush tells.
func (p *sessionRows[K, A]) note(key K, s period, headers Headers) error {
	err := p.last.note(windowed(key, s.start, s.end), headers)
	for _, old := range p.old {
		if err == nil && (period{old.Start, old.End}) != s {
			err = p.last.note(windowed(key, old.Start, old.End), headers)
		}
	}
	if err != nil {
		return p.o.rowsFailed(p.node, err)
	}
	return nil
}

// flush tells what became of each session in the transaction. One that came
// and was absorbed again is not told.
func (p *sessionRows[K, A]) flush() error {
	defer p.last.forget()
	return p.rows.Changed(func(c state.SessionChanged[K, A]) error {
		key := windowed(c.Key, c.Start, c.End)
		headers, err := p.last.of(key)
		if err != nil {
			return p.o.rowsFailed(p.node, err)
		}
		return p.o.settle(func() error {
			return p.out.change(change[Windowed[K], A]{
				key: key, old: c.Old, new: c.New, hasOld: c.OldOK, hasNew: c.OK, ms: c.End, headers: headers,
			})
		})
	})
}
