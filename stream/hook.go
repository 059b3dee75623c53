package stream

import (
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semelstream/semel/stream/internal/runtime"
)

// A Hook implements any of the HookXxx interfaces. Hooks are called by
// workers and must not block.
type Hook any

// HookState hears of changes of [App.State].
type HookState interface {
	OnState(from, to State)
}

// HookTasks hears of tasks that came and went. Lost tasks left without a
// commit.
type HookTasks interface {
	OnTasks(assigned, revoked, lost []string)
}

// HookRestore hears of a store's way to its changelog's end: now and then,
// and when Done is set.
type HookRestore interface {
	OnRestore(Restore)
}

// A Restore is the progress of one store.
type Restore struct {
	Task, Store    string
	Reason         string // why it is needed
	Position, End  int64
	Records, Bytes int64
	Took           time.Duration
	Done           bool
}

// HookTransaction hears of the end of each transaction; err is nil if it
// committed, else why it aborted.
type HookTransaction interface {
	OnTransaction(worker int, records int, took time.Duration, err error)
}

// HookDropped hears of records that an operator left out, by reason: no key,
// tombstone, no time, failed, dead letter.
type HookDropped interface {
	OnDropped(task, operator, reason string, n int)
}

// HookFailure hears of failed records and what the policy decided.
type HookFailure interface {
	OnFailure(*Failure, Action)
}

// hooks turns the user's hooks into the runtime's.
func hooks(app string, all []Hook) runtime.Hooks {
	var h runtime.Hooks
	for _, hook := range all {
		if x, ok := hook.(HookState); ok {
			h.State = both(h.State, func(from, to runtime.State) { x.OnState(State(from), State(to)) })
		}
		if x, ok := hook.(HookTasks); ok {
			next := h.Tasks
			h.Tasks = func(assigned, revoked, lost []string) {
				if next != nil {
					next(assigned, revoked, lost)
				}
				x.OnTasks(assigned, revoked, lost)
			}
		}
		if x, ok := hook.(HookRestore); ok {
			next := h.Restore
			h.Restore = func(r runtime.Restore) {
				if next != nil {
					next(r)
				}
				x.OnRestore(Restore(r))
			}
		}
		if x, ok := hook.(HookTransaction); ok {
			next := h.Transaction
			h.Transaction = func(worker, records int, took time.Duration, err error) {
				if next != nil {
					next(worker, records, took, err)
				}
				x.OnTransaction(worker, records, took, err)
			}
		}
		if x, ok := hook.(HookDropped); ok {
			next := h.Dropped
			h.Dropped = func(task, operator, reason string, n int) {
				if next != nil {
					next(task, operator, reason, n)
				}
				x.OnDropped(task, operator, reason, n)
			}
		}
		if x, ok := hook.(HookFailure); ok {
			next := h.Failure
			h.Failure = func(t *runtime.Task, f *runtime.Failure, r *kgo.Record, v runtime.Verdict) {
				if next != nil {
					next(t, f, r, v)
				}
				x.OnFailure(newFailure(app, t, f, r), Action{v.Action, v.DeadLetter})
			}
		}
	}
	return h
}

func both[A, B any](first, second func(A, B)) func(A, B) {
	if first == nil {
		return second
	}
	return func(a A, b B) { first(a, b); second(a, b) }
}
