package stream

import (
	"bytes"
	"math"

	"github.com/semelstream/semel/state"
)

// lonely are the records of a left or outer join that have found no partner.
// When their window has closed, strictly, they are sent alone.
//
// A partner that is in time may come even then: a window closes for its older
// records first. Nobody may get both results, so that a mark, an empty list,
// stays in the place of what was sent until such partners are late too.
type lonely[K, R any] struct {
	*joining[K, R]
	kv     *state.KV[[]byte, []byte]
	passes [2]bool  // by side
	open   [2]int64 // for how long after its time the window of a side's record is open
	alone  [2]func(value []byte) (R, error)
	stages [stageCount]waitStage

	kbuf, list []byte // scratch
	waiters    []waiter
}

// A waitStage is what happens to records of an age. It walks through each part
// of the time once, from low on: no record that it has to find is older. What is
// taken back with a record that failed has to be found again.
type waitStage struct {
	age int64 // beyond it a record is due; never is negative
	low *number
}

const never = -1

// The stages, those of the oldest records first.
const (
	stageForget = iota // marks go too
	stageSlow          // both sides are sent
	stageFast          // the side that is open for a shorter time is sent
	stageCount
)

func newLonely[K, R any](j *joining[K, R], kv *state.KV[[]byte, []byte], shape joinShape) *lonely[K, R] {
	l, r, grace := j.span.leftOpen(), j.span.rightOpen(), j.span.grace
	w := &lonely[K, R]{joining: j, kv: kv}
	w.passes[leftSide], w.passes[rightSide] = shape.left, shape.right
	w.open[leftSide], w.open[rightSide] = l, r
	w.stages[stageForget].age, w.stages[stageSlow].age, w.stages[stageFast].age = l+r+grace, l+grace, never
	if shape.right && l != r {
		w.stages[stageSlow].age, w.stages[stageFast].age = max(l, r)+grace, min(l, r)+grace
	}
	if !w.leavesMark(leftSide) && !w.leavesMark(rightSide) {
		w.stages[stageForget].age = never
	}
	for i := range w.stages {
		w.stages[i].low = j.o.number(0)
	}
	return w
}

// leavesMark: a partner that is in time can come for what was sent.
func (w *lonely[K, R]) leavesMark(side byte) bool { return w.passes[side] && w.open[side^1] > 0 }

// mark is what is left of records that were sent alone.
var mark = appendWaiters(nil, 0, nil)

// add lets a record wait, behind those of its time and key.
func (w *lonely[K, R]) add(key K, ms int64, side byte, one waiter) (err error) {
	if w.kbuf, err = appendWaitKey(w.kbuf[:0], ms, side, w.key, key); err != nil {
		return err
	}
	ref, before, _, ok, err := w.kv.Find(w.kbuf)
	if err != nil {
		return err
	}
	w.waiters = w.waiters[:0]
	if ok {
		if w.waiters, err = readWaiters(w.waiters, side, before); err != nil {
			return err
		}
	}
	w.waiters = append(w.waiters, one)
	w.list = appendWaiters(w.list[:0], side, w.waiters)
	w.kv.Set(ref, w.list, ms)
	for i := range w.stages {
		if s := &w.stages[i]; s.age >= w.open[side]+w.span.grace {
			s.low.lower(ms)
		}
	}
	return nil
}

// meet takes the records of one side, time and key out, as they have found a
// partner by now; it is false if they were sent alone before.
func (w *lonely[K, R]) meet(key K, ms int64, side byte, now int64) (ok bool, err error) {
	if !w.passes[side] {
		return true, nil
	}
	if w.kbuf, err = appendWaitKey(w.kbuf[:0], ms, side, w.key, key); err != nil {
		return false, err
	}
	ref, list, _, found, err := w.kv.Find(w.kbuf)
	if err != nil || !found {
		return true, err
	}
	if bytes.Equal(list, mark) {
		return false, nil
	}
	w.kv.Remove(ref, now)
	return true, nil
}

// send sends all that is due.
func (w *lonely[K, R]) send(now int64) error {
	from := int64(0)
	for i := range w.stages {
		s := &w.stages[i]
		to := now - s.age
		if s.age == never || to <= from {
			continue
		}
		if at := max(s.low.now, from); at < to {
			if err := w.walk(s, at, to, now); err != nil {
				return err
			}
		}
		from = to
	}
	return nil
}

// walk shows s what is in [from, to).
func (w *lonely[K, R]) walk(s *waitStage, from, to, now int64) error {
	w.kbuf = appendTime(w.kbuf[:0], from)
	next := int64(math.MaxInt64)
	for row, err := range w.kv.From(w.kbuf) {
		if err != nil {
			return w.o.rowsFailed(w.node, err)
		}
		ms, side, key, err := readWaitKey(row.Key)
		if err != nil {
			return w.o.rowsFailed(w.node, err)
		}
		if ms >= to {
			next = ms
			break
		}
		if err := w.due(row, ms, side, key, now); err != nil {
			return err
		}
	}
	s.low.set(next)
	return nil
}

// due does what is to be done with the records of one side, time and key.
func (w *lonely[K, R]) due(row state.Entry[[]byte, []byte], ms int64, side byte, key []byte, now int64) error {
	sent := bytes.Equal(row.Value, mark)
	if !sent {
		if !w.late(ms, w.open[side]) { // the slower side
			return nil
		}
		if err := w.sendAll(ms, side, key, row.Value); err != nil {
			return err
		}
	}
	var err error
	switch {
	case !w.leavesMark(side) || ms < now-w.span.retain():
		err = w.kv.Delete(row.Key, now)
	case !sent:
		err = w.kv.Put(row.Key, mark, now)
	}
	if err != nil {
		return w.o.rowsFailed(w.node, err)
	}
	return nil
}

// sendAll sends records alone, with what is their own.
func (w *lonely[K, R]) sendAll(ms int64, side byte, encoded, list []byte) error {
	key, err := w.key.Decode(encoded)
	if err != nil {
		return w.o.rowsFailed(w.node, err)
	}
	if w.waiters, err = readWaiters(w.waiters[:0], side, list); err != nil {
		return w.o.rowsFailed(w.node, err)
	}
	for _, one := range w.waiters {
		w.o.enter(w.node)
		v, err := w.alone[side](one.value)
		if err != nil {
			return w.o.rowsFailed(w.node, err)
		}
		if err := w.out.push(Record[K, R]{Key: key, Value: v, Time: timeOf(ms), Headers: one.headers}); err != nil {
			return err
		}
	}
	return nil
}
