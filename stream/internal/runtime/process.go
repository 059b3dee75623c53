package runtime

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/zap"
)

// work lets the next task process some of its records and hands what it sent
// to the producer.
func (w *worker) work(ctx context.Context) error {
	t := w.order[w.next%len(w.order)]
	w.next++
	err := t.process(w.app.cfg.Step)
	if err == nil {
		return w.handOverMuch(ctx, t)
	}
	var m *MissingTopic
	if errors.As(err, &m) && w.app.unknown(m.Topic) {
		return w.app.learn(ctx, m.Topic) // the record comes again, and its topic is known then, or known to be missing
	}
	var half *torn
	if errors.As(err, &half) {
		return err
	}
	// Only this record failed, and its effects are undone: what was done
	// before it, by this task and the others, is whole and can be kept.
	if cerr := w.commit(ctx); cerr != nil {
		w.log.Warn("what was processed before the failure could not be committed; it will be processed again", zap.Error(cerr))
	}
	return err
}

// process runs at most max records through the task. It stops early when a
// commit is wanted.
func (t *task) process(max int) error {
	return t.locked(func() error { return t.run(max) })
}

// locked keeps views of the stores out while f changes them.
func (t *task) locked(f func() error) error {
	if t.db != nil {
		t.db.Lock()
		defer t.db.Unlock()
	}
	return f()
}

func (t *task) run(max int) error {
	n := 0
	defer func() {
		t.w.records += n
		if t.touched {
			t.w.changed()
		}
	}()
	for ; n < max && !t.commitSoon && t.stagedBytes < muchBytes; n++ {
		in := t.choose()
		if in == nil {
			break
		}
		if err := t.one(in); err != nil {
			return err
		}
	}
	if n > 0 {
		t.resume()
		t.expect()
	}
	return nil
}

// expect joins changelogs to the transaction as soon as rows have changed, in
// continuous mode: their records are made when it closes, and should not wait for
// their partitions then. If they are not written after all, a marker too many is.
// Where transactions are long one round trip is nothing, and one that begins late
// does not run into its timeout.
func (t *task) expect() {
	if !t.w.app.cfg.Continuous || t.expected || t.db == nil || t.db.DirtyBytes() == 0 {
		return
	}
	t.expected = true
	for _, s := range t.stores {
		if s.log == nil || !s.logged && len(t.stores) > 1 {
			continue
		}
		if k, err := t.Sink(s.tp.Topic); err == nil {
			t.sinks.join(k, s.tp.Partition)
		}
	}
}

// one processes the next record of in.
func (t *task) one(in *input) error {
	r, ms := in.peek(), in.head
	if mutant == dropLast && in.at > 0 && in.at == len(in.queue[0].Records)-1 {
		in.pop()
		return nil
	}
	in.touch(t.inst)
	if err := t.Process(t.inst, in.index, r, ms); err != nil {
		if err := t.failed(r, err); err != nil {
			return err
		}
	}
	in.time = max(in.time, ms)
	in.pop()
	t.touched = true // what it sent and its offset go together, whatever comes next
	if t.streamTime >= t.inst.NextStream() {
		if err := t.timers(t.streamTime, t.inst.Stream); err != nil {
			return err
		}
	}
	return t.finals()
}

// finals sends what has become final. Where it ends with an error some of it
// was sent.
func (t *task) finals() error {
	if err := t.inst.Final(); err != nil {
		return &torn{t.unblamed("sending final results", err)}
	}
	return nil
}

// timers runs due timers. There is no record to blame for their failure: what
// a failed one did is undone, and the policy can skip that, not more.
func (t *task) timers(now int64, fire func(int64) error) error {
	mark := t.Savepoint()
	return t.Settle(mark, fire(now))
}

// touch notes that there is something to commit.
func (t *task) touch() {
	t.touched = true
	t.w.changed()
}

func (w *worker) changed() {
	if w.begun.IsZero() {
		w.begun = w.app.env.Clock.Now()
	}
}

