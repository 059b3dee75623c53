package runtime

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/zap"

	"github.com/semelstream/semel/internal/seam"
	"github.com/semelstream/semel/state"
	"github.com/semelstream/semel/stream/internal/graph"
	"github.com/semelstream/semel/txn"
)

// GlobalTask stands where a task is named and a global table is meant.
const GlobalTask = "global"

// GlobalStores are [Stores] that can keep the rows of global tables, each on an
// engine of its own. Other Stores have them in memory.
type GlobalStores interface {
	OpenGlobal(store string, inMemory bool) (state.Engine, error)
	// QuarantineGlobal moves the files of a table aside, which nobody has open.
	QuarantineGlobal(store string) (moved string, err error)
}

// A follower is the goroutine that reads the global tables of a process: up to
// where their topics were when it began, before any task runs, and on from
// there for as long as the process lives. It is no part of any transaction and
// commits no offsets: rows and positions are written together.
//
// It lives in sessions, each with a client of its own. A session looks where
// each partition stands and begins there, so that there is one way back from
// all errors that pass.
type follower struct {
	app    *App
	tables []*globalTable
	c      seam.Consumer
	owners map[seam.TP]*globalTable // of this session
	behind map[seam.TP]bool         // more is known to be there
	ends   map[seam.TP]int64        // to be reached: by tables before tasks run, by partitions that are rebuilt
	ready  bool                     // guarded by App.mu: tasks may run

	begun, moved             time.Time // of this session; of the last batch or complaint
	growAt, touchAt, flushAt time.Time
}

// A globalTable is one table of a follower.
type globalTable struct {
	g     *graph.Global
	topic string
	rows  *state.Shared
	check func(*kgo.Record) error
	anew  bool // the topic was made anew: its partitions are not those that were read

	reason         string // for hooks and the log
	records, bytes int64
	dirty          bool // something was written since the last flush
}

// openGlobals opens the rows of all global tables.
func (a *App) openGlobals() error {
	if len(a.graph.Globals) == 0 {
		return nil
	}
	f := &follower{app: a}
	defer func() { // also with those that were opened before one could not be
		a.mu.Lock()
		a.globals = f
		a.mu.Unlock()
	}()
	for _, g := range a.graph.Globals {
		t := &globalTable{g: g, topic: g.Topic.FullName(a.cfg.App)}
		var err error
		if t.rows, err = a.openGlobal(t); err != nil {
			return err
		}
		f.tables = append(f.tables, t)
		if t.check, err = a.prog.Global(g.Store, t.rows); err != nil {
			return err
		}
	}
	return nil
}

// openGlobal opens the rows of a table, empty ones in the place of corrupt
// ones.
func (a *App) openGlobal(t *globalTable) (*state.Shared, error) {
	rows, err := a.tryOpenGlobal(t)
	if errors.Is(err, state.ErrCorrupt) && a.quarantineGlobal(t.g.Store, err) {
		rows, err = a.tryOpenGlobal(t)
	}
	if err != nil {
		return nil, fault("STATE", "the rows of a global table cannot be opened", "store "+t.g.Store, err,
			"see the cause; the directory can be deleted while no process uses it: it is rebuilt from the topic")
	}
	return rows, nil
}

func (a *App) tryOpenGlobal(t *globalTable) (*state.Shared, error) {
	e := state.NewMemory()
	if s, ok := a.env.Stores.(GlobalStores); ok {
		var err error
		if e, err = s.OpenGlobal(t.g.Store, t.g.InMemory); err != nil {
			return nil, err
		}
	}
	return state.OpenShared(e, t.topic)
}

func (a *App) quarantineGlobal(store string, why error) bool {
	s, ok := a.env.Stores.(GlobalStores)
	if !ok {
		return false
	}
	moved, err := s.QuarantineGlobal(store)
	if err != nil {
		a.log.Error("a global table is corrupt and cannot be moved aside", zap.String("store", store), zap.Error(err), zap.NamedError("found", why))
		return false
	}
	a.log.Error("a global table is corrupt; it was moved aside and is rebuilt from its topic",
		zap.String("store", store), zap.String("moved to", moved), zap.Error(why))
	return true
}

// closeGlobals ends the tables. One that was found corrupt is out of the way
// of the next start.
func (a *App) closeGlobals() {
	if a.globals == nil {
		return
	}
	for _, t := range a.globals.tables {
		if err := t.rows.Close(); err != nil {
			a.log.Warn("closing a global table", zap.String("store", t.g.Store), zap.Error(err))
		}
		if err := t.rows.Corrupt(); err != nil {
			a.quarantineGlobal(t.g.Store, err)
		}
	}
}

