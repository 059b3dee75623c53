// Package streamtest runs a topology in a test.
//
// A [Driver] is a whole cluster and one instance of the application in memory,
// with no broker and no sleeping: records travel through the real tasks,
// stores and commit path, and a crash loses what a crash loses. [New] makes one
// for a test, [Run] for an Example. Most tests need nothing else.
//
// A [Cluster] is an embedded broker on the network, for the few tests that run
// a real [stream.App] from end to end, with real clients and real time.
package streamtest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/semelstream/semel/internal/seam"
	"github.com/semelstream/semel/state"
	"github.com/semelstream/semel/stream"
	"github.com/semelstream/semel/stream/internal/bridge"
	"github.com/semelstream/semel/stream/internal/model"
	"github.com/semelstream/semel/stream/internal/runtime"
)

// appID is the application's id in the driver's cluster; internal topics
// begin with it.
const appID = "app"

// A Driver feeds records one at a time through a topology and commits after
// each. Record time moves with the records, wall time with Advance only. It
// fails the test for whatever fails the topology, unless the policy dealt with
// it.
type Driver struct {
	tb    tester
	w     *model.World
	p     *model.Process
	prog  runtime.Program
	cfg   config
	app   *runtime.App // of this life
	read  map[seam.TP]int64
	lose  bool // empty the disk at the next crash
	ended bool // the app's end was reported
}

type config struct {
	partitions int
	byHand     bool
	policy     stream.ErrorPolicy
	start      time.Time
	topics     []string
}

// New builds the topology and starts the application. It fails the test if the
// topology has problems.
func New(tb testing.TB, define func(*stream.Builder), opts ...Option) *Driver {
	tb.Helper()
	return newDriver(tb, define, opts)
}

func newDriver(tb tester, define func(*stream.Builder), opts []Option) *Driver {
	tb.Helper()
	topology, err := stream.Build(define)
	if err != nil {
		tb.Fatalf("the topology has problems:\n%v", err)
	}
	d := &Driver{tb: tb, cfg: config{partitions: 1, start: time.Unix(0, 0).UTC()}, read: map[seam.TP]int64{}}
	for _, o := range opts {
		o(&d.cfg)
	}
	d.prog = bridge.Program(topology, appID)
	d.w = model.New(model.Config{Seed: 1, Instant: true, Start: d.cfg.start})
	for _, t := range d.prog.Graph().Topics {
		if !t.Internal && !t.Dynamic && t.Pattern == nil {
			d.w.CreateTopic(t.Name, int32(d.cfg.partitions), map[string]string{"cleanup.policy": "compact"})
		}
	}
	for _, name := range d.cfg.topics {
		d.w.CreateTopic(name, int32(d.cfg.partitions), nil)
	}
	d.p = d.w.Start("driver", d.main)
	tb.Cleanup(d.w.Stop)
	d.settle()
	return d
}

// main is the application's process.
func (d *Driver) main(env seam.Env, disk *model.Disk) error {
	cfg := runtime.Config{
		App: appID, Instance: "driver", Workers: 1, Continuous: true, Gather: -1, CommitInterval: time.Hour,
		StoreInterval: time.Nanosecond, FlushInterval: time.Nanosecond, Policy: bridge.Policy(d.cfg.policy, appID),
	}
	if d.cfg.byHand {
		cfg.Continuous = false
	}
	d.app = runtime.New(runtime.Env{Env: env, Stores: stores{disk}}, d.prog, cfg)
	return d.app.Run(context.Background())
}

// stores are the engines on the driver's disk.
type stores struct{ disk *model.Disk }

// Open implements runtime.Stores.
func (s stores) Open(t seam.Task, _ bool) (state.Engine, error) { return s.disk.Open(t.String()) }

// OpenGlobal implements runtime.GlobalStores.
func (s stores) OpenGlobal(store string, _ bool) (state.Engine, error) {
	return s.disk.Open("global/" + store)
}

// QuarantineGlobal implements runtime.GlobalStores.
func (s stores) QuarantineGlobal(store string) (moved string, err error) {
	return "", s.disk.Remove("global/" + store)
}

