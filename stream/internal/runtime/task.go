package runtime

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semelstream/semel/internal/seam"
	"github.com/semelstream/semel/state"
	"github.com/semelstream/semel/stream/internal/graph"
)

// NoTime is stream time before the first record.
const NoTime = math.MinInt64

// A Task is one partition of one sub-topology, as an [Instance] sees it: its
// stores, its way out, its times. One goroutine owns it.
type Task struct {
	id  seam.Task
	sub *graph.Sub
	ctx context.Context
	db  *state.DB

	sinks  *sinks
	arena  *arena
	staged []*kgo.Record // of the records processed since the last hand-over

	stagedBytes int64 // of keys and values of staged

	streamTime int64
	wall       func() time.Time
	now        *kgo.Record // the record at hand; nil in timers, Flush and Open
	commitSoon bool
	// decide asks the policy about what failed with no record at hand, given the
	// one that was held back, if it was one; nil returns the error.
	decide   func(held *kgo.Record, err error) error
	tooLarge error  // what was staged does not fit its topic
	marks    uint64 // how often mark was called
	onUndo   func() // nil or what else is to be taken back
	dropped  func(operator, reason string)
	globals  func(store string) *state.Shared
}

// A TaskConfig is what a Task is made of.
type TaskConfig struct {
	ID      seam.Task
	Sub     *graph.Sub
	Context context.Context
	DB      *state.DB
	Wall    func() time.Time
	Dropped func(operator, reason string)
	// Partitions is the partition count of a topic by its full name; 0 if
	// there is no such topic.
	Partitions func(topic string) int32
	// Globals are the rows of a global table; nil if there is none of the name.
	Globals func(store string) *state.Shared
	App     string
}

// NewTask makes a task that stands alone, as tests of instances want it. The
// runtime's own tasks share the sinks and the arena of their worker.
func NewTask(cfg TaskConfig) *Task {
	return newTask(cfg, newSinks(cfg.App, cfg.Partitions), &arena{})
}

func newTask(cfg TaskConfig, s *sinks, a *arena) *Task {
	return &Task{
		id: cfg.ID, sub: cfg.Sub, ctx: cfg.Context, db: cfg.DB,
		sinks: s, arena: a, streamTime: NoTime, wall: cfg.Wall, dropped: cfg.Dropped, globals: cfg.Globals,
	}
}

// ID is the task's sub-topology and partition.
func (t *Task) ID() seam.Task { return t.id }

// Sub is the task's sub-topology.
func (t *Task) Sub() *graph.Sub { return t.sub }

// Context ends when the task must stop.
func (t *Task) Context() context.Context { return t.ctx }

// DB has the task's stores.
func (t *Task) DB() *state.DB { return t.db }

// Global has the rows of a global table.
func (t *Task) Global(store string) (*state.Shared, error) {
	if t.globals != nil {
		if rows := t.globals(store); rows != nil {
			return rows, nil
		}
	}
	return nil, fmt.Errorf("there is no global table %q in task %s", store, t.id)
}

// StreamTime is the largest record time the task has met, in milliseconds, or
// [NoTime].
func (t *Task) StreamTime() int64 { return t.streamTime }

// WallTime is the time of day.
func (t *Task) WallTime() time.Time { return t.wall() }

// Source is the record at hand; nil in timers, Flush and Open.
func (t *Task) Source() *kgo.Record { return t.now }

// CommitSoon asks for a commit after the record at hand.
func (t *Task) CommitSoon() { t.commitSoon = true }

// Dropped counts a record that an operator left out.
func (t *Task) Dropped(operator, reason string) {
	if t.dropped != nil {
		t.dropped(operator, reason)
	}
}

// Marks counts the points that effects are taken back to: each record begins
// at one.
func (t *Task) Marks() uint64 { return t.marks }

// OnUndo has f called when the effects since the last mark are taken back, in
// place of what was given before: an instance takes back with it what it has
// changed in itself.
func (t *Task) OnUndo(f func()) { t.onUndo = f }

