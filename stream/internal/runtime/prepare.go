package runtime

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/semelstream/semel/changelog"
	"github.com/semelstream/semel/internal/seam"
)

// A prepareJob brings a task to where it can begin: the committed offsets of
// its inputs are known, its stores hold what was committed with them. It is
// done off the worker's loop, so that other tasks go on.
type prepareJob struct {
	w *worker
	t *task

	// Results, read by the worker when it gets the job back.
	offsets seam.Offsets         // of every input, with the metadata committed
	stable  map[seam.TP]int64    // last stable offsets of the inputs
	times   map[string]int64     // named times that were committed
	unset   bool                 // some input had no offset
	found   bool                 // some input had one
	err     error                // why it failed
	begun   time.Time            // for the log
	parts   map[seam.TP]*restore // still to be restored

	canceled bool // guarded by preparer.mu
}

// A restore is a store on its way to its changelog's end.
type restore struct {
	job   *prepareJob
	store *taskStore
}

// A preparer is a goroutine that prepares tasks. Several tasks are restored
// side by side, each as far as its changelog goes.
type preparer struct {
	app    *App
	id     int
	signal seam.Signal

	mu    sync.Mutex // guards queue, canceled flags and r; never held across a call into a seam
	queue []*prepareJob
	r     *changelog.Restorer

	jobs   []*prepareJob // begun and not ended
	growAt time.Time     // when to look for new partitions
	lookAt time.Time     // when to look for topics that match patterns
}

// prepare hands a task to a preparer.
func (w *worker) prepare(t *task) {
	t.job = &prepareJob{w: w, t: t, begun: w.app.env.Clock.Now(), parts: map[seam.TP]*restore{}, times: map[string]int64{}}
	p := w.app.preparer(t.id)
	p.mu.Lock()
	p.queue = append(p.queue, t.job)
	p.mu.Unlock()
	p.wake()
}

// cancel asks for a job to end soon; it comes back as an order all the same.
func (a *App) cancel(j *prepareJob) {
	p := a.preparer(j.t.id)
	p.mu.Lock()
	j.canceled = true
	p.mu.Unlock()
	p.wake()
}

func (p *preparer) wake() {
	p.mu.Lock()
	r := p.r
	p.mu.Unlock()
	if r != nil {
		r.Wake()
	}
	p.signal.Notify()
}

func (p *preparer) take() []*prepareJob {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := p.queue
	p.queue = nil
	return out
}

func (p *preparer) isCanceled(j *prepareJob) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return j.canceled
}

// run is the preparer's goroutine. It ends with ctx, and gives every job back
// first.
func (p *preparer) run(ctx context.Context) {
	for ctx.Err() == nil {
		if jobs := p.take(); len(jobs) > 0 {
			p.begin(ctx, jobs)
		}
		p.dropCanceled()
		p.watchGrowth(ctx)
		if len(p.jobs) == 0 {
			p.signal.Wait(ctx, time.Second)
			continue
		}
		if err := p.step(ctx); err != nil {
			p.giveUp(err)
		}
	}
	p.jobs = append(p.jobs, p.take()...)
	p.giveUp(ctx.Err())
	if p.r != nil {
		p.r.Close()
	}
}

// begin fetches offsets and ends for jobs and starts their restores. The order
// matters: stable offsets first, ends after, so that the changelog is read to
// where it was when the offsets were decided, or further.
func (p *preparer) begin(ctx context.Context, jobs []*prepareJob) {
	p.jobs = append(p.jobs, jobs...)
	if err := p.fetchOffsets(ctx, jobs); err != nil {
		p.endAll(jobs, p.app.vanished(ctx, err, inputsOf(jobs)))
		return
	}
	if err := p.startRestores(ctx, jobs); err != nil {
		p.endAll(jobs, err)
		return
	}
	for _, j := range jobs {
		if len(j.parts) == 0 {
			p.end(j, nil)
		}
	}
}