// Global has the rows of a global table; nil if there is none of the name.
func (a *App) Global(store string) *state.Shared {
	a.mu.Lock()
	f := a.globals
	a.mu.Unlock()
	if f == nil {
		return nil
	}
	for _, t := range f.tables {
		if t.g.Store == store {
			return t.rows
		}
	}
	return nil
}

// awaitGlobals waits until all global tables are read. What keeps one from
// being read stops the app and ends ctx.
func (a *App) awaitGlobals(ctx context.Context) {
	if a.globals == nil {
		return
	}
	a.setState(Restoring)
	for ctx.Err() == nil && !a.globals.isReady() {
		a.signal.Wait(ctx, time.Second)
	}
}

func (f *follower) isReady() bool {
	f.app.mu.Lock()
	defer f.app.mu.Unlock()
	return f.ready
}

// run is the follower's goroutine.
func (f *follower) run(ctx context.Context) {
	for failures := 0; ; {
		begun := f.app.env.Clock.Now()
		err := f.session(ctx)
		if ctx.Err() != nil {
			f.rest()
			return
		}
		if stop := f.judge(err); stop != nil {
			f.app.fail(stop)
			return
		}
		if f.app.env.Clock.Now().Sub(begun) > 10*time.Second {
			failures = 0
		}
		failures++
		f.app.log.Warn("global tables are read again from where they stand", zap.Error(err))
		_ = f.app.env.Clock.Sleep(ctx, backoff(failures)) // the next session sees the end of ctx
	}
}

// rest makes a clean end: what was read is known to be there.
func (f *follower) rest() {
	if f.isReady() && len(f.behind) == 0 {
		f.touch(f.app.env.Clock.Now())
	}
}

// judge says whether an error ends the app, and with what.
func (f *follower) judge(err error) error {
	var pe *seam.PartitionError
	if errors.As(err, &pe) && errors.Is(err, kerr.UnknownTopicID) {
		if t := f.owners[pe.TP]; t != nil {
			t.anew = true
		}
		return nil
	}
	if isOutOfRange(err) {
		return nil // the next session asks where the topic begins and ends
	}
	var fl *Fault
	var fa fatal
	switch {
	case errors.As(err, &fl), errors.As(err, &fa):
		return err
	case txn.Judge(err) == txn.OutcomeFatal:
		return fmt.Errorf("reading global tables: %w", err)
	}
	return nil
}

// session reads until an error or the end of ctx.
func (f *follower) session(ctx context.Context) error {
	a := f.app
	c, err := a.env.Broker.Consumer(ctx)
	if err != nil {
		return fmt.Errorf("opening the client of global tables: %w", err)
	}
	defer c.Close()
	f.c, f.owners, f.behind, f.ends = c, map[seam.TP]*globalTable{}, map[seam.TP]bool{}, map[seam.TP]int64{}
	f.begun = a.env.Clock.Now()
	f.moved, f.growAt = f.begun, f.begun
	f.touchAt, f.flushAt = f.begun.Add(touchInterval), f.begun.Add(a.cfg.FlushInterval)
	for {
		if err := f.look(ctx); err != nil {
			return err
		}
		batches, err := c.Poll(ctx, a.cfg.PollRecords, f.patience())
		if err != nil {
			return err
		}
		for i := range batches {
			if err := f.apply(&batches[i]); err != nil {
				return err
			}
		}
		if err := f.upkeep(len(batches) > 0); err != nil {
			return err
		}
	}
}

// patience is how long there is nothing to do if no record comes.
func (f *follower) patience() time.Duration {
	if slices.ContainsFunc(f.tables, func(t *globalTable) bool { return t.dirty }) {
		return min(time.Second, max(f.flushAt.Sub(f.app.env.Clock.Now()), time.Millisecond))
	}
	return time.Second
}

// look finds partitions that are not read yet, now and then: all of them at
// first, and later those that were added to a topic.
func (f *follower) look(ctx context.Context) error {
	a := f.app
	now := a.env.Clock.Now()
	if now.Before(f.growAt) {
		return nil
	}
	f.growAt = now.Add(growthInterval)
	var names []string
	for _, t := range f.tables {
		names = append(names, t.topic)
	}
	found, err := a.env.Broker.Topics(ctx, names...)
	if err != nil {
		return fmt.Errorf("describing the topics of global tables: %w", err)
	}
	var tps []seam.TP
	for _, t := range f.tables {
		topic, ok := found[t.topic]
		if !ok {
			return fault("NO-TOPIC", "the topic of a global table does not exist", "topic "+t.topic+a.usedBy(t.g.Topic), ErrNoTopic,
				"create it, or correct the name in the topology")
		}
		for p := range topic.Partitions {
			if tp := (seam.TP{Topic: t.topic, Partition: p}); f.owners[tp] == nil {
				f.owners[tp] = t
				tps = append(tps, tp)
			}
		}
		if err := f.forget(t, topic.Partitions); err != nil {
			return err
		}
	}
	return f.begin(ctx, tps, found)
}

