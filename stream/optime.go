package stream

import (
	"github.com/semelstream/semel/stream/internal/graph"
	"github.com/semelstream/semel/stream/internal/runtime"
)

// A number is what an operator remembers outside its stores: if the record that
// changed it fails, it is taken back with all else that the record did.
type number struct {
	now, before int64
	mark        uint64 // since which now differs from before
	task        *runtime.Task
}

// number makes a number that begins with n.
func (o *opener) number(n int64) *number {
	k := &number{now: n, task: o.task}
	o.onUndo(k.undo)
	return k
}

func (k *number) set(n int64) {
	if mark := k.task.Marks(); k.mark != mark {
		k.mark, k.before = mark, k.now
	}
	k.now = n
}

func (k *number) undo() {
	if k.mark == k.task.Marks() {
		k.now = k.before
	}
}

// raise takes n in if it is larger, and returns the largest number so far.
func (k *number) raise(n int64) int64 {
	if n > k.now {
		k.set(n)
	}
	return k.now
}

// lower takes n in if it is smaller.
func (k *number) lower(n int64) {
	if n < k.now {
		k.set(n)
	}
}

// An operatorTime is the largest record time that an operator has met: what
// lateness is measured by. It goes with the offsets of the records, so that
// what is late stays late after a crash or a move.
type operatorTime struct{ *number }

// operatorTime makes the stream time of n. No store has a name with a space.
func (o *opener) operatorTime(n *graph.Node) operatorTime {
	t := operatorTime{o.number(runtime.NoTime)}
	o.keepTime(n.Name+" time", func() int64 { return t.now }, t.set)
	return t
}

// observe takes a record's time in and returns the time that it is by now.
func (t operatorTime) observe(ms int64) int64 { return t.raise(ms) }
