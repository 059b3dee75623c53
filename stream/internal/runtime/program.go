package runtime

import (
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semelstream/semel/state"
	"github.com/semelstream/semel/stream/internal/graph"
)

// A Program is a topology that can be run; package stream makes it.
type Program interface {
	Graph() *graph.Graph
	// Open makes an instance of the task's sub-topology. It is called when the
	// task's stores are restored, and again after each abort, since what an
	// instance remembers outside its stores is then wrong. It calls
	// processors' Init.
	Open(t *Task) (Instance, error)
	// Global prepares the rows of a global table to be looked up by tasks. It
	// returns what says whether a record, which has a key, can be a row: nil
	// or the *Failure.
	Global(store string, rows *state.Shared) (check func(*kgo.Record) error, err error)
	// Succeed compares the program with the one that ran before, given what
	// that one had saved; nil if none has.
	Succeed(saved []byte) (Succession, error)
}

// A Succession is what becomes of a program's state in the next one.
type Succession struct {
	Saved   []byte   // for the next one
	Misfits []string // what does not fit, and what to do about it
	Notes   []string // what changes and is fine
	Unread  []Unread // of the former one's repartition topics
}

// An Unread is a repartition topic that is read no more. It is a misfit if
// anything is in it that was not processed.
type Unread struct{ Topic, Misfit string }

// An Instance is a sub-topology at work in one task. Its calls come from one
// goroutine. The life of a transaction is
//
//	Push, Stream, Final, Push, Final, ... Flush, Save
//
// and what was staged through [Task.Stage] or changed in the task's stores
// becomes visible when the transaction commits.
type Instance interface {
	// Time is the event time of a record of source i, in milliseconds. False
	// leaves the record out (the instance has counted it as dropped).
	Time(i int, r *kgo.Record) (int64, bool)
	// Touch says which records of source i come next, for whatever can be made
	// ready for them. It changes nothing.
	Touch(i int, recs []*kgo.Record)
	// Push runs one record of source i through the operators. An error is the
	// failure of this record alone: the runtime undoes its effects and asks
	// the policy (see [Failure]).
	Push(i int, r *kgo.Record) error
	// Stream fires the timers that are due at stream time now, Wall those due
	// at the wall clock's now. Both are milliseconds. An error is a *Failure.
	Stream(now int64) error
	Wall(now int64) error
	// NextStream and NextWall are when the next timer is due; math.MaxInt64 if
	// there is none.
	NextStream() int64
	NextWall() int64
	// Final sends on what the last call of Push, Stream or Wall has made final,
	// each result under a savepoint of its own. It may have done half of it when
	// it returns an error, so the transaction must not be committed then.
	Final() error
	// Flush sends on what waits for the commit: the last value of each key
	// that an aggregate changed, operators in topological order.
	Flush() error
	// Save returns the times that must survive (operators' stream times, due
	// times of timers), which travel in the metadata of the offset commit and
	// with the state. They only grow. Load gives them back, right after Open.
	Save(put func(name string, ms int64))
	Load(get func(name string) (ms int64, ok bool))
	// Close ends processors. dirty means that the last transaction did not
	// commit.
	Close(dirty bool) error
}

// An Op is the step at which a record failed.
type Op string

// The steps.
const (
	OpDecode   Op = "decode"
	OpFunction Op = "function"
	OpTimer    Op = "timer"
	OpEncode   Op = "encode"
	OpProduce  Op = "produce"
)

// A Failure is the failure of one record in an operator. Package stream makes
// it where it happens; the runtime adds the record and asks the policy.
type Failure struct {
	Op       Op
	Operator string
	Err      error
	Stack    []byte // of a panic
	Policy   Policy // the operator's own; nil is the app's
	Held     bool   // the record is one that an operator had held back
}

// Error names the operator and the reason.
func (f *Failure) Error() string { return f.Operator + ": " + string(f.Op) + ": " + f.Err.Error() }

// Unwrap is Err.
func (f *Failure) Unwrap() error { return f.Err }

// A Stopper is a failure that ends the app.
type Stopper struct {
	*Failure
	Task   *Task
	Record *kgo.Record // nil for timers
}

// Unwrap is the failure.
func (f *Stopper) Unwrap() error { return f.Failure }

// A Policy decides about a failed record, after its effects were undone.
type Policy func(t *Task, f *Failure, r *kgo.Record) Verdict

// A Verdict is what becomes of a failed record.
type Verdict struct {
	Action     Action
	DeadLetter string             // the topic, for ActDeadLetter
	Headers    []kgo.RecordHeader // what it says of the failure
}

// An Action is a kind of verdict.
type Action uint8

// The actions.
const (
	ActFail Action = iota
	ActSkip
	ActDeadLetter
)
