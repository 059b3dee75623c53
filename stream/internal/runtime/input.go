package runtime

import (
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semelstream/semel/internal/seam"
	"github.com/semelstream/semel/stream/internal/graph"
)

// An input is one partition that a task reads: what was fetched and not yet
// processed, kept as it came.
type input struct {
	index int // in Sub.Sources
	tp    seam.TP
	topic *graph.Topic

	queue  []seam.Batch // head first; no batch without records but the last
	at     int          // of the next record in queue[0]
	ahead  int          // records of queue[0] that the instance was told of
	queued int          // records
	bytes  int64        // of the batches in queue: memory goes by the batch

	next   int64 // position after everything fetched
	epoch  int32 // leader epoch of next
	stable int64 // last stable offset known: beyond it nothing can be read yet

	head       int64 // event time of the next record, valid if timed
	timed      bool
	time       int64 // largest event time met: Kafka Streams' partition time; -1 before the first
	paused     bool  // too much is queued: not read for now
	emptySince time.Time
}

// add takes a fetched batch.
func (in *input) add(b seam.Batch) {
	in.next, in.epoch = b.Next, b.Epoch
	in.stable = max(in.stable, b.Stable, b.Next)
	if len(b.Records) > 0 {
		in.queue = append(in.queue, b)
		in.queued += len(b.Records)
		in.bytes += int64(b.Bytes)
	}
}

// exceeds says that more is queued.
func (in *input) exceeds(records int, bytes int64) bool {
	return in.queued > records || in.bytes > bytes
}

// peek is the next record, or nil.
func (in *input) peek() *kgo.Record {
	if len(in.queue) == 0 {
		return nil
	}
	return in.queue[0].Records[in.at]
}

// pop moves past the next record, which nobody may look at any more.
func (in *input) pop() {
	in.timed = false
	in.queued--
	in.peek().Recycle()
	if in.at++; in.at < len(in.queue[0].Records) {
		return
	}
	in.at, in.ahead = 0, 0
	in.bytes -= int64(in.queue[0].Bytes)
	in.queue[0] = seam.Batch{}
	in.queue = in.queue[1:]
}

// position is what to commit: the offset of the next record that was not
// processed, or, when all were, the position after control records.
func (in *input) position() (int64, int32) {
	if r := in.peek(); r != nil {
		return r.Offset, r.LeaderEpoch
	}
	return in.next, in.epoch
}

// lagging says that there is more to read than was fetched, as far as is
// known.
func (in *input) lagging() bool { return in.next < in.stable }

// touchAhead is how many records an instance is told of before they come: as
// many as can be on their way from memory at a time.
const touchAhead = 64

// touch tells the instance of the next records.
func (in *input) touch(inst Instance) {
	if in.at < in.ahead {
		return
	}
	recs := in.queue[0].Records
	in.ahead = min(in.at+touchAhead, len(recs))
	inst.Touch(in.index, recs[in.at:in.ahead])
}