// forget removes the rows of partitions that a topic, made anew, has no more.
func (f *follower) forget(t *globalTable, partitions int32) error {
	for _, p := range t.rows.Partitions() {
		if p < partitions {
			continue
		}
		if err := t.rows.Rebuild(p, 0, 0); err != nil {
			return err
		}
		if err := t.rows.Settle(p); err != nil {
			return err
		}
	}
	return nil
}

// begin begins to read partitions where their rows stand. The end of the
// bootstrap is the high watermark, open transactions included: what was
// written before this process began is there before a task runs.
func (f *follower) begin(ctx context.Context, tps []seam.TP, topics map[string]seam.Topic) error {
	if len(tps) == 0 {
		return nil
	}
	b := f.app.env.Broker
	starts, err := b.Starts(ctx, tps)
	if err != nil {
		return fmt.Errorf("fetching the starts of global tables: %w", err)
	}
	ends, err := b.Ends(ctx, tps)
	if err != nil {
		return fmt.Errorf("fetching the ends of global tables: %w", err)
	}
	for _, tp := range tps {
		t := f.owners[tp]
		if err := f.place(t, tp.Partition, starts[tp], ends[tp], topics[tp.Topic]); err != nil {
			return err
		}
		at, _ := t.rows.Position(tp.Partition)
		f.c.Assign(tp, at)
		f.ends[tp] = ends[tp]
	}
	for _, tp := range tps { // some are there already
		t := f.owners[tp]
		at, _ := t.rows.Position(tp.Partition)
		if err := f.reached(t, tp, at); err != nil {
			return err
		}
	}
	for _, t := range f.tables {
		t.anew = false
	}
	f.readyIfSo()
	return nil
}

