package changelog

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semelstream/semel/internal/seam"
)

// The types of partitions and of what is read of them.
type (
	TP     = seam.TP
	Batch  = seam.Batch
	Source = seam.Consumer // committed records only, positions past control records
)

// A Target is what a Restorer fills.
type Target interface {
	// Position is the next offset that the target has not applied.
	Position() int64
	// Apply writes the records, in order, and next together, or neither.
	Apply(recs []*kgo.Record, next int64) error
	// Reset empties the target, for a restore from the beginning: tombstones
	// may be gone from the topic, so the full history goes into nothing else.
	Reset() error
}

// A Job is the restore of one partition.
type Job struct {
	TP
	Target Target
	// End is the offset to reach: the high watermark, open transactions
	// included, taken after the inputs' stable offsets were fetched. A former
	// owner's transaction may be decided and its offsets visible while its
	// marker in the changelog is still to be written, so that anything less
	// could miss it.
	End int64
	// Start is the topic's first offset that is still there.
	Start  int64
	Reason string // why it is needed, for the log
	// Done is called once, from Step or Cancel, when the job has ended: with
	// nil, with an error, or with [ErrCanceled].
	Done func(error)
	// Progress, if not nil, is called after each batch.
	Progress func(Progress)

	pos            int64
	records, bytes int64
}

// Progress is how far a job has come.
type Progress struct {
	Position, End  int64
	Records, Bytes int64 // applied by this job
}

// ErrCanceled ends a job that was canceled.
var ErrCanceled = errors.New("restore canceled")

// ErrAhead is a target that is further than its changelog: the topic was made
// anew, or the target belongs to another cluster.
var ErrAhead = errors.New("the store is ahead of its changelog")

// A Restorer brings targets up to the ends of their changelog partitions, any
// number side by side. It starts no goroutine: its owner calls Step until
// there is nothing to do. It ends by position, never by "last record", so that
// trailing markers and aborted records cannot hang it.
type Restorer struct {
	src  Source
	jobs map[TP]*Job
	max  int
}

// NewRestorer makes a Restorer that reads from src, which it owns.
func NewRestorer(src Source) *Restorer {
	return &Restorer{src: src, jobs: map[TP]*Job{}, max: 20_000}
}

// Add begins a job. A target that is at the end already is done at once.
func (r *Restorer) Add(j *Job) {
	j.pos = j.Target.Position()
	if err := r.begin(j); err != nil {
		j.Done(err)
		return
	}
	if j.pos >= j.End {
		j.Done(nil)
		return
	}
	r.jobs[j.TP] = j
	r.src.Assign(j.TP, j.pos)
}

// begin decides where to read from.
func (r *Restorer) begin(j *Job) error {
	switch {
	case j.pos > j.End:
		return fmt.Errorf("%s: position %d, end %d: %w", j.TP, j.pos, j.End, ErrAhead)
	case j.pos >= j.Start:
		return nil
	case j.pos > 0:
		if err := j.Target.Reset(); err != nil {
			return fmt.Errorf("emptying the store of %s: %w", j.TP, err)
		}
		j.Reason = fmt.Sprintf("position %d is before the changelog's start %d", j.pos, j.Start)
	}
	j.pos = j.Start
	return nil
}

// Cancel ends the job of tp with [ErrCanceled], if there is one.
func (r *Restorer) Cancel(tp TP) {
	if j := r.jobs[tp]; j != nil {
		r.end(j, ErrCanceled)
	}
}

// Jobs is how many jobs are under way.
func (r *Restorer) Jobs() int { return len(r.jobs) }

// Step reads once, waiting up to wait for something to come, and applies it.
// An error is one of the source; errors of targets end their jobs.
func (r *Restorer) Step(ctx context.Context, wait time.Duration) error {
	batches, err := r.src.Poll(ctx, r.max, wait)
	if err != nil {
		return r.failed(err)
	}
	for i := range batches {
		if j := r.jobs[batches[i].TP]; j != nil {
			r.apply(j, &batches[i])
		}
	}
	return nil
}

func (r *Restorer) apply(j *Job, b *Batch) {
	if err := j.Target.Apply(b.Records, b.Next); err != nil {
		r.end(j, fmt.Errorf("restoring %s: %w", j.TP, err))
		return
	}
	j.pos = b.Next
	j.records += int64(len(b.Records))
	for _, rec := range b.Records {
		j.bytes += int64(len(rec.Key) + len(rec.Value))
	}
	if j.Progress != nil {
		j.Progress(Progress{Position: j.pos, End: j.End, Records: j.records, Bytes: j.bytes})
	}
	if j.pos >= j.End {
		r.end(j, nil)
	}
}

// failed judges an error of the source. A position that compaction or a purge
// has overtaken while we were reading begins again from nothing.
func (r *Restorer) failed(err error) error {
	var pe *seam.PartitionError
	if !errors.As(err, &pe) {
		return err
	}
	j := r.jobs[pe.TP]
	if j == nil {
		return nil
	}
	if !errors.Is(err, kerr.OffsetOutOfRange) {
		r.end(j, err)
		return nil
	}
	r.end(j, fmt.Errorf("%w: the changelog has lost records while it was read", err))
	return nil
}

func (r *Restorer) end(j *Job, err error) {
	r.src.Unassign(j.TP)
	delete(r.jobs, j.TP)
	j.Done(err)
}

// Wake makes a Step that waits return.
func (r *Restorer) Wake() { r.src.Wake() }

// Close cancels every job and closes the source.
func (r *Restorer) Close() {
	for _, tp := range seam.SortedTPs(r.jobs) {
		r.Cancel(tp)
	}
	r.src.Close()
}