// settle turns the application until it waits for input.
func (d *Driver) settle() {
	d.tb.Helper()
	for {
		d.w.RunUntil(d.quiet, time.Minute)
		if d.p.Alive() {
			return
		}
		if err := d.p.Err(); err != nil {
			if !d.ended {
				d.ended = true
				d.tb.Fatalf("the application stopped: %v", err)
			}
			return
		}
		d.restart()
	}
}

// quiet says that there is nothing to do but to wait for input. An application
// that starts over from what is committed also waits, for a moment.
func (d *Driver) quiet() bool {
	return !d.p.Alive() || d.w.Idle() && d.app != nil && d.app.State() == runtime.Running
}

func (d *Driver) restart() {
	if d.lose {
		d.p.Disk().Wipe()
		d.lose = false
	}
	d.p.Restart()
}

// put sends records as they are.
func (d *Driver) put(tp seam.TP, key, value []byte, at time.Time, headers stream.Headers) {
	d.tb.Helper()
	if _, err := d.w.Produce(tp, key, value, at, kafkaHeaders(headers)...); err != nil {
		d.tb.Fatalf("sending to %s: %v", tp, err)
	}
	d.settle()
}

// Put sends key and value at the driver's time, PutAt at a time of its own.
func (d *Driver) Put[K, V any](t stream.Topic[K, V], key K, value V) {
	d.tb.Helper()
	d.PutAt(t, key, value, d.w.Now())
}

// PutAt sends key and value with time at.
func (d *Driver) PutAt[K, V any](t stream.Topic[K, V], key K, value V, at time.Time) {
	d.tb.Helper()
	d.PutRecord(t, stream.Record[K, V]{Key: key, Value: value, Time: at})
}

// Delete sends a tombstone for key at the driver's time.
func (d *Driver) Delete[K, V any](t stream.Topic[K, V], key K) {
	d.tb.Helper()
	d.PutRecord(t, stream.Record[K, V]{Key: key, NoValue: true, Time: d.w.Now()})
}

// PutRecord sends r as it is. A topic that the driver does not have is made if it
// matches a pattern of the topology ([stream.Matching]), and read from then on.
func (d *Driver) PutRecord[K, V any](t stream.Topic[K, V], r stream.Record[K, V]) {
	d.tb.Helper()
	n := d.partitions(t.Name)
	recs, err := t.Encode(r, n)
	if err != nil {
		d.tb.Fatal(err)
	}
	for _, k := range recs {
		d.put(seam.TP{Topic: k.Topic, Partition: k.Partition}, k.Key, k.Value, k.Timestamp, r.Headers)
	}
}

// PutBytes sends raw key and value to partition 0, such as ones that do not
// decode; nil is null.
func (d *Driver) PutBytes(topic string, key, value []byte) {
	d.tb.Helper()
	d.partitions(topic) // which makes it if it matches
	d.put(seam.TP{Topic: topic}, key, value, d.w.Now(), nil)
}

func (d *Driver) partitions(topic string) int {
	d.tb.Helper()
	t, ok := d.w.Topics(topic)[topic]
	if !ok && d.matches(topic) {
		d.w.CreateTopic(topic, int32(d.cfg.partitions), nil)
		d.app.LookSoon()
		d.settle()
		t, ok = d.w.Topics(topic)[topic]
	}
	if !ok {
		d.tb.Fatalf("the topology has no topic %q; there are %v", topic, d.w.TopicNames())
	}
	return int(t.Partitions)
}

// matches says that a pattern of the topology reads topics of this name.
func (d *Driver) matches(topic string) bool {
	for _, t := range d.prog.Graph().Topics {
		if t.Matches(topic) {
			return true
		}
	}
	return false
}

// Out returns what was committed to t since the last call, partition after
// partition.
func (d *Driver) Out[K, V any](t stream.Topic[K, V]) []stream.Record[K, V] {
	d.tb.Helper()
	return decode(d, t, true)
}

