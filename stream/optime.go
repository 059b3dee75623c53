package stream

import (
	"github.com/semelstream/semel/stream/internal/graph"
	"github.com/semelstream/semel/stream/internal/runtime"
)

// An operatorTime is the largest record time that an operator has met: what
// lateness is measured by. It goes with the offsets of the records, so that
// what is late stays late after a crash or a move.
type operatorTime struct{ ms int64 }

// operatorTime makes the stream time of n.
func (o *opener) operatorTime(n *graph.Node) *operatorTime {
	t := &operatorTime{ms: runtime.NoTime}
	o.keepTime(n.Name+".time", func() int64 { return t.ms }, func(ms int64) { t.ms = ms })
	return t
}

// observe takes a record's time in and returns the time that it is by now.
func (t *operatorTime) observe(ms int64) int64 {
	t.ms = max(t.ms, ms)
	return t.ms
}