// resume reads inputs on that were held back.
func (t *task) resume() {
	for _, in := range t.inputs {
		if in.paused && !in.exceeds(t.w.app.cfg.QueueRecords/2, t.w.app.cfg.QueueBytes/2) {
			in.paused = false
			t.w.txn.Assign(in.tp, in.next)
		}
	}
}

// failedAlone is failed where there is no record at hand: what failed is a
// result, a timer, or a record that an operator had held back. It does not come
// again as the record at hand would.
func (t *task) failedAlone(held *kgo.Record, err error) error {
	var f *Failure
	if errors.As(err, &f) {
		f.Held = held != nil
	}
	err = t.failed(held, err)
	var m *MissingTopic
	if errors.As(err, &m) && t.w.app.unknown(m.Topic) {
		return &unlearned{m.Topic}
	}
	return err
}

// failed asks the policy what becomes of a record whose effects were undone.
// It returns nil if the task goes on without it.
func (t *task) failed(r *kgo.Record, err error) error {
	var m *MissingTopic
	if errors.As(err, &m) && t.w.app.unknown(m.Topic) {
		return m
	}
	if t.corrupted(err) {
		return t.damage(err)
	}
	var f *Failure
	if !errors.As(err, &f) {
		return fatalf("task %s: %w", t.id, err) // the store's failure, not the record's
	}
	policy := f.Policy
	if policy == nil {
		policy = t.w.app.cfg.Policy
	}
	var v Verdict
	if policy != nil {
		v = policy(t.Task, f, r)
	}
	if r == nil && v.Action == ActDeadLetter {
		v = Verdict{}
	}
	if h := t.w.app.cfg.Hooks.Failure; h != nil {
		h(t.Task, f, r, v)
	}
	switch v.Action {
	case ActSkip:
		t.Dropped(f.Operator, "failed")
		return nil
	case ActDeadLetter:
		return t.deadLetter(r, f, v)
	default:
		return fatal{&Stopper{Failure: f, Task: t.Task, Record: r}}
	}
}

// deadLetter writes the record as it was read, or held back, with the failure in
// its headers, into the transaction.
func (t *task) deadLetter(r *kgo.Record, f *Failure, v Verdict) error {
	s, err := t.Sink(v.DeadLetter)
	if err != nil && t.w.app.unknown(v.DeadLetter) {
		return err
	}
	if err != nil {
		return fault("DEAD-LETTER", "a record failed and its dead-letter topic cannot be written",
			t.whereDead(r, v), fmt.Errorf("%w; the record failed by %w", ErrNoTopic, f), "create the topic")
	}
	from := r.Partition
	if from < 0 { // of a held record that was not read
		from = t.id.Partition
	}
	t.Stage(s, from%s.Partitions, r.Key, r.Value, r.Timestamp.UnixMilli(), append(r.Headers[:len(r.Headers):len(r.Headers)], v.Headers...))
	if t.tooLarge != nil {
		t.tooLarge = nil
		return fault("DEAD-LETTER", "a record failed and is too large for its dead-letter topic",
			t.whereDead(r, v), f, "raise the topic's max.message.bytes")
	}
	t.Dropped(f.Operator, "dead letter")
	return nil
}

func (t *task) whereDead(r *kgo.Record, v Verdict) string {
	where := fmt.Sprintf("topic %s, task %s", v.DeadLetter, t.id)
	if r.Topic == "" {
		return where
	}
	return where + fmt.Sprintf(", record %s/%d at offset %d", r.Topic, r.Partition, r.Offset)
}

// wallTimers fires what is due by the clock.
func (w *worker) wallTimers(ctx context.Context) error {
	if len(w.order) == 0 {
		return nil
	}
	now := w.app.env.Clock.Now().UnixMilli()
	for _, t := range w.order {
		if t.inst.NextWall() > now {
			continue
		}
		err := t.locked(func() error {
			if err := t.timers(now, t.inst.Wall); err != nil {
				return err
			}
			return t.finals()
		})
		if err != nil {
			return err
		}
		t.touch()
	}
	return w.handOverAll(ctx)
}
