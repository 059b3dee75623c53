package changelog

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/semelstream/semel/internal/assert"
	"github.com/semelstream/semel/internal/seam"
)

const (
	// maxRecords is what one Step reads at most.
	maxRecords = 20_000
	// maxRestarts is how often one job may begin again. A topic that loses its
	// records faster than they are read would keep it busy for ever.
	maxRestarts = 5
)

// A Restorer brings targets up to the ends of their changelog partitions, any
// number side by side. It starts no goroutine: its owner calls Step until
// there is nothing to do. It ends by position, never by "last record", so that
// trailing markers and aborted records cannot hang it.
//
// One goroutine calls it, but for Wake.
type Restorer struct {
	src    Source
	jobs   map[TP]*Job
	turn   int // counts Steps
	closed bool
}

// An ended job waits for its Done until the source knows.
type ended struct {
	job *Job
	err error
}

// NewRestorer makes a Restorer that reads from src, which it owns.
func NewRestorer(src Source) *Restorer {
	return &Restorer{src: src, jobs: map[TP]*Job{}}
}

// Add begins a job. A partition has one job at a time. A target that is at the
// end already is done at once.
func (r *Restorer) Add(j *Job) {
	assert.That(r.jobs[j.TP] == nil, "changelog %s is being restored already", j.TP)
	if r.closed {
		j.Done(ErrCanceled)
		return
	}
	j.turn = r.turn
	err := j.begin()
	over := true
	if err == nil {
		over, err = j.over()
	}
	if over {
		j.Done(err)
		return
	}
	r.jobs[j.TP] = j
	r.src.Assign(j.TP, j.pos)
}

// Cancel ends the job of tp with [ErrCanceled], if there is one. A Step that
// waits is ended by [Restorer.Wake].
func (r *Restorer) Cancel(tp TP) {
	if j := r.jobs[tp]; j != nil {
		r.end([]ended{{j, ErrCanceled}})
	}
}

// Jobs is how many jobs are under way.
func (r *Restorer) Jobs() int { return len(r.jobs) }

// Step reads once, waiting up to wait for something to come, and applies it.
// An error is one of the source, and leaves the jobs as they are; errors of
// targets and of single partitions end their jobs.
func (r *Restorer) Step(ctx context.Context, wait time.Duration) error {
	batches, err := r.src.Poll(ctx, maxRecords, wait)
	if err != nil {
		return r.failed(ctx, err)
	}
	r.turn++
	var over []ended
	for i := range batches {
		// A job that a Progress put in the place of another begins elsewhere:
		// what this Poll read is not for it.
		j := r.jobs[batches[i].TP]
		if j == nil || j.turn == r.turn {
			continue
		}
		if err := j.apply(&batches[i]); r.jobs[j.TP] == j && (err != nil || j.pos >= j.End) {
			delete(r.jobs, j.TP)
			over = append(over, ended{j, err})
		}
	}
	r.end(over)
	return nil
}

// Run steps until no job is left. An error is one of the source or of ctx, and
// leaves jobs behind, for [Restorer.Close].
func (r *Restorer) Run(ctx context.Context) error {
	for len(r.jobs) > 0 {
		if err := r.Step(ctx, time.Minute); err != nil {
			return err
		}
	}
	return nil
}

// failed judges an error of the source.
func (r *Restorer) failed(ctx context.Context, err error) error {
	pe, ok := errors.AsType[*seam.PartitionError](err)
	if !ok {
		return err
	}
	j := r.jobs[pe.TP]
	if j == nil {
		return nil
	}
	if errors.Is(err, kerr.OffsetOutOfRange) && j.Restart != nil && j.restarts < maxRestarts {
		r.restart(ctx, j)
		return nil
	}
	r.end([]ended{{j, err}})
	return nil
}

// restart begins a job again whose position was deleted while it read:
// records and tombstones in between are gone, so that it is all or nothing.
func (r *Restorer) restart(ctx context.Context, j *Job) {
	j.restarts++
	r.src.Unassign(j.TP)
	var over bool
	var err error
	if j.Start, err = j.Restart(ctx); err != nil {
		err = fmt.Errorf("asking where %s begins: %w", j.TP, err)
	} else if over, err = r.from(j); err == nil && !over {
		r.src.Assign(j.TP, j.pos)
		return
	}
	r.end([]ended{{j, err}})
}

// from is where a job goes on that found its position out of range.
func (r *Restorer) from(j *Job) (over bool, err error) {
	switch {
	case j.Start > j.pos:
		err = j.empty(fmt.Sprintf("the changelog's start moved to %d while position %d was read", j.Start, j.pos))
	case j.restarts == maxRestarts:
		// It is not the start. A new leader may know the old start for a moment,
		// and then it is worth another try; but not for ever.
		err = fmt.Errorf("%s: position %d is past the end of the log: %w", j.TP, j.pos, ErrAhead)
	}
	if err != nil {
		return true, err
	}
	return j.over()
}

// end ends jobs: first none is read any more, then everybody hears, who may
// add others.
func (r *Restorer) end(jobs []ended) {
	if len(jobs) == 0 {
		return
	}
	tps := make([]TP, len(jobs))
	for i, e := range jobs {
		tps[i] = e.job.TP
		delete(r.jobs, e.job.TP)
	}
	r.src.Unassign(tps...)
	for _, e := range jobs {
		e.job.Done(e.err)
	}
}

// Wake makes a Step that waits return, or else the next one. Any goroutine may
// call it.
func (r *Restorer) Wake() { r.src.Wake() }

// Close cancels every job and closes the source.
func (r *Restorer) Close() {
	r.closed = true
	for _, tp := range seam.SortedTPs(r.jobs) {
		r.Cancel(tp)
	}
	r.src.Close()
}