// startRestores begins the restore of each store that has a changelog.
func (p *preparer) startRestores(ctx context.Context, jobs []*prepareJob) error {
	var tps []seam.TP
	for _, j := range jobs {
		for _, s := range j.t.stores {
			if s.tp.Topic != "" {
				j.parts[s.tp] = &restore{job: j, store: s}
				tps = append(tps, s.tp)
			}
		}
	}
	if len(tps) == 0 {
		return nil
	}
	b := p.app.env.Broker
	ends, err := b.Ends(ctx, tps)
	if mutant == restoreToStable {
		ends, err = b.Stable(ctx, tps)
	}
	if err != nil {
		return fmt.Errorf("fetching the changelogs' ends: %w", err)
	}
	starts, err := b.Starts(ctx, tps)
	if err != nil {
		return fmt.Errorf("fetching the changelogs' starts: %w", err)
	}
	for _, j := range jobs {
		for _, tp := range seam.SortedTPs(j.parts) {
			if starts[tp], err = p.unexpired(ctx, j, j.parts[tp].store, starts[tp]); err != nil {
				return err
			}
		}
	}
	if err := p.open(ctx); err != nil {
		return err
	}
	for _, j := range jobs {
		for _, tp := range seam.SortedTPs(j.parts) {
			p.r.Add(p.job(j, j.parts[tp], starts[tp], ends[tp]))
		}
	}
	return nil
}

// job makes the changelog's job. A table whose changelog is its input must
// stop at the committed offset: what lies beyond was not processed yet.
func (p *preparer) job(j *prepareJob, rs *restore, start, end int64) *changelog.Job {
	s := rs.store
	if s.source != nil {
		end = min(end, j.offsets[s.source.tp].At)
		start = min(start, end)
	}
	reason := "tail of the changelog"
	if s.part.Position() == 0 {
		reason = "no local state"
	}
	if end > s.part.Position() {
		p.app.log.Info("restoring", zap.Stringer("task", j.t.id), zap.String("store", s.spec.Name),
			zap.Int64("from", s.part.Position()), zap.Int64("to", end), zap.String("reason", reason))
	}
	return &changelog.Job{
		TP: s.tp, Target: target{s.part}, Start: start, End: end, Anew: p.app.outdated(j.t, s),
		Restart: func(ctx context.Context) (int64, error) { return p.startOf(ctx, s.tp) },
		Emptied: func(why string) {
			reason = why
			p.app.log.Warn("restoring from the beginning", zap.Stringer("task", j.t.id), zap.String("store", s.spec.Name), zap.String("reason", why))
		},
		Done: func(err error) { p.restored(rs, reason, end, err) },
		Progress: func(pr changelog.Progress) {
			p.progress(j, s, reason, pr, false)
		},
	}
}

// startOf is the first offset of a changelog that is still there.
func (p *preparer) startOf(ctx context.Context, tp seam.TP) (int64, error) {
	starts, err := p.app.env.Broker.Starts(ctx, []seam.TP{tp})
	return starts[tp], err
}

func (p *preparer) progress(j *prepareJob, s *taskStore, reason string, pr changelog.Progress, done bool) {
	if h := p.app.cfg.Hooks.Restore; h != nil {
		h(Restore{
			Task: j.t.id.String(), Store: s.spec.Name, Reason: reason, Position: pr.Position, End: pr.End,
			Records: pr.Records, Bytes: pr.Bytes, Took: p.app.env.Clock.Now().Sub(j.begun), Done: done,
		})
	}
}

// restored is called when the restore of one store has ended.
func (p *preparer) restored(rs *restore, reason string, end int64, err error) {
	j := rs.job
	delete(j.parts, rs.store.tp)
	if err != nil {
		j.err = errors.Join(j.err, p.explainRestore(j, rs, err))
	} else {
		p.progress(j, rs.store, reason, changelog.Progress{Position: rs.store.part.Position(), End: end}, true)
	}
}

