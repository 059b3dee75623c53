package stream

import (
	"github.com/semelstream/semel/stream/internal/graph"
	"github.com/semelstream/semel/stream/internal/runtime"
)

// An operatorTime is the largest record time that an operator has met: what
// lateness is measured by. It goes with the offsets of the records, so that
// what is late stays late after a crash or a move. A record that fails has not
// been met.
type operatorTime struct{ *heldTime }

// operatorTime makes the stream time of n.
func (o *opener) operatorTime(n *graph.Node) *operatorTime {
	return &operatorTime{o.holdTime(n.Name + ".time")}
}

// observe takes a record's time in and returns the time that it is by now.
func (t *operatorTime) observe(ms int64) int64 {
	if ms > t.ms {
		t.set(ms)
	}
	return t.ms
}

// A heldTime is a time that survives, see [opener.keepTime], and that goes back
// to what it was where the effects of a record are taken back.
type heldTime struct {
	task   *runtime.Task
	ms     int64 // runtime.NoTime at first
	before int64 // what it was at the mark
	mark   uint64
}

// holdTime makes a time that is kept under name.
func (o *opener) holdTime(name string) *heldTime {
	t := &heldTime{task: o.task, ms: runtime.NoTime}
	o.keepTime(name, func() int64 { return t.ms }, func(ms int64) { t.ms = ms })
	o.onUndo(t.undo)
	return t
}

func (t *heldTime) set(ms int64) {
	if now := t.task.Marks(); t.mark != now {
		t.before, t.mark = t.ms, now
	}
	t.ms = ms
}

func (t *heldTime) undo() {
	if t.mark == t.task.Marks() {
		t.ms = t.before
	}
}
