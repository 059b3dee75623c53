package stream

import (
	"time"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/stream/internal/graph"
)

// aggregateSessions is what all aggregates of sessions are: add makes a
// session's row of a record and the row before; merge puts a row into acc, which
// is that of the sessions before it, if there were any.
func aggregateSessions[K, V, A any](g SessionGroup[K, V], kind, store string, opts []WindowOption, value codec.Codec[A], isNil bool,
	add func(key K, value V, row A, ok bool) (A, bool), merge func(key K, acc A, ok bool, row A) A) WindowedTable[K, A] {

	set := settingsOf(opts)
	if set.keyCodec == nil {
		set.keyCodec = g.g.set.keyCodec
	}
	s := g.g.byKey(store)
	b := s.n.b
	node := b.add(kind, set, s.n.node)
	b.needFunc(node, isNil)
	kept := keepSessions(b, node, store, set, sessionRules(b, node, g.gap, g.grace), s.n.key, value)
	kept.touch = set.keyCodec == nil && s.n.key != nil // encoded as the source has it
	feedSessions(kept, s, set.emitEach, add, merge)
	return WindowedTable[K, A]{kept.table}
}

// feedSessions makes s update the rows of kept by add and merge.
func feedSessions[K, V, A any](kept *keptSessions[K, A], s Stream[K, V], each bool,
	add func(key K, value V, row A, ok bool) (A, bool), merge func(key K, acc A, ok bool, row A) A) {

	s.n.use(func(o *opener) (port[K, V], error) {
		rows, err := kept.rows(o, each)
		return &sessionPort[K, V, A]{rows, add, merge}, err
	})
}

// sessionRules are the rules of n's sessions, if they can be.
func sessionRules(b *Builder, n *graph.Node, gap, grace time.Duration) session {
	for _, d := range []struct {
		name string
		of   time.Duration
	}{{"gap", gap}, {"grace", grace}} {
		if d.of < 0 || d.of%time.Millisecond != 0 {
			b.problem(n, "%s %v is no whole number of milliseconds from 0 on; give it one", d.name, d.of)
		}
	}
	return session{gap.Milliseconds(), grace.Milliseconds()}
}

// A sessionPort adds each record to its key's sessions.
type sessionPort[K, V, A any] struct {
	*sessionRows[K, A]
	add   func(key K, value V, row A, ok bool) (A, bool)
	merge func(key K, acc A, ok bool, row A) A
}

func (p *sessionPort[K, V, A]) push(r Record[K, V]) error {
	if p.o.lacks(p.node, r.NoKey, r.NoValue) {
		return nil
	}
	ms := r.Time.UnixMilli()
	now := p.time.observe(ms)
	joined, err := p.find(r.Key, ms, now)
	if err != nil {
		return p.o.rowsFailed(p.node, err)
	}
	if joined.end < p.rules.open(now) {
		p.o.drop(p.node, late)
		return nil
	}
	p.o.enter(p.node)
	var row A
	for i, old := range p.old {
		row = p.merge(r.Key, row, i > 0, old.Value)
	}
	row, has := p.add(r.Key, r.Value, row, len(p.old) > 0)
	return p.write(r.Key, joined, row, has, r.Headers)
}