// place sees to it that the position is one from which the partition can be
// read on.
func (f *follower) place(t *globalTable, p int32, start, end int64, topic seam.Topic) error {
	now := f.app.env.Clock.Now()
	at, known := t.rows.Position(p)
	var why string
	switch {
	case !known:
		t.reason = orElse(t.reason, "no local rows")
		return t.rows.Rebuild(p, start, now.UnixMilli())
	case t.anew:
		why = "the topic was made anew"
	case at < start:
		why = fmt.Sprintf("position %d is before the topic's start %d", at, start)
	case at > end:
		why = fmt.Sprintf("position %d is past the topic's end %d", at, end)
	default:
		why = missesDeletes(now.Sub(time.UnixMilli(t.rows.Seen(p))), topic)
	}
	if why == "" {
		t.reason = orElse(t.reason, "new records of the topic")
		return nil
	}
	t.reason = why
	f.app.log.Warn("a global table is read from the beginning", zap.String("store", t.g.Store),
		zap.Stringer("partition", seam.TP{Topic: t.topic, Partition: p}), zap.String("reason", why))
	return t.rows.Rebuild(p, start, now.UnixMilli())
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// apply writes what was read of a partition.
func (f *follower) apply(b *seam.Batch) error {
	t := f.owners[b.TP]
	rows := make([]state.Row, 0, len(b.Records))
	for _, r := range b.Records {
		t.records, t.bytes = t.records+1, t.bytes+int64(len(r.Key)+len(r.Value))
		if r.Key == nil {
			f.app.countDrop(GlobalTask, t.g.Node.Name, noKey, 1)
			continue
		}
		if err := t.check(r); err != nil {
			if err := f.failed(err, r); err != nil {
				return err
			}
			continue
		}
		rows = append(rows, state.Row{Key: r.Key, Value: r.Value, Time: r.Timestamp.UnixMilli()})
	}
	if err := t.rows.Apply(b.Partition, slices.Values(rows), b.Next); err != nil {
		return f.disk(t, err)
	}
	t.dirty = true
	delete(f.behind, b.TP)
	if b.Next < b.Stable {
		f.behind[b.TP] = true
	}
	f.progress(t, false)
	return f.reached(t, b.TP, b.Next)
}

// noKey is a reason for a drop, the same as in package stream.
const noKey = "no key"

// failed asks the policy about a record that cannot be a row. There is no
// transaction for a dead letter.
func (f *follower) failed(err error, r *kgo.Record) error {
	var failure *Failure
	if !errors.As(err, &failure) {
		return fatalf("global table: %w", err)
	}
	policy := failure.Policy
	if policy == nil {
		policy = f.app.cfg.Policy
	}
	var v Verdict
	if policy != nil {
		v = policy(nil, failure, r)
	}
	if v.Action == ActDeadLetter {
		v = Verdict{}
	}
	if h := f.app.cfg.Hooks.Failure; h != nil {
		h(nil, failure, r, v)
	}
	if v.Action != ActSkip {
		return fatal{&Stopper{Failure: failure, Record: r}}
	}
	f.app.countDrop(GlobalTask, failure.Operator, "failed", 1)
	return nil
}

// disk is a table that cannot be written.
func (f *follower) disk(t *globalTable, err error) error {
	return fault("DISK", "a global table cannot be written to disk", "store "+t.g.Store, err,
		"make room on the disk or mend it, and start again: nothing is lost, the topic has it all")
}

// reached notes that a partition has come to where it should be.
func (f *follower) reached(t *globalTable, tp seam.TP, at int64) error {
	end, waits := f.ends[tp]
	if !waits || at < end {
		return nil
	}
	delete(f.ends, tp)
	if t.rows.Rebuilding(tp.Partition) {
		if err := t.rows.Settle(tp.Partition); err != nil {
			return f.disk(t, err)
		}
		t.dirty = true
	}
	for _, other := range seam.SortedTPs(f.ends) {
		if f.owners[other] == t {
			return nil
		}
	}
	f.progress(t, true)
	t.reason = ""
	return nil
}

// readyIfSo lets tasks run when all tables have been read once.
func (f *follower) readyIfSo() {
	if len(f.ends) > 0 || f.isReady() {
		return
	}
	f.touch(f.app.env.Clock.Now())
	a := f.app
	a.mu.Lock()
	f.ready = true
	a.mu.Unlock()
	a.log.Info("global tables are read", zap.Duration("took", a.env.Clock.Now().Sub(f.begun)))
	a.signal.Notify()
}

func (f *follower) progress(t *globalTable, done bool) {
	h := f.app.cfg.Hooks.Restore
	if h == nil || t.reason == "" {
		return
	}
	r := Restore{
		Task: GlobalTask, Store: t.g.Store, Reason: t.reason, Records: t.records, Bytes: t.bytes,
		Took: f.app.env.Clock.Now().Sub(f.begun), Done: done,
	}
	for _, p := range t.rows.Partitions() {
		at, _ := t.rows.Position(p)
		r.Position += at
		r.End += max(at, f.ends[seam.TP{Topic: t.topic, Partition: p}])
	}
	h(r)
}

// touchInterval is how often it is written down that the rows are as in the
// topic.
const touchInterval = time.Minute

// upkeep is what is due from time to time.
func (f *follower) upkeep(moved bool) error {
	f.readyIfSo()
	now := f.app.env.Clock.Now()
	if moved || len(f.ends) == 0 {
		f.moved = now
	} else if now.Sub(f.moved) > 10*time.Second {
		f.moved = now
		f.complain()
	}
	if !now.Before(f.touchAt) {
		f.touchAt = now.Add(touchInterval)
		if len(f.ends) == 0 && len(f.behind) == 0 {
			f.touch(now)
		}
	}
	if now.Before(f.flushAt) {
		return nil
	}
	f.flushAt = now.Add(f.app.cfg.FlushInterval)
	for _, t := range f.tables {
		if !t.dirty {
			continue
		}
		if err := t.rows.Flush(); err != nil {
			return f.disk(t, err)
		}
		t.dirty = false
	}
	return nil
}

// complain says what the bootstrap waits for.
func (f *follower) complain() {
	for _, tp := range seam.SortedTPs(f.ends) {
		at, _ := f.owners[tp].rows.Position(tp.Partition)
		f.app.log.Warn("a global table waits for the end of its topic; an open transaction may be in the way",
			zap.Stringer("partition", tp), zap.Int64("position", at), zap.Int64("end", f.ends[tp]))
	}
}

// touch notes that the tables are as their topics. It is no matter if it
// cannot: they are read from the beginning then, one day.
func (f *follower) touch(now time.Time) {
	for _, t := range f.tables {
		if err := t.rows.Touch(now.UnixMilli()); err != nil {
			f.app.log.Warn("noting the time in a global table", zap.String("store", t.g.Store), zap.Error(err))
		}
		t.dirty = true
	}
}

// countDrop counts records that were left out, for good.
func (a *App) countDrop(task, operator, reason string, n int) {
	a.mu.Lock()
	a.dropped[reason] += n
	a.mu.Unlock()
	if h := a.cfg.Hooks.Dropped; h != nil {
		h(task, operator, reason, n)
	}
}
