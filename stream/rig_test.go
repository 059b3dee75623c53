package stream

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/internal/seam"
	"github.com/semelstream/semel/state"
	"github.com/semelstream/semel/stream/internal/graph"
	"github.com/semelstream/semel/stream/internal/runtime"
)

const rigApp = "app"

// A rig runs a topology in memory: one task per partition, no broker and no
// runtime. A record goes the whole way, through repartition topics too, before
// the next one.
type rig struct {
	t          *testing.T
	prog       runtime.Program
	top        *Topology
	partitions map[string]int32 // by full topic name, where not 1
	tasks      map[seam.Task]*rigTask
	offsets    map[seam.TP]int64
	wall       time.Time
	out        []*kgo.Record // everything written to topics of the user's, in order
	drops      []string      // "operator: reason"
	policy     runtime.Policy
	tap        func(k *kgo.Record)   // hears of everything that is written; nil is nobody
	writes     map[string]int        // changelog records of the last commit, by store
	globals    map[string]*rigGlobal // by topic
}

type rigTask struct {
	*runtime.Task
	db   *state.DB
	in   runtime.Instance
	pos  map[string]int64       // of stores
	kept map[string]int64       // times saved at the last commit
	log  map[string][]state.Row // changelogs, by store
}

// newRig builds define and opens all tasks.
func newRig(t *testing.T, define func(*Builder)) *rig {
	return newRigOf(t, define, nil)
}

// newRigOf is newRig for topics with more partitions than one, by full name.
func newRigOf(t *testing.T, define func(*Builder), partitions map[string]int32) *rig {
	t.Helper()
	top, err := Build(define)
	if err != nil {
		t.Fatalf("building: %v", err)
	}
	r := &rig{
		t: t, top: top, prog: top.withApp(rigApp), partitions: partitions, wall: time.UnixMilli(0),
		tasks: map[seam.Task]*rigTask{}, offsets: map[seam.TP]int64{},
	}
	r.openGlobals()
	for _, sub := range top.graph.Subs {
		n := int32(1)
		for _, topic := range sub.Sources {
			n = max(n, r.count(topic.FullName(rigApp)))
		}
		for p := range n {
			r.open(sub, p)
		}
	}
	return r
}

func (r *rig) count(topic string) int32 {
	if n, ok := r.partitions[topic]; ok {
		return n
	}
	return 1
}

func (r *rig) open(sub *graph.Sub, partition int32) {
	r.t.Helper()
	var specs []state.Spec
	for _, s := range sub.Stores {
		specs = append(specs, runtime.StoreSpec(s))
	}
	db, err := state.Open(state.NewMemory(), state.Options{Stores: specs})
	r.must(err)
	k := &rigTask{db: db, pos: map[string]int64{}, kept: map[string]int64{}, log: map[string][]state.Row{}}
	id := seam.Task{Sub: int32(sub.ID), Partition: partition}
	k.Task = runtime.NewTask(runtime.TaskConfig{
		ID: id, Sub: sub, Context: context.Background(), DB: db, App: rigApp,
		Wall:       func() time.Time { return r.wall },
		Dropped:    func(op, reason string) { r.drops = append(r.drops, op+": "+reason) },
		Partitions: r.count,
		Globals:    r.global,
	})
	r.tasks[id] = k
	r.begin(k)
}

// begin makes a task's instance, as at the start and after an abort.
func (r *rig) begin(k *rigTask) {
	r.t.Helper()
	in, err := r.prog.Open(k.Task)
	r.must(err)
	k.in = in
	in.Load(func(name string) (int64, bool) { ms, ok := k.kept[name]; return ms, ok })
}

func (r *rig) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

// sorted are the tasks in order of their ids.
func (r *rig) sorted() []*rigTask {
	var all []*rigTask
	for _, k := range r.tasks {
		all = append(all, k)
	}
	slices.SortFunc(all, func(a, b *rigTask) int { return a.ID().Compare(b.ID()) })
	return all
}

// feed writes rec to partition 0 of topic and processes all that follows. A
// failure that the policy does not take is returned.
func feed[K, V any](r *rig, topic Topic[K, V], recs ...Record[K, V]) error {
	for _, rec := range recs {
		if err := r.feed(encode(r, topic, rec)); err != nil {
			return err
		}
	}
	return nil
}

// send is feed for records that are not to fail.
func send[K, V any](r *rig, topic Topic[K, V], recs ...Record[K, V]) {
	r.t.Helper()
	r.must(feed(r, topic, recs...))
}

