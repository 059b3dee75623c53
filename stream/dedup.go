package stream

import (
	"math"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/state"
	"github.com/semelstream/semel/stream/internal/graph"
	"github.com/semelstream/semel/stream/internal/runtime"
)

// Dedup passes the first record of each id and drops those less than ttl from
// it, before or after, by record time; a duplicate does not begin a new ttl.
// Records that are ttl or more behind the newest one can no longer be judged
// and are dropped as late. What is dropped is counted, with the reason
// "duplicate" or "late".
//
// Ids are remembered where the key is: records with one id must have one key.
// If an operator before may have changed the key, the records go through a
// repartition topic named after store. Records without key or value are
// dropped. [KeyCodec] is for the ids. The function may be called for a record
// before those ahead of it are through.
func (s Stream[K, V]) Dedup[ID any](store string, id func(key K, value V) ID, ttl time.Duration, opts ...StoreOption) Stream[K, V] {
	b, set, in := s.at().b, settingsOf(opts), s
	if s.n.rekeyed {
		in = repartition(s, store, settings{})
	}
	n := &streamNode[K, V]{b: b, key: in.n.key, value: in.n.value}
	n.node = b.add("dedup", set, in.n.node)
	b.needFunc(n.node, id == nil)
	if ttl <= 0 || ttl%time.Millisecond != 0 || ttl.Milliseconds() > math.MaxInt64/idTTLs {
		b.problem(n.node, "its ttl of %v is no whole number of milliseconds from 1 on; give it one", ttl)
		ttl = time.Second
	}
	seen := seenIDs{ttl.Milliseconds()}
	kept := keepWindows(b, n.node, store, set, seen.retain(), codec.Codec[ID](nil), codec.Int64)
	kept.store.Windows = "stretches of " + ttl.String()
	kept.store.Once = true
	kept.store.NeverEarly = true // the time of a record lies in its stretch
	in.n.use(func(o *opener) (port[K, V], error) {
		rows, err := kept.open(o)
		if err != nil {
			return nil, err
		}
		out, err := n.open(o)
		p := &dedupPort[K, V, ID]{o: o, node: n.node, seen: seen, rows: rows, id: id, out: out}
		o.keepTime(n.node.Name+".time", func() int64 { return p.time.now }, p.resume)
		p.time = operatorTime{o.number(runtime.NoTime)}
		if p.next = upcomingOf(o, in.n, kept.key, id); p.next != nil {
			o.lookAhead(in.n.node, p.touch)
		}
		return p, err
	})
	return Stream[K, V]{n}
}

// seenIDs is where ids are remembered. Time is cut into stretches of one ttl. Of
// an id at most one record passes in a stretch, since two of them would be less
// than a ttl apart: its row is the stretch and the id, with the record's time.
// What a record must be compared with is in its own stretch and the two beside
// it, so nothing is ever searched for.
type seenIDs struct{ ttl int64 }

// idTTLs is for how many ttls ids are kept: a record that is not late may be
// almost one ttl behind the newest, what it is compared with another one
// earlier, and the stretch of that begins up to a third one before.
const idTTLs = 3

func (s seenIDs) retain() int64 { return idTTLs * s.ttl }

// stretch is where the stretch of a time begins.
func (s seenIDs) stretch(ms int64) int64 { return ms - ms%s.ttl }

// late says that not all that a record would be compared with is remembered.
func (s seenIDs) late(ms, now int64) bool { return ms <= now-s.ttl }

// expired is the first stretch that is still needed.
func (s seenIDs) expired(now int64) int64 { return s.stretch(max(now-2*s.ttl+1, 0)) }

type dedupPort[K, V, ID any] struct {
	o    *opener
	node *graph.Node
	seen seenIDs
	rows *state.Window[ID, int64]
	id   func(key K, value V) ID
	time operatorTime
	next *upcoming[K, V, ID] // nil if ids are not known ahead
	out  port[K, V]
}

// touch makes the places ready that the next records' ids need: new ids are
// nowhere, and to know that is a look at memory that nobody used.
func (p *dedupPort[K, V, ID]) touch(recs []*kgo.Record) {
	p.rows.Touch(p.seen.stretch(max(p.time.now, 0)), p.next.look(recs))
}

func (p *dedupPort[K, V, ID]) idOf(r Record[K, V]) ID {
	if p.next == nil {
		return p.id(r.Key, r.Value)
	}
	return p.next.of(r.Key, r.Value)
}

// resume goes on with the ids that were remembered.
func (p *dedupPort[K, V, ID]) resume(now int64) {
	p.time.set(now)
	p.rows.Expire(p.seen.expired(now))
}

func (p *dedupPort[K, V, ID]) push(r Record[K, V]) error {
	if p.o.lacks(p.node, r.NoKey, r.NoValue) {
		return nil
	}
	ms := r.Time.UnixMilli()
	now := p.time.observe(ms)
	if p.seen.late(ms, now) {
		p.o.drop(p.node, late)
		return nil
	}
	p.o.enter(p.node)
	id := p.idOf(r)
	p.rows.Expire(p.seen.expired(now))
	first, err := p.first(id, ms, now)
	if err != nil {
		return p.o.rowsFailed(p.node, err)
	}
	if !first {
		p.o.drop(p.node, duplicate)
		return nil
	}
	return p.out.push(r)
}

// first says whether no record of the id has passed less than a ttl from ms,
// and remembers that this one does.
func (p *dedupPort[K, V, ID]) first(id ID, ms, now int64) (bool, error) {
	stretch := p.seen.stretch(ms)
	for _, start := range [2]int64{stretch - p.seen.ttl, stretch + p.seen.ttl} {
		if start < 0 || start > now { // nothing has passed there
			continue
		}
		passed, _, ok, err := p.rows.Get(id, start)
		if err != nil || ok && distance(ms, passed) < p.seen.ttl {
			return false, err
		}
	}
	ref, _, _, ok, err := p.rows.Find(id, stretch)
	if err != nil || ok {
		return false, err
	}
	p.rows.Set(ref, ms, ms)
	return true, nil
}

func distance(a, b int64) int64 { return max(a, b) - min(a, b) }