func decode[K, V any](d *Driver, t stream.Topic[K, V], onlyNew bool) (out []stream.Record[K, V]) {
	d.tb.Helper()
	for p := range d.partitions(t.Name) {
		tp := seam.TP{Topic: t.Name, Partition: int32(p)}
		from := int64(0)
		if onlyNew {
			from = d.read[tp]
		}
		for _, k := range d.w.Read(tp, from) {
			r, err := t.Decode(k)
			if err != nil {
				d.tb.Fatal(err)
			}
			out = append(out, r)
			if onlyNew {
				d.read[tp] = k.Offset + 1
			}
		}
	}
	return out
}

// Last returns the rows that t holds after compaction.
func (d *Driver) Last[K comparable, V any](t stream.Topic[K, V]) map[K]V {
	d.tb.Helper()
	rows := map[K]V{}
	for _, r := range decode(d, t, false) {
		switch {
		case r.NoKey:
		case r.NoValue:
			delete(rows, r.Key)
		default:
			rows[r.Key] = r.Value
		}
	}
	return rows
}

// Advance moves wall time on.
func (d *Driver) Advance(by time.Duration) {
	d.tb.Helper()
	d.w.Advance(by)
	d.settle()
}

// Commit commits what was processed since the last commit.
func (d *Driver) Commit() {
	d.tb.Helper()
	d.app.Commit()
	d.settle()
}

// Crash kills the driver's instance where it stands and starts another on
// what disk and broker hold.
func (d *Driver) Crash() {
	d.tb.Helper()
	d.w.Kill(d.p)
	d.restart()
	d.settle()
}

// LoseDisk empties the state directory at the next crash.
func (d *Driver) LoseDisk() { d.lose = true }

// Dropped returns how many records were dropped for reason since the instance
// was started.
func (d *Driver) Dropped(reason string) int { return d.app.Dropped(reason) }

// Rows returns the committed rows of a store, of all its tasks; the newest ones
// of a store of versions.
func (d *Driver) Rows[K comparable, V any](store string) map[K]V {
	d.tb.Helper()
	if shared := d.app.Global(store); shared != nil {
		view, err := state.SharedOf[K, V](shared)
		if err != nil {
			d.tb.Fatal(err)
		}
		return fold(d, view.All())
	}
	dbs := d.app.Stores(store)
	if len(dbs) == 0 {
		d.tb.Fatalf("there is no store %q", store)
	}
	rows := map[K]V{}
	for _, db := range dbs {
		all, err := rowsOf[K, V](db, store)
		if err != nil {
			d.tb.Fatal(err)
		}
		maps.Copy(rows, fold(d, all))
	}
	return rows
}

// rowsOf are the rows of a store by key, the newest of a store of versions.
func rowsOf[K comparable, V any](db *state.DB, store string) (state.Rows[K, V], error) {
	if versions, err := state.VersionedViewOf[K, V](db, store); err == nil {
		return versions.All(), nil
	}
	view, err := state.ViewOf[K, V](db, store)
	if err != nil {
		return nil, err
	}
	return view.All(), nil
}

func fold[K comparable, V any](d *Driver, all state.Rows[K, V]) map[K]V {
	d.tb.Helper()
	rows := map[K]V{}
	for row, err := range all {
		if err != nil {
			d.tb.Fatal(err)
		}
		rows[row.Key] = row.Value
	}
	return rows
}

// DeadLetters returns the failures written to a dead-letter topic since the
// last call.
func (d *Driver) DeadLetters(topic string) []stream.Failure {
	d.tb.Helper()
	var out []stream.Failure
	for p := range d.partitions(topic) {
		tp := seam.TP{Topic: topic, Partition: int32(p)}
		for _, k := range d.w.Read(tp, d.read[tp]) {
			f, err := stream.ReadDeadLetter(k)
			if err != nil {
				d.tb.Fatal(err)
			}
			out = append(out, *f)
			d.read[tp] = k.Offset + 1
		}
	}
	return out
}

// Topics are all topics of the driver's cluster, internal ones included.
func (d *Driver) Topics() []string { return slices.Clone(d.w.TopicNames()) }

// String is for messages.
func (d *Driver) String() string { return fmt.Sprintf("driver at %v", d.w.Now()) }