func encode[K, V any](r *rig, topic Topic[K, V], rec Record[K, V]) *kgo.Record {
	k := &kgo.Record{Topic: topic.Name, Timestamp: rec.Time, Headers: toKafka(rec.Headers)}
	var err error
	if !rec.NoKey {
		k.Key, err = topic.Key.Append([]byte{}, rec.Key)
		r.must(err)
		k.Partition = partitionOf(k.Key, r.count(topic.Name))
	}
	if !rec.NoValue {
		k.Value, err = topic.Value.Append([]byte{}, rec.Value)
		r.must(err)
	}
	return k
}

func (r *rig) feed(k *kgo.Record) error {
	tp := seam.TP{Topic: k.Topic, Partition: k.Partition}
	k.Offset = r.offsets[tp]
	r.offsets[tp]++
	if err := r.feedGlobal(k); err != nil {
		return err
	}
	for _, sub := range r.top.graph.Subs {
		for i, topic := range sub.Sources {
			if topic.FullName(rigApp) != k.Topic {
				continue
			}
			if err := r.process(r.tasks[seam.Task{Sub: int32(sub.ID), Partition: k.Partition}], i, k); err != nil {
				return err
			}
		}
	}
	return r.loop()
}

// process gives one record to one task, as the runtime does.
func (r *rig) process(task *rigTask, i int, k *kgo.Record) error {
	ms, ok := task.in.Time(i, k)
	if !ok {
		return nil
	}
	if err := task.Process(task.in, i, k, ms); err != nil {
		return r.failed(task, err, k)
	}
	if now := task.StreamTime(); task.in.NextStream() <= now {
		if err := task.in.Stream(now); err != nil {
			return err
		}
	}
	return task.in.Final()
}

// failed asks the policy about a failed record.
func (r *rig) failed(task *rigTask, err error, k *kgo.Record) error {
	f, ok := err.(*runtime.Failure)
	if !ok {
		r.t.Fatalf("a record's failure is a %T: %v", err, err)
	}
	policy := f.Policy
	if policy == nil {
		policy = r.policy
	}
	if policy == nil {
		return f
	}
	switch v := policy(task.Task, f, k); v.Action {
	case runtime.ActSkip:
		return nil
	case runtime.ActDeadLetter:
		d := *k
		d.Topic, d.Partition, d.Headers = v.DeadLetter, 0, append(slices.Clone(k.Headers), v.Headers...)
		r.out = append(r.out, &d)
		return nil
	}
	return f
}

