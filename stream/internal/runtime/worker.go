package runtime

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/semelstream/semel/internal/assert"
	"github.com/semelstream/semel/internal/seam"
	"github.com/semelstream/semel/state"
	"github.com/semelstream/semel/txn"
)

// A worker is one goroutine that owns tasks and has its own transaction, with
// a transactional id that is stable over restarts. All its tasks commit
// together.
//
// A worker lives in sessions. A session begins with a new producer, which
// fences the one before, and opens the wanted tasks at what the broker says is
// committed. It ends with an error of the transaction, whatever the error:
// then everything that is not known to be committed is dropped, and the next
// session reads the truth. So there is one way back from a failed commit, a
// fenced producer, an unknown outcome and a stale generation.
type worker struct {
	app    *App
	id     int
	log    *zap.Logger
	signal seam.Signal

	mu      sync.Mutex // guards the next six; never held across a call into a seam
	wanted  map[seam.Task]bool
	inbox   []*order
	txn     seam.Txn // nil between sessions
	transit *transit // the open transaction, nil between sessions
	pool    pool     // of slices for staged records
	dead    bool     // the goroutine has ended

	running atomic.Int32 // tasks at work, for the state
	resting atomic.Bool  // paused, with nothing in hand

	// Owned by the worker's goroutine.
	tasks    map[seam.Task]*task
	kept     map[seam.Task]*state.DB // stores that outlive a session
	order    []*task                 // the running ones, sorted
	inputs   map[seam.TP]*input
	owners   map[seam.TP]*task
	sinks    *sinks
	arena    *arena
	leaving  map[seam.Task]leaving // given up and not closed yet
	revoking []*order              // not finished yet
	stopping *order
	ending   *transit // the transaction before the open one, until it is known to be committed

	spare    *transit  // one that is over, whose memory the next one takes
	begun    time.Time // of the first change since the last commit; zero if there is none
	records  int       // processed since the last commit
	gathered bool      // in continuous mode: asked once more for records since the last commit
	purgeAt  time.Time
	last     map[seam.TP]int64 // of the mutant skipRewind
	next     int               // the task whose turn it is
}

func newWorker(a *App, id int) *worker {
	w := &worker{
		app: a, id: id, log: a.log.With(zap.Int("worker", id)), signal: a.env.Signal(),
		wanted: map[seam.Task]bool{}, tasks: map[seam.Task]*task{}, kept: map[seam.Task]*state.DB{}, leaving: map[seam.Task]leaving{},
		inputs: map[seam.TP]*input{}, owners: map[seam.TP]*task{},
	}
	w.fresh()
	return w
}

// fresh gives the worker sinks and an arena that no producer knows.
func (w *worker) fresh() {
	w.sinks = newSinks(w.app.cfg.App, w.app.partitions)
	w.sinks.max, w.sinks.busyAt = w.app.maxRecord, w.app.cfg.Busy
	w.arena = &arena{}
	w.mu.Lock()
	w.pool = pool{} // its slices point into the arena before
	w.mu.Unlock()
}

// run is the worker's goroutine. It returns nil after a stop, else why the app
// cannot go on.
func (w *worker) run(ctx context.Context) error {
	for failures := 0; ; {
		begun := w.app.env.Clock.Now()
		err := w.session(ctx)
		if err == nil {
			return nil
		}
		if w.app.env.Clock.Now().Sub(begun) > 10*time.Second {
			failures = 0
		}
		failures++
		if stop := w.judge(ctx, err); stop != nil {
			w.drop(ctx)
			return stop
		}
		w.reset(ctx, err)
		var u *unlearned
		if errors.As(err, &u) {
			if err := w.app.learn(ctx, u.topic); err != nil {
				w.log.Warn("a topic could not be looked up; trying again", zap.String("topic", u.topic), zap.Error(err))
			}
		}
		_ = w.app.env.Clock.Sleep(ctx, backoff(failures)) // the next session sees the end of ctx
	}
}

// backoff grows from 5 ms to a second.
func backoff(failures int) time.Duration {
	return min(5*time.Millisecond<<min(failures-1, 10), time.Second)
}

// judge says whether an error ends the app, and with what.
func (w *worker) judge(ctx context.Context, err error) error {
	var d *damaged
	if errors.As(err, &d) {
		if _, ok := w.app.env.Stores.(Quarantiner); ok {
			return nil
		}
		return fault("STATE", "local state is corrupt", "task "+d.task.String(), d.err,
			"move the task's directory away: it is rebuilt from the changelogs")
	}
	var f fatal
	if errors.As(err, &f) {
		return f.error
	}
	var u *unlearned
	if errors.As(err, &u) {
		return nil
	}
	var fl *Fault
	if errors.As(err, &fl) {
		return err
	}
	if ctx.Err() != nil {
		return err
	}
	if txn.Judge(err) == txn.OutcomeFatal {
		return fmt.Errorf("worker %d: %w", w.id, err)
	}
	return nil
}

// session works until an error or a stop.
func (w *worker) session(ctx context.Context) error {
	t, err := w.app.env.Broker.Txn(ctx, w.app.txnID(w.id))
	if err != nil {
		return fmt.Errorf("opening the producer: %w", err)
	}
	w.mu.Lock()
	w.txn, w.transit = t, w.newTransit(t.Open(), nil)
	w.mu.Unlock()
	w.app.env.Stops.At("init")
	w.purgeAt = w.app.env.Clock.Now().Add(w.app.cfg.PurgeInterval)
	for {
		if err := w.openMissing(ctx); err != nil {
			return err
		}
		done, err := w.step(ctx)
		if done || err != nil {
			return err
		}
	}
}

