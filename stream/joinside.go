package stream

import (
	"math"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/state"
	"github.com/semelstream/semel/stream/internal/runtime"
)

// A joinSide is one side of a stream-stream join within a task: A are its own
// values, B those of the other side.
type joinSide[K, A, B, R any] struct {
	*joining[K, R]
	side          byte
	passes        bool  // records that find no partner
	before, after int64 // a record's partners are at most so much older or younger
	open          int64 // a record further than this and grace behind stream time is late
	mine          *state.Window[K, A]
	theirs        *state.Window[K, B]
	pair          func(A, B) R
	alone         func(A) R
	value         codec.Codec[A]
	encoded       []byte                  // scratch
	partners      []state.WindowRow[K, B] // too
}

func openSide[K, A, B, R any](j *joining[K, R], side byte, passes bool, mine *joinStore[K, A], theirs *joinStore[K, B], pair func(A, B) R, alone func(A) R) (port[K, A], error) {
	p := &joinSide[K, A, B, R]{
		joining: j, side: side, passes: passes, pair: pair, alone: alone, value: mine.value,
		before: j.span.before, after: j.span.after, open: j.span.leftOpen(),
	}
	if side == rightSide {
		p.before, p.after, p.open = j.span.after, j.span.before, j.span.rightOpen()
	}
	var err error
	if p.mine, err = mine.open(j.o); err != nil {
		return nil, err
	}
	p.theirs, err = theirs.open(j.o)
	return p, err
}

func (p *joinSide[K, A, B, R]) push(r Record[K, A]) error {
	ms := r.Time.UnixMilli()
	now := p.time.observe(ms)
	switch {
	case r.NoValue:
		p.o.drop(p.node, tombstoned)
		return nil
	case r.NoKey && p.passes:
		p.o.enter(p.node)
		return p.out.push(sendAs(r, p.alone(r.Value), ms))
	case r.NoKey:
		p.o.drop(p.node, noKey)
		return nil
	}
	if ms == now {
		if err := p.reach(now); err != nil {
			return err
		}
	}
	if p.late(ms, p.open) {
		p.o.drop(p.node, late)
		return nil
	}
	paired, err := p.meet(r, ms)
	if err != nil {
		return err
	}
	if err := p.mine.Add(r.Key, ms, r.Value, ms); err != nil {
		return p.o.rowsFailed(p.node, err)
	}
	if paired || !p.passes {
		return nil
	}
	return p.await(r, ms)
}

// meet pairs r with all its partners that have come already.
func (p *joinSide[K, A, B, R]) meet(r Record[K, A], ms int64) (paired bool, err error) {
	from, to := later(ms, -p.before), later(ms, p.after)
	at, gone := int64(-1), false
	partners, err := p.theirs.AppendFetch(p.partners[:0], r.Key, from, to)
	p.partners = partners
	defer clear(partners)
	if err != nil {
		return false, p.o.rowsFailed(p.node, err)
	}
	for _, row := range partners {
		if row.Start != at { // all partners of one time wait together, or none
			at = row.Start
			if gone, err = p.gone(r.Key, at, ms); err != nil {
				return false, p.o.rowsFailed(p.node, err)
			}
		}
		if gone {
			continue
		}
		paired = true
		p.o.enter(p.node)
		if err := p.out.push(sendAs(r, p.pair(r.Value, row.Value), max(ms, at))); err != nil {
			return false, err
		}
	}
	return paired, nil
}

// gone: partners at that time were sent alone. If they were not they are
// taken out of those that wait.
func (p *joinSide[K, A, B, R]) gone(key K, at, now int64) (bool, error) {
	if p.lonely == nil {
		return false, nil
	}
	ok, err := p.lonely.meet(key, at, p.side^1, now)
	return !ok, err
}

// await lets r wait for a partner.
func (p *joinSide[K, A, B, R]) await(r Record[K, A], ms int64) error {
	var err error
	if p.encoded, err = p.value.Append(p.encoded[:0], r.Value); err != nil {
		return p.o.fail(p.node, runtime.OpEncode, err)
	}
	if err := p.lonely.add(r.Key, ms, p.side, waiter{p.encoded, r.Headers}); err != nil {
		return p.o.rowsFailed(p.node, err)
	}
	return nil
}

// sendAs is r with a result for a value, at ms.
func sendAs[K, A, R any](r Record[K, A], v R, ms int64) Record[K, R] {
	return Record[K, R]{Key: r.Key, Value: v, Time: timeOf(ms), Headers: r.Headers, NoKey: r.NoKey}
}

// later is ms+d, or the last time that there is.
func later(ms, d int64) int64 {
	if d > 0 && ms > math.MaxInt64-d {
		return math.MaxInt64
	}
	return ms + d
}