// Sink finds a topic to write to, by its full name on the broker.
func (t *Task) Sink(topic string) (*Sink, error) { return t.sinks.find(topic) }

// Stage puts a record into the transaction. Key, value and headers are copied;
// a nil key or value is null. If the record at hand fails, what it staged is
// taken back. The timestamp is in milliseconds.
func (t *Task) Stage(s *Sink, partition int32, key, value []byte, ms int64, headers []kgo.RecordHeader) {
	if s.Max > 0 {
		if n := size(key, value, headers); n > s.Max {
			if t.tooLarge == nil {
				t.tooLarge = s.refuse(n)
			}
			return
		}
	}
	s.use(t.sinks, partition)
	r := t.arena.record(s.Topic, partition, ms)
	r.Key, r.Value = t.arena.copy(key), t.arena.copy(value)
	if len(headers) > 0 {
		r.Headers = append(r.Headers[:0], headers...)
	}
	t.staged = append(t.staged, r)
	t.stagedBytes += bytesOf(r)
}

// bytesOf is about the memory of a record that is not always the same.
func bytesOf(r *kgo.Record) int64 { return int64(len(r.Key) + len(r.Value)) }

// Staged are the records staged since the last Take, for tests.
func (t *Task) Staged() []*kgo.Record { return t.staged }

// Take empties the staging area and returns what was in it, for tests.
func (t *Task) Take() []*kgo.Record {
	out := t.staged
	t.staged, t.stagedBytes = nil, 0
	return out
}

// Process runs one record of source i through in: it moves stream time, sets
// the record at hand and, if the record fails, undoes its effects. It is what
// the worker does for each record, without the policy.
func (t *Task) Process(in Instance, i int, r *kgo.Record, ms int64) error {
	mark := t.mark()
	t.streamTime = max(t.streamTime, ms)
	t.now = r
	err := in.Push(i, r)
	t.now = nil
	return t.finish(mark, err)
}

// finish ends what began at mark: if it failed, or staged what does not fit,
// everything since is taken back.
func (t *Task) finish(mark int, err error) error {
	if err == nil {
		if t.tooLarge == nil {
			return nil
		}
		err = t.tooLarge
	}
	t.tooLarge = nil // of what is taken back, so that no later record is blamed
	t.undo(mark)
	return err
}

// Savepoint and Settle are for what an instance sends at a Flush, where there
// is no record at hand: Settle takes back what failed since the savepoint and
// asks the policy. It returns nil if the task goes on without it.
func (t *Task) Savepoint() int { return t.mark() }

// Settle ends what began with Savepoint and failed with err, if it failed.
func (t *Task) Settle(mark int, err error) error { return t.SettleHeld(mark, none, err) }

// SettleHeld is Settle for a record that an operator has held back and let go:
// the policy is asked about that one, which is made if it failed. Its key and
// value are as they were held, its topic, partition and offset where it was
// read; without a topic that is not known.
func (t *Task) SettleHeld(mark int, held func() *kgo.Record, err error) error {
	if err = t.finish(mark, err); err == nil || t.decide == nil {
		return err
	}
	return t.decide(held(), err)
}

func none() *kgo.Record { return nil }

// mark is where undo goes back to.
func (t *Task) mark() int {
	t.marks++
	if t.db != nil {
		t.db.Mark()
	}
	return len(t.staged)
}

func (t *Task) takeTooLarge() error {
	err := t.tooLarge
	t.tooLarge = nil
	return err
}

func (t *Task) undo(mark int) {
	for _, r := range t.staged[mark:] {
		t.stagedBytes -= bytesOf(r)
	}
	clear(t.staged[mark:])
	t.staged = t.staged[:mark]
	if t.db != nil {
		t.db.Undo()
	}
	if t.onUndo != nil {
		t.onUndo()
	}
}

// Reset drops what was staged and takes its memory back, as the end of a
// transaction does; for tests.
func (t *Task) Reset() {
	t.staged, t.stagedBytes = t.staged[:0], 0
	t.arena.reset()
	t.sinks.ended()
}