// step is one turn of the worker: orders, records in, records through, commit.
func (w *worker) step(ctx context.Context) (done bool, err error) {
	if err := w.obey(ctx); err != nil {
		return false, err
	}
	if w.stopping != nil {
		if len(w.leaving) > 0 {
			w.signal.Wait(context.WithoutCancel(ctx), time.Second)
			return false, nil
		}
		w.releaseAll()
		w.closeTxn()
		w.app.finished(w.stopping)
		return true, nil
	}
	if w.app.paused.Load() {
		return false, w.rest(ctx)
	}
	w.wakeUp()
	ready := w.ready()
	if err := w.fetch(ctx, ready); err != nil {
		return false, err
	}
	for range len(w.order) {
		if err := w.work(ctx); err != nil {
			return false, err
		}
	}
	if err := w.handOverAll(ctx); err != nil {
		return false, err
	}
	if err := w.wallTimers(ctx); err != nil {
		return false, err
	}
	if w.commitDue() {
		if err := w.close(ctx); err != nil {
			return false, err
		}
	}
	w.persistDue()
	return false, nil
}

// fetch polls. It waits for records only if no task has any to process, and
// at most until something else is due. A task that stays behind has full
// queues, is not polled for, and so holds its partitions back.
func (w *worker) fetch(ctx context.Context, ready bool) error {
	if len(w.order) == 0 {
		if !ready {
			w.signal.Wait(ctx, w.patience())
		}
		return ctx.Err()
	}
	wait := time.Duration(0)
	switch {
	case !ready && w.ending == nil && w.gathering():
		w.gathered, wait = true, w.app.cfg.Gather
	case !ready:
		wait = w.patience()
		w.gathered = w.gathered || w.ending != nil && w.records > 0
	case w.fed():
		return ctx.Err()
	}
	batches, err := w.txn.Poll(ctx, w.app.cfg.PollRecords, wait)
	if err != nil {
		return w.explainPoll(err)
	}
	for _, b := range batches {
		in := w.inputs[b.TP]
		assert.That(in != nil, "records of %s, which is not assigned", b.TP)
		in.add(b)
		if len(b.Records) == 0 { // control records: the position moved
			w.owners[b.TP].touch()
		}
		if in.exceeds(w.app.cfg.QueueRecords, w.app.cfg.QueueBytes) && !in.paused && len(w.owners[b.TP].inputs) > 1 {
			// It waits for another input, which must still be polled.
			in.paused = true
			w.txn.Unassign(in.tp)
		}
	}
	return nil
}

// gathering says that a transaction of continuous mode should be given what
// arrived while the last one was being committed. The client fetches ahead: the
// records at hand came right after the last poll, and the fetch that brings
// those after them has only just gone out. Without them each record would sit
// through one transaction more.
func (w *worker) gathering() bool {
	return w.app.cfg.Continuous && w.app.cfg.Gather > 0 && w.records > 0 && !w.gathered
}

// lowWater is how few records are queued when more are polled for.
const lowWater = 20_000

// fed says that enough is queued: no more is polled for.
func (w *worker) fed() bool {
	records, bytes := 0, int64(0)
	for _, t := range w.order {
		for _, in := range t.inputs {
			records += in.queued
			bytes += in.bytes
		}
	}
	return records > lowWater || bytes > w.app.cfg.QueueBytes
}

// patience is how long there is nothing to do if no record comes.
func (w *worker) patience() time.Duration {
	now := w.app.env.Clock.Now()
	wait := time.Second
	until := func(t time.Time) { wait = min(wait, max(t.Sub(now), 0)) }
	if !w.begun.IsZero() && w.ending == nil {
		until(w.begun.Add(w.app.cfg.CommitInterval))
	}
	for _, t := range w.order {
		if ms := t.inst.NextWall(); ms < maxTime {
			until(time.UnixMilli(ms))
		}
		if t.db != nil && t.write == nil && t.db.PendingBytes() > 0 {
			until(t.storeAt)
		}
		if t.unflushed && t.write == nil {
			until(t.flushAt)
		}
		if w.app.cfg.MaxIdle > 0 && t.queued() > 0 {
			wait = min(wait, 10*time.Millisecond)
		}
	}
	return wait
}

// ready says that some task can process a record now.
func (w *worker) ready() bool {
	for _, t := range w.order {
		if t.choose() != nil {
			return true
		}
	}
	return false
}

// closeTxn ends the producer.
func (w *worker) closeTxn() {
	w.mu.Lock()
	t := w.txn
	w.txn = nil
	w.mu.Unlock()
	if t != nil {
		t.Close()
	}
}

// sorted are the open tasks in order.
func (w *worker) sorted() []*task {
	return slices.SortedFunc(maps.Values(w.tasks), func(a, b *task) int { return a.id.Compare(b.id) })
}

// explainPoll says what an input that cannot be read means.
func (w *worker) explainPoll(err error) error {
	var pe *seam.PartitionError
	if !errors.As(err, &pe) {
		return err
	}
	if isOutOfRange(err) {
		return fault("OFFSET-GONE", "records that were not processed yet are gone from the input", pe.TP.String(), pe.Err,
			"the topic's retention deleted them, or the topic was made anew: raise retention.ms; to go on without them, set the group's offset for this partition")
	}
	return err
}
