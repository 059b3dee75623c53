package stream

import (
	"context"
	"fmt"
	"time"

	"github.com/semelstream/semel/stream/internal/graph"
	"github.com/semelstream/semel/stream/internal/runtime"
)

// A Scope is where stores can be opened: a processor's context, or a driver
// of streamtest.
type Scope interface{ scope() *Task }

// A Task is one partition of one sub-topology, as seen by the processor that
// runs in it. Like the context it comes with, it is valid during a call.
type Task struct {
	o    *opener
	node *graph.Node
	uses []binding
	init bool // Init is running
	set  int  // timers that Init set

	aging []func(ms int64) error // stores that let old rows go hear of each record's time

	ms  int64 // time of the record at hand, or of the timer
	err error // the first failure within the call that is not the processor's own
}

func (t *Task) scope() *Task { return t }

// Context ends when the task must stop; pass it to calls that block.
func (t *Task) Context() context.Context { return t.o.task.Context() }

// ID is sub-topology and partition, as "1_7".
func (t *Task) ID() string { return t.o.task.ID().String() }

// Source is where the record at hand was read; false in Init and timers, and
// where the record is the result of an aggregate, which stands for all the
// records of a transaction.
func (t *Task) Source() (Source, bool) {
	r := t.o.task.Source()
	if r == nil {
		return Source{}, false
	}
	return Source{r.Topic, r.Partition, r.Offset}, true
}

// StreamTime is the largest record time that the task has met, zero before
// the first record.
func (t *Task) StreamTime() time.Time {
	if ms := t.o.task.StreamTime(); ms != runtime.NoTime {
		return timeOf(ms)
	}
	return time.Time{}
}

// WallTime is the time of day, or the test's.
func (t *Task) WallTime() time.Time { return t.o.task.WallTime() }

// CommitSoon asks for a commit after this record; it does not wait for it.
func (t *Task) CommitSoon() { t.o.task.CommitSoon() }

// begin enters the processor's code, at a record or timer of that time.
func (t *Task) begin(ms int64) {
	t.ms, t.err = ms, nil
	t.o.enter(t.node)
}

// beginRecord enters the processor's code at a record. Rows that are too old by
// it go first. If that fails, so does the record, whatever the processor does.
func (t *Task) beginRecord(ms int64) {
	t.begin(ms)
	for _, record := range t.aging {
		_ = t.judgeRows(record(ms)) // kept for end
	}
}

// back returns to the processor's code after a call that left it. Its error
// is kept: a processor that loses it would else keep half of a record's
// effects.
func (t *Task) back(err error) error {
	t.o.enter(t.node)
	if err != nil && t.err == nil {
		t.err = err
	}
	return err
}

// end leaves the processor's code, which returned err.
func (t *Task) end(op runtime.Op, err error) error {
	switch {
	case t.err != nil:
		return t.err
	case err != nil:
		return t.o.fail(t.node, op, err)
	}
	return nil
}

// failed is an error of the processor's own doing, found by one of our
// methods: the record's failure, whether the processor returns it or not.
func (t *Task) failed(err error) error {
	return t.back(t.o.fail(t.node, runtime.OpFunction, err))
}

// schedule is Context.Schedule without the types.
func (t *Task) schedule(s Schedule, call func(now time.Time) error) *Timer {
	if s.Every < time.Millisecond {
		panic(fmt.Errorf("stream: operator %q schedules a timer every %v; times are milliseconds, so Every must be at least one", t.node.Name, s.Every))
	}
	timer := newTimer(s, t.WallTime().UnixMilli(), func(now int64) error {
		t.begin(now)
		t.o.enterStep(t.node, atTimer)
		return t.end(runtime.OpTimer, call(timeOf(now)))
	})
	if t.init {
		t.keepTimer(timer)
	}
	t.o.addTimer(t.node, timer)
	return &Timer{timer}
}

// keepTimer lets the due time of a timer survive. Timers are told apart by the
// order in which Init sets them; one that is set later is gone with its task.
func (t *Task) keepTimer(timer *timer) {
	t.set++
	now := func() int64 {
		if timer.wall {
			return t.WallTime().UnixMilli()
		}
		return t.o.task.StreamTime()
	}
	t.o.keepTime(fmt.Sprintf("%s/timer-%d", t.node.Name, t.set),
		func() int64 { return timer.next },
		func(saved int64) { timer.resume(saved, now()) })
}
