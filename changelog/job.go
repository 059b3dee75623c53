package changelog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semelstream/semel/internal/seam"
)

// The types of partitions and of what is read of them.
type (
	TP     = seam.TP
	Batch  = seam.Batch
	Source = seam.Consumer // committed records only, positions past control records
)

// A Target is what a Restorer fills. A Target whose Position is 0 has no rows
// that count.
type Target interface {
	// Position is the next offset that the target has not applied.
	Position() int64
	// Apply writes the records, in order, and next together, or neither. The
	// records are the target's to keep, the slice is not. There may be none: next
	// moves all the same.
	Apply(recs []*kgo.Record, next int64) error
	// Reset empties the target, for a restore from the beginning: tombstones
	// may be gone from the topic, so the full history goes into nothing else.
	Reset() error
}

// A Job is the restore of one partition. A nil error for Done means that the
// target's position is End.
type Job struct {
	TP
	Target Target
	// End is the offset to reach; nothing from there on is applied. It is the
	// high watermark, open transactions included, taken after the inputs' stable
	// offsets were fetched. A former owner's transaction may be decided and its
	// offsets visible while its marker in the changelog is still to be written,
	// so that anything less could miss it.
	End int64
	// Start is the topic's first offset that is still there.
	Start int64
	// Restart asks for Start again when the topic has lost what was about to be
	// read. Nil: such a job fails.
	Restart func(context.Context) (int64, error)
	// Anew, if not empty, is why the target is to be filled from the beginning
	// although the topic has its position.
	Anew string
	// Emptied, if not nil, is called when a target that had a position was
	// emptied, with the reason.
	Emptied func(reason string)
	// Done is called once, when the job has ended: with nil, with an error, or
	// with [ErrCanceled]. It may call the Restorer.
	Done func(error)
	// Progress, if not nil, is called after each batch.
	Progress func(Progress)

	pos            int64
	records, bytes int64
	restarts       int
	turn           int // of the Restorer, when the job was added
}

// Progress is how far a job has come.
type Progress struct {
	Position, End  int64
	Records, Bytes int64 // applied by this job, again after a restart
}

// Errors of jobs, for errors.Is.
var (
	// ErrCanceled ends a job that was canceled.
	ErrCanceled = errors.New("restore canceled")
	// ErrAhead is a target that is further than its changelog: the topic was
	// made anew, or the target belongs to another cluster.
	ErrAhead = errors.New("the store is ahead of its changelog")
	// ErrDisorder is a source that gave records that do not follow each other.
	ErrDisorder = errors.New("records are out of order")
)

// begin decides where to read from.
func (j *Job) begin() error {
	j.pos = j.Target.Position()
	switch {
	case j.Anew != "":
		return j.empty(j.Anew)
	case j.pos > j.End:
		return fmt.Errorf("%s: position %d, end %d: %w", j.TP, j.pos, j.End, ErrAhead)
	case j.pos < j.Start:
		return j.empty(fmt.Sprintf("position %d is before the changelog's start %d", j.pos, j.Start))
	case j.pos == 0 && j.End > 0:
		return j.empty("") // what has no position is no part of the history
	}
	return nil
}

// empty makes the job one from the changelog's start.
func (j *Job) empty(reason string) error {
	if err := j.Target.Reset(); err != nil {
		return fmt.Errorf("emptying the store of %s: %w", j.TP, err)
	}
	if j.pos > 0 && j.Emptied != nil {
		j.Emptied(reason)
	}
	j.pos = min(j.Start, j.End) // all up to End may be gone, and more
	return nil
}

// over says that there is nothing more to read, and sees to it that the target
// knows.
func (j *Job) over() (bool, error) {
	if j.pos < j.End {
		return false, nil
	}
	if j.Target.Position() < j.pos {
		// All of it is gone from the topic, so that no batch has brought or will
		// bring the position.
		if err := j.Target.Apply(nil, j.pos); err != nil {
			return true, fmt.Errorf("restoring %s: %w", j.TP, err)
		}
	}
	return true, nil
}

// apply writes a batch as far as End.
func (j *Job) apply(b *Batch) error {
	recs, next := b.Records, b.Next
	if n := len(recs); next < j.pos || n > 0 && (recs[0].Offset < j.pos || recs[n-1].Offset >= next) {
		return fmt.Errorf("restoring %s: a batch up to %d at position %d: %w", j.TP, next, j.pos, ErrDisorder)
	}
	if next > j.End {
		n, _ := slices.BinarySearchFunc(recs, j.End, func(r *kgo.Record, end int64) int { return cmp.Compare(r.Offset, end) })
		recs, next = recs[:n], j.End
	}
	if err := j.Target.Apply(recs, next); err != nil {
		return fmt.Errorf("restoring %s: %w", j.TP, err)
	}
	j.pos = next
	j.records += int64(len(recs))
	for _, r := range recs {
		j.bytes += int64(len(r.Key) + len(r.Value))
	}
	if j.Progress != nil {
		j.Progress(Progress{Position: j.pos, End: j.End, Records: j.records, Bytes: j.bytes})
	}
	return nil
}
