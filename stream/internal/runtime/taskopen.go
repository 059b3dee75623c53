package runtime

import (
	"context"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/semelstream/semel/changelog"
	"github.com/semelstream/semel/internal/seam"
	"github.com/semelstream/semel/state"
	"github.com/semelstream/semel/stream/internal/graph"
)

const maxTime = math.MaxInt64

var noTime time.Time

// A task is a Task at work in a worker.
type task struct {
	*Task
	w      *worker
	inst   Instance // nil until the task runs
	inputs []*input
	stores []*taskStore
	job    *prepareJob // while offsets and stores are being prepared

	seen    seen
	corrupt error // found in its stores, which are not used again then

	expected  bool            // the changelogs that its changes go to are in the transaction
	touched   bool            // since the last commit: positions, state or times have changed
	drops     map[dropKey]int // records left out since the last commit
	write     *writeBack
	unflushed bool      // rows were written that a crash could lose
	storeAt   time.Time // when committed rows are to be written
	flushAt   time.Time // when they are to be flushed
}

// A taskStore is one store of a task and its changelog.
type taskStore struct {
	spec   *graph.Store
	part   *state.Part
	tp     seam.TP           // the changelog partition; no topic if there is none
	log    *changelog.Writer // of its own changelog
	source *input            // if the changelog is an input of the task
	logged bool              // the last transaction wrote to the changelog
}

func (t *task) queued() (n int) {
	for _, in := range t.inputs {
		n += in.queued
	}
	return n
}

// openMissing begins to open the wanted tasks that are not open.
func (w *worker) openMissing(ctx context.Context) error {
	if w.stopping != nil {
		return nil
	}
	for _, id := range w.missing() {
		if err := w.open(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

// open opens a task's stores and has its offsets fetched and its stores
// restored, off this loop.
func (w *worker) open(ctx context.Context, id seam.Task) error {
	t, err := w.newTask(ctx, id)
	if err != nil {
		return err
	}
	w.tasks[id] = t
	w.prepare(t)
	return nil
}

func (w *worker) newTask(ctx context.Context, id seam.Task) (*task, error) {
	a := w.app
	sub := a.graph.Subs[id.Sub]
	t := &task{w: w, drops: map[dropKey]int{}}
	var db *state.DB
	if len(sub.Stores) > 0 {
		var err error
		if db, err = w.stores(id, sub); err != nil {
			return nil, err
		}
	}
	t.Task = newTask(TaskConfig{
		ID: id, Sub: sub, Context: ctx, DB: db, Wall: a.env.Clock.Now, App: a.cfg.App, Globals: a.Global,
		Dropped: func(op, reason string) { t.drops[dropKey{op, reason}]++ },
	}, w.sinks, w.arena)
	t.decide = t.failedAlone
	for i, topic := range sub.Sources {
		if topic.Pattern != nil {
			for _, tp := range a.readsOf(id, topic) {
				t.inputs = append(t.inputs, &input{index: i, tp: tp, topic: topic, time: -1})
			}
			continue
		}
		name := topic.FullName(a.cfg.App)
		if id.Partition < a.partitions(name) {
			t.inputs = append(t.inputs, &input{index: i, tp: seam.TP{Topic: name, Partition: id.Partition}, topic: topic, time: -1})
		}
	}
	t.seen.lags = make([]atomic.Int64, len(t.inputs))
	for _, s := range sub.Stores {
		ts := &taskStore{spec: s, part: db.Part(s.Name)}
		if !s.NoChangelog {
			ts.tp = seam.TP{Topic: s.ChangelogName(a.cfg.App), Partition: id.Partition}
		}
		if s.Source == nil && !s.NoChangelog {
			ts.log = changelog.NewWriter(ts.tp, rowHeaders(s)...)
		}
		if s.Source != nil {
			for _, in := range t.inputs {
				if in.topic == s.Source {
					ts.source = in
				}
			}
		}
		t.stores = append(t.stores, ts)
	}
	return t, nil
}

// stores are the task's stores: those kept from the last session, or opened.
func (w *worker) stores(id seam.Task, sub *graph.Sub) (*state.DB, error) {
	if db := w.kept[id]; db != nil {
		delete(w.kept, id)
		return db, nil
	}
	return w.app.openDB(id, sub)
}

// activate puts a prepared task to work.
func (w *worker) activate(ctx context.Context, t *task, p *prepareJob) error {
	t.Task.ctx = ctx
	if err := t.begin(); err != nil {
		return err
	}
	mergeTimes(p.times, t.savedTimes())
	if ms, ok := p.times[streamTimeName]; ok {
		t.streamTime = ms
	}
	t.inst.Load(func(name string) (int64, bool) { ms, ok := p.times[name]; return ms, ok })
	for _, in := range t.inputs {
		start := p.offsets[in.tp]
		in.next, in.epoch, in.stable = start.At, start.Epoch, max(p.stable[in.tp], start.At)
		in.time, _ = decodeMeta(start.Metadata)
		if at, ok := w.last[in.tp]; ok && mutant == skipRewind {
			in.next, in.epoch = at, -1
		}
		w.inputs[in.tp], w.owners[in.tp] = in, t
		w.txn.Assign(in.tp, in.next)
	}
	t.touched = p.unset // where reading begins must be known after a crash too
	if t.touched {
		w.changed()
	}
	now := w.app.env.Clock.Now()
	t.storeAt, t.flushAt = now.Add(w.app.cfg.StoreInterval), now.Add(w.app.cfg.FlushInterval)
	w.order = append(w.order, t)
	slices.SortFunc(w.order, func(a, b *task) int { return a.id.Compare(b.id) })
	w.running.Store(int32(len(w.order)))
	t.note()
	w.app.opened(t)
	w.app.env.Stops.At("active")
	w.log.Info("task runs", zap.Stringer("task", t.id))
	w.app.updateState()
	return nil
}

// begin makes the instance. What it does in Init must leave no trace if it
// fails.
func (t *task) begin() error {
	var err error
	if t.inst, err = t.w.app.prog.Open(t.Task); err != nil {
		t.inst = nil
		if t.corrupted(err) {
			return t.damage(err)
		}
		return fatalf("task %s cannot begin: %w", t.id, err)
	}
	return nil
}

// savedTimes are the times that were stored with the state.
func (t *task) savedTimes() map[string]int64 {
	if t.db == nil {
		return nil
	}
	return t.db.Meta()
}
