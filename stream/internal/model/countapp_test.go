package model

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/semelstream/semel/internal/seam"
	"github.com/semelstream/semel/state"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/zap"
)

// The counter is a small copy of what the runtime does, against the seams
// only: for each record of "src" it writes the running count of the key to
// "out" and, once per transaction, to the changelog "chg". It is here to
// prove the model: it must survive every seed, and each of its mutants must
// not.

// mutants are mistakes that the counter can make.
type mutants struct {
	storeBeforeEnd  bool // what is not known to be committed gets to the disk
	offsetsOutside  bool // offsets are committed, but not in the transaction
	restoreToStable bool // restore ends at the last stable offset
	unstableOffsets bool // offsets are fetched with a transaction pending
	reopenRevoked   bool // a reset opens what was revoked meanwhile
	guessCommitted  bool // an unknown outcome counts as a commit
}

type counter struct {
	seam.Env
	disk    *Disk
	name    string
	parts   int32
	mut     mutants
	group   seam.Group
	workers []*worker
	obeyed  seam.Signal
}

// An order tells a worker to take and to give up tasks.
type order struct {
	add, del   []int32
	lost, done bool
}

type worker struct {
	*counter
	id    int
	txn   seam.Txn
	wants map[int32]bool // what the group gave us
	tasks map[int32]*task
	queue []*order
	open  bool // something is produced
	moved bool // inputs were read
	n     int
	keep  bool // mutant: the tasks stay open over a reset
}

type task struct {
	part    int32
	engine  state.Engine
	dirty   map[string]uint64 // in the open transaction
	stored  map[string]uint64 // committed, not on the disk yet
	next    int64             // input
	moved   bool
	changes int64 // changelog position of what is in stored
}

func (c *counter) run(ctx context.Context, workers int) error {
	c.obeyed = c.Signal()
	for i := range workers {
		c.workers = append(c.workers, &worker{counter: c, id: i, wants: map[int32]bool{}, tasks: map[int32]*task{}})
	}
	var err error
	c.group, err = c.Broker.Group(ctx, seam.GroupConfig{Group: "app", Instance: c.name, Subs: []seam.Sub{{Topics: []string{"src"}, Tasks: c.parts, Stateful: true}}})
	if err != nil {
		return err
	}
	for _, w := range c.workers {
		c.Go(fmt.Sprintf("worker %d", w.id), func() { w.run(ctx) })
	}
	for {
		ch, err := c.group.Next(ctx)
		if err != nil {
			return err
		}
		c.Log.Info("change", zap.Any("assigned", ch.Assigned), zap.Any("revoked", ch.Revoked), zap.Bool("lost", ch.Lost))
		for _, o := range c.post(ch.Revoked, true, ch.Lost) {
			for !o.done {
				c.obeyed.Wait(ctx, time.Hour)
			}
		}
		ch.Done()
		c.post(ch.Assigned, false, false)
	}
}

// post gives each worker its part.
func (c *counter) post(tasks []seam.Task, del, lost bool) (orders []*order) {
	for i, w := range c.workers {
		o := &order{lost: lost}
		for _, t := range tasks {
			switch {
			case int(t.Partition)%len(c.workers) != i:
			case del:
				o.del = append(o.del, t.Partition)
			default:
				o.add = append(o.add, t.Partition)
			}
		}
		if len(o.add)+len(o.del) > 0 {
			w.queue = append(w.queue, o)
			orders = append(orders, o)
			if w.txn != nil {
				w.txn.Wake()
			}
		}
	}
	return orders
}

func (w *worker) run(ctx context.Context) {
	for {
		err := w.session(ctx)
		w.Log.Info("session ends", zap.Int("worker", w.id), zap.Error(err))
		w.Clock.Sleep(ctx, 5*time.Millisecond)
	}
}