// step reads changelogs once and ends the jobs that are through.
func (p *preparer) step(ctx context.Context) error {
	if err := p.open(ctx); err != nil {
		return err
	}
	if p.r.Jobs() > 0 {
		if err := p.r.Step(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
	for _, j := range slices.Clone(p.jobs) {
		if j.err != nil {
			p.end(j, j.err)
		} else if len(j.parts) == 0 {
			p.end(j, nil)
		}
	}
	return nil
}

// open makes the client that reads changelogs, when it is first needed.
func (p *preparer) open(ctx context.Context) error {
	if p.r != nil {
		return nil
	}
	c, err := p.app.env.Broker.Consumer(ctx)
	if err != nil {
		return fmt.Errorf("opening the restore client: %w", err)
	}
	p.mu.Lock()
	p.r = changelog.NewRestorer(c)
	p.mu.Unlock()
	return nil
}

func (p *preparer) dropCanceled() {
	for _, j := range slices.Clone(p.jobs) {
		if p.isCanceled(j) {
			p.end(j, changelog.ErrCanceled)
		}
	}
}

// giveUp ends every job with err and drops the client.
func (p *preparer) giveUp(err error) {
	p.endAll(slices.Clone(p.jobs), err)
	p.mu.Lock()
	r := p.r
	p.r = nil
	p.mu.Unlock()
	if r != nil {
		r.Close()
	}
}

func (p *preparer) endAll(jobs []*prepareJob, err error) {
	for _, j := range jobs {
		p.end(j, err)
	}
}

// end gives a job back to its worker. From here on the preparer does not
// touch the task.
func (p *preparer) end(j *prepareJob, err error) {
	i := slices.Index(p.jobs, j)
	if i < 0 {
		return
	}
	p.jobs = slices.Delete(p.jobs, i, i+1)
	for _, tp := range seam.SortedTPs(j.parts) {
		if p.r != nil { // there is none if it could not be opened
			p.r.Cancel(tp)
		}
	}
	if j.err == nil || err != nil {
		j.err = err
	}
	if j.err == nil {
		j.err = p.checkForgotten(j)
	}
	p.app.env.Stops.At("restored")
	j.w.post(&order{kind: orderPrepared, job: j})
}

// checkForgotten refuses to begin at the first offset over state that was
// made from later ones: the records would count twice.
func (p *preparer) checkForgotten(j *prepareJob) error {
	if j.found || j.allAppeared() {
		return j.checkStores()
	}
	for _, s := range j.t.stores {
		if s.source != nil || s.tp.Topic == "" {
			continue
		}
		empty, err := s.part.Empty()
		if err != nil {
			return err
		}
		if !empty {
			return fault("OFFSETS-LOST", "the group has no offsets, but the state is not empty",
				fmt.Sprintf("task %s, store %s, changelog %s", j.t.id, s.spec.Name, s.tp), ErrIncompatible,
				"the offsets were deleted or have expired: set the group's offsets to where the state stands, or delete the app's changelogs and state directories to begin anew")
		}
	}
	return nil
}

// allAppeared says that all inputs are topics that have only come to match: the
// state is of topics that are gone, and no record can count twice.
func (j *prepareJob) allAppeared() bool {
	return len(j.t.inputs) > 0 && !slices.ContainsFunc(j.t.inputs, func(in *input) bool { return !j.w.app.appeared(in) })
}

// explainRestore says what a store that cannot be restored means.
func (p *preparer) explainRestore(j *prepareJob, rs *restore, err error) error {
	if errors.Is(err, changelog.ErrAhead) {
		return fault("CHANGELOG", "the local state is ahead of the changelog",
			fmt.Sprintf("task %s, store %s", j.t.id, rs.store.spec.Name), err,
			"the changelog topic was made anew, or the state directory belongs to another cluster: move the directory away, it is rebuilt from the changelog")
	}
	return err
}