// loop moves what was staged on: to out, and from repartition topics into the
// tasks that read them.
func (r *rig) loop() error {
	for _, task := range r.sorted() {
		for _, k := range task.Take() {
			c := *k
			if r.tap != nil {
				r.tap(&c)
			}
			if !r.internal(k.Topic) {
				r.out = append(r.out, &c)
				if !r.reads(k.Topic) {
					continue
				}
			}
			if err := r.feed(&c); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *rig) internal(topic string) bool {
	return slices.ContainsFunc(r.top.graph.Topics, func(t *graph.Topic) bool {
		return t.Internal && t.FullName(rigApp) == topic
	})
}

func (r *rig) reads(topic string) bool {
	return slices.ContainsFunc(r.top.graph.Topics, func(t *graph.Topic) bool { return t.Source && t.Name == topic })
}

// commit commits all tasks, and again as long as what came out of a flush
// went into another task.
func (r *rig) commit() {
	r.t.Helper()
	r.writes = map[string]int{}
	for more := true; more; {
		more = false
		for _, task := range r.sorted() {
			r.must(task.in.Flush())
			more = more || len(task.Staged()) > 0
			r.commitTask(task)
		}
		r.must(r.loop())
	}
}

func (r *rig) commitTask(task *rigTask) {
	r.t.Helper()
	task.in.Save(func(name string, ms int64) {
		if old, ok := task.kept[name]; ok && old > ms {
			r.t.Fatalf("time %q went back from %d to %d", name, old, ms)
		}
		task.kept[name] = ms
	})
	r.must(task.db.Changes(func(p *state.Part, key, value []byte, ms int64) error {
		name := storeName(task.db, task.Sub(), p)
		r.writes[name]++
		task.log[name] = append(task.log[name], state.Row{Key: slices.Clone(key), Value: slices.Clone(value), Time: ms})
		task.pos[name]++
		return nil
	}))
	task.db.Committed(func(p *state.Part) (int64, bool) {
		return task.pos[storeName(task.db, task.Sub(), p)], true
	})
	if w := task.db.Persist(); w != nil {
		task.db.Persisted(w, w.Commit())
	}
}

func storeName(db *state.DB, sub *graph.Sub, p *state.Part) string {
	for _, s := range sub.Stores {
		if db.Part(s.Name) == p {
			return s.Name
		}
	}
	panic("a part of no store")
}

// move opens all tasks on an empty disk, with stores restored from their
// changelogs. What was not committed is lost.
func (r *rig) move() {
	r.t.Helper()
	for _, old := range r.sorted() {
		r.must(old.in.Close(true))
		r.open(old.Sub(), old.ID().Partition)
		task := r.tasks[old.ID()]
		r.must(task.in.Close(true))
		task.pos, task.kept, task.log = old.pos, old.kept, old.log
		for store, rows := range task.log {
			r.must(task.db.Part(store).Apply(slices.Values(rows), task.pos[store]))
		}
		r.begin(task)
	}
	r.out = nil
}

// abort drops what was not committed, and opens the instances again.
func (r *rig) abort() {
	r.t.Helper()
	for _, task := range r.sorted() {
		r.must(task.in.Close(true))
		task.Take()
		r.must(task.db.Rewind())
		r.begin(task)
	}
	r.out = nil
}

// restart commits, and opens the instances again.
func (r *rig) restart() {
	r.t.Helper()
	r.commit()
	for _, task := range r.sorted() {
		r.must(task.in.Close(false))
		r.begin(task)
	}
}

// advance moves the wall clock and fires what is due.
func (r *rig) advance(d time.Duration) error {
	r.wall = r.wall.Add(d)
	now := r.wall.UnixMilli()
	for _, task := range r.sorted() {
		if next := task.in.NextWall(); next <= now && next != math.MaxInt64 {
			if err := task.in.Wall(now); err != nil {
				return err
			}
		}
	}
	return r.loop()
}

// received takes what was written to topic since the last call, decoded.
func received[K, V any](r *rig, topic Topic[K, V]) []Record[K, V] {
	r.t.Helper()
	var out []Record[K, V]
	rest := r.out[:0]
	for _, k := range r.out {
		if k.Topic != topic.Name {
			rest = append(rest, k)
			continue
		}
		out = append(out, decode(r, topic, k))
	}
	r.out = rest
	return out
}

func decode[K, V any](r *rig, topic Topic[K, V], k *kgo.Record) Record[K, V] {
	rec := Record[K, V]{Time: k.Timestamp, Headers: fromKafka(k.Headers), NoKey: k.Key == nil, NoValue: k.Value == nil}
	var err error
	if !rec.NoKey {
		rec.Key, err = topic.Key.Decode(k.Key)
		r.must(err)
	}
	if !rec.NoValue {
		rec.Value, err = topic.Value.Decode(k.Value)
		r.must(err)
	}
	return rec
}

// expect checks what was written to topic since the last look, each record as
// "key=value@ms", null as "-".
func expect[K, V any](r *rig, topic Topic[K, V], want ...string) {
	r.t.Helper()
	var got []string
	for _, rec := range received(r, topic) {
		got = append(got, text(rec))
	}
	if !slices.Equal(got, want) {
		r.t.Errorf("%s got\n\t%q, want\n\t%q", topic.Name, got, want)
	}
}

// dropped checks the drops since the last look.
func (r *rig) dropped(want ...string) {
	r.t.Helper()
	if !slices.Equal(r.drops, want) {
		r.t.Errorf("dropped %q, want %q", r.drops, want)
	}
	r.drops = nil
}

func text[K, V any](rec Record[K, V]) string {
	k, v := fmt.Sprint(rec.Key), fmt.Sprint(rec.Value)
	if rec.NoKey {
		k = "-"
	}
	if rec.NoValue {
		v = "-"
	}
	return fmt.Sprintf("%s=%s@%d", k, v, rec.Time.UnixMilli())
}

// rec, del and noKeyed make records for tests.
func rec[K, V any](k K, v V, ms int64) Record[K, V] {
	return Record[K, V]{Key: k, Value: v, Time: time.UnixMilli(ms)}
}

func del[V, K any](k K, ms int64) Record[K, V] {
	return Record[K, V]{Key: k, Time: time.UnixMilli(ms), NoValue: true}
}

func unkeyed[K, V any](v V, ms int64) Record[K, V] {
	return Record[K, V]{Value: v, Time: time.UnixMilli(ms), NoKey: true}
}

const ms = time.Millisecond

// Topics for tests.
var (
	texts  = NewTopic("texts", codec.String, codec.String)
	texts2 = NewTopic("texts2", codec.String, codec.String)
	ints   = NewTopic("ints", codec.String, codec.Int64)
	out    = NewTopic("out", codec.String, codec.String)
	out2   = NewTopic("out2", codec.String, codec.String)
	intOut = NewTopic("int-out", codec.String, codec.Int64)
)