// session lives until something goes wrong: then the producer and what is in
// memory are dropped, and the next session reads the truth.
func (w *worker) session(ctx context.Context) (err error) {
	if w.txn != nil {
		w.txn.Close()
	}
	if w.txn, err = w.Broker.Txn(ctx, fmt.Sprintf("app-%s-%d", w.name, w.id)); err != nil {
		return err
	}
	w.Stops.At("init")
	w.open, w.moved = false, false
	if w.keep {
		w.keep = false
		for _, p := range sorted(w.tasks) {
			w.txn.Assign(seam.TP{Topic: "src", Partition: p}, w.tasks[p].next)
		}
	} else {
		for _, p := range sorted(w.tasks) {
			w.close(p)
		}
	}
	for _, p := range sorted(w.wants) {
		if err := w.openTask(ctx, p); err != nil {
			return err
		}
	}
	for idle := 0; ; {
		for len(w.queue) > 0 {
			o := w.queue[0]
			err := w.obey(ctx, o)
			w.queue = w.queue[1:]
			o.done = true
			w.obeyed.Notify()
			if err != nil {
				return err
			}
		}
		batches, err := w.txn.Poll(ctx, 50, 25*time.Millisecond)
		if err != nil {
			return err
		}
		for _, b := range batches {
			if err := w.process(ctx, b); err != nil {
				return err
			}
		}
		w.Stops.At("processed")
		if idle++; w.moved && idle >= 3 {
			idle = 0
			if err := w.commit(ctx); err != nil {
				return err
			}
		}
	}
}

func sorted[V any](m map[int32]V) []int32 { return slices.Sorted(maps.Keys(m)) }

func (w *worker) process(ctx context.Context, b seam.Batch) error {
	t := w.tasks[b.Partition]
	if len(b.Records) > 0 {
		p := b.Partition
		if err := w.txn.Add(ctx, []seam.TP{{Topic: "out", Partition: p}, {Topic: "chg", Partition: p}}); err != nil {
			return err
		}
		w.open = true
	}
	var out []*kgo.Record
	for _, r := range b.Records {
		v, err := t.get(string(r.Key))
		if err != nil {
			return err
		}
		v++
		t.dirty[string(r.Key)] = v
		out = append(out, &kgo.Record{Topic: "out", Partition: b.Partition, Key: r.Key, Value: append(binary.BigEndian.AppendUint64(nil, v), r.Value...)})
	}
	w.txn.Produce(out)
	t.next, t.moved, w.moved = b.Next, true, true
	return nil
}

func (t *task) get(key string) (v uint64, err error) {
	if v, ok := t.dirty[key]; ok {
		return v, nil
	}
	if v, ok := t.stored[key]; ok {
		return v, nil
	}
	_, err = t.engine.Get([]byte("k"+key), func(b []byte) error { v = binary.BigEndian.Uint64(b); return nil })
	return v, err
}

func (w *worker) obey(ctx context.Context, o *order) error {
	defer func() {
		if w.mut.reopenRevoked {
			return
		}
		for _, p := range o.del { // whatever happened: not ours any more
			delete(w.wants, p)
			w.close(p)
		}
	}()
	for _, p := range o.add {
		w.wants[p] = true
	}
	for _, p := range o.del {
		w.txn.Unassign(seam.TP{Topic: "src", Partition: p})
	}
	if len(o.del) > 0 && (w.open || w.moved) {
		if o.lost {
			return errors.New("lost tasks inside a transaction")
		}
		if err := w.commit(ctx); err != nil {
			return err
		}
	}
	for _, p := range o.del {
		delete(w.wants, p)
		if t := w.tasks[p]; t != nil {
			if err := t.store(); err != nil {
				return err
			}
			w.close(p)
		}
	}
	for _, p := range o.add {
		if err := w.openTask(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

func (w *worker) close(p int32) {
	if t := w.tasks[p]; t != nil {
		t.engine.Close()
		delete(w.tasks, p)
	}
}

func (w *worker) openTask(ctx context.Context, p int32) error {
	if w.tasks[p] != nil {
		return nil
	}
	e, err := w.disk.Open(fmt.Sprint(p))
	if err != nil {
		return err
	}
	t := &task{part: p, engine: e, dirty: map[string]uint64{}, stored: map[string]uint64{}}
	w.tasks[p] = t
	src, chg := seam.TP{Topic: "src", Partition: p}, seam.TP{Topic: "chg", Partition: p}
	offs, err := w.Broker.Committed(ctx, "app", "app-", []seam.TP{src})
	if err != nil {
		return err
	}
	t.next = offs[src].At
	ends, err := w.Broker.Ends(ctx, []seam.TP{chg})
	if w.mut.restoreToStable {
		ends, err = w.Broker.Stable(ctx, []seam.TP{chg})
	}
	if err != nil {
		return err
	}
	if err := w.restore(ctx, t, chg, ends[chg]); err != nil {
		return err
	}
	w.Stops.At("restored")
	w.Log.Info("task", zap.Int32("task", p), zap.Int64("input", t.next), zap.Int64("changelog", t.changes))
	w.txn.Assign(src, t.next)
	return nil
}

func storedPosition(e state.Engine) (at int64) {
	e.Get([]byte("p"), func(b []byte) error { at = int64(binary.BigEndian.Uint64(b)); return nil })
	return at
}

func (w *worker) restore(ctx context.Context, t *task, chg seam.TP, end int64) error {
	t.changes = storedPosition(t.engine)
	if t.changes > end {
		return fmt.Errorf("store of task %d at %d is beyond the end %d of its changelog", t.part, t.changes, end)
	}
	r, err := w.Broker.Consumer(ctx)
	if err != nil {
		return err
	}
	defer r.Close()
	r.Assign(chg, t.changes)
	for t.changes < end {
		batches, err := r.Poll(ctx, 20, time.Second)
		if err != nil {
			return err
		}
		for _, b := range batches {
			for _, rec := range b.Records {
				t.stored[string(rec.Key)] = binary.BigEndian.Uint64(rec.Value)
			}
			t.changes = b.Next
			if err := t.store(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *worker) commit(ctx context.Context) error {
	w.moved = false
	offs := seam.Offsets{}
	changes := map[int32][]*kgo.Record{}
	for _, p := range sorted(w.tasks) {
		t := w.tasks[p]
		if t.moved {
			offs[seam.TP{Topic: "src", Partition: p}] = seam.Offset{At: t.next, Epoch: -1}
		}
		for _, k := range slices.Sorted(maps.Keys(t.dirty)) {
			changes[p] = append(changes[p], &kgo.Record{Topic: "chg", Partition: p, Key: []byte(k), Value: binary.BigEndian.AppendUint64(nil, t.dirty[k])})
		}
		w.txn.Produce(changes[p])
	}
	w.Stops.At("C2")
	if !w.open || w.mut.offsetsOutside {
		if err := w.Broker.Commit(ctx, w.group.Member(), offs); err != nil {
			return err
		}
		offs = nil
		if !w.open {
			for _, t := range w.tasks {
				t.moved = false
			}
			return nil
		}
	}
	if err := w.txn.Prepare(ctx, w.group.Member(), offs); err != nil {
		return err
	}
	w.Stops.At("C4")
	if w.mut.storeBeforeEnd {
		if err := w.committed(changes, true); err != nil {
			return err
		}
	}
	if err := w.txn.End(ctx, true); err != nil {
		if w.mut.guessCommitted {
			w.keep = true
			return errors.Join(err, w.committed(changes, false))
		}
		return err
	}
	w.Stops.At("C5")
	w.open = false
	w.n++
	err := w.committed(changes, w.n%4 == 0)
	w.Stops.At("C7")
	return err
}

// committed is after the commit is known. Changelogs have no more owners than
// tasks, so what we wrote last is where we are.
func (w *worker) committed(changes map[int32][]*kgo.Record, store bool) error {
	for _, p := range sorted(w.tasks) {
		t := w.tasks[p]
		maps.Copy(t.stored, t.dirty)
		clear(t.dirty)
		t.moved = false
		if recs := changes[p]; len(recs) > 0 {
			t.changes = recs[len(recs)-1].Offset + 1
		}
		if !store {
			continue
		}
		if err := t.store(); err != nil {
			return err
		}
		if w.n%8 == 0 {
			if err := t.engine.Flush(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (t *task) store() error {
	var b state.Batch
	for _, k := range slices.Sorted(maps.Keys(t.stored)) {
		b.Set([]byte("k"+k), binary.BigEndian.AppendUint64(nil, t.stored[k]))
	}
	clear(t.stored)
	b.Set([]byte("p"), binary.BigEndian.AppendUint64(nil, uint64(t.changes)))
	return t.engine.Write(&b)
}
