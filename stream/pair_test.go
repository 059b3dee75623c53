package stream_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/internal/seam"
	"github.com/semelstream/semel/state"
	"github.com/semelstream/semel/stream"
	"github.com/semelstream/semel/stream/internal/bridge"
	"github.com/semelstream/semel/stream/internal/graph"
	"github.com/semelstream/semel/stream/internal/model"
	"github.com/semelstream/semel/stream/internal/runtime"
)

// A pair runs a topology in one or two instances in a modelled cluster without
// faults of its own, and commits when it is told to.
type pair struct {
	t     *testing.T
	w     *model.World
	prog  runtime.Program
	n     int32 // partitions of each topic
	procs []*model.Process
	apps  map[*model.Process]*runtime.App
	tasks map[*model.Process]map[string]bool
}

const pairApp = "app"

// newPair starts the first instance.
func newPair(t *testing.T, define func(*stream.Builder), partitions int32) *pair {
	t.Helper()
	topology, err := stream.Build(define)
	if err != nil {
		t.Fatal(err)
	}
	p := &pair{
		t: t, n: partitions, prog: bridge.Program(topology, pairApp), apps: map[*model.Process]*runtime.App{},
		tasks: map[*model.Process]map[string]bool{},
		w:     model.New(model.Config{Seed: 1, Instant: true, Start: time.UnixMilli(0)}),
	}
	t.Cleanup(p.w.Stop)
	for _, topic := range p.prog.Graph().Topics {
		if !topic.Internal && !topic.Dynamic {
			p.w.CreateTopic(topic.Name, partitions, map[string]string{"cleanup.policy": "compact"})
		}
	}
	for _, name := range []string{"out-a", "out-b"} { // that are chosen by record
		p.w.CreateTopic(name, partitions, nil)
	}
	p.startOne()
	return p
}

// startOne starts one more instance.
func (p *pair) startOne() {
	p.t.Helper()
	name := fmt.Sprint("instance-", len(p.procs))
	var proc *model.Process
	proc = p.w.Start(name, func(env seam.Env, disk *model.Disk) error {
		tasks := map[string]bool{}
		p.tasks[proc] = tasks
		app := runtime.New(runtime.Env{Env: env, Stores: pairStores{disk}}, p.prog, runtime.Config{
			App: pairApp, Instance: name, Workers: 1, CommitInterval: 1000 * time.Hour,
			StoreInterval: time.Nanosecond, FlushInterval: time.Nanosecond,
			Hooks: runtime.Hooks{Tasks: func(assigned, revoked, lost []string) {
				for _, task := range assigned {
					tasks[task] = true
				}
				for _, task := range slices.Concat(revoked, lost) {
					delete(tasks, task)
				}
			}},
		})
		p.apps[proc] = app
		return app.Run(context.Background())
	})
	p.procs = append(p.procs, proc)
	p.settle()
}

type pairStores struct{ disk *model.Disk }

func (s pairStores) Open(t seam.Task, _ bool) (state.Engine, error) { return s.disk.Open(t.String()) }

// settle turns the world until everything waits for input, and starts again
// what was killed on the way.
func (p *pair) settle() {
	p.t.Helper()
	for again := true; again; {
		if !p.w.RunUntil(p.quiet, 10*time.Minute) {
			p.t.Fatalf("it does not come to rest: %v", p)
		}
		again = false
		for _, proc := range p.procs {
			if !proc.Alive() && proc.Err() != nil {
				p.t.Fatalf("%s stopped: %v", proc.Name(), proc.Err())
			}
			if !proc.Alive() {
				proc.Restart()
				again = true
			}
		}
	}
}

func (p *pair) String() string {
	var b strings.Builder
	for _, proc := range p.procs {
		fmt.Fprintf(&b, "%s alive %v", proc.Name(), proc.Alive())
		if app := p.apps[proc]; app != nil {
			fmt.Fprintf(&b, " %s", app.State())
		}
		fmt.Fprintf(&b, " %v; ", slices.Sorted(maps.Keys(p.tasks[proc])))
	}
	return b.String() + fmt.Sprint("idle ", p.w.Idle())
}

// quiet says that every task runs in an instance, and all wait for input; or
// that an instance has died. One without tasks is not said to run.
func (p *pair) quiet() bool {
	n := 0
	for _, proc := range p.procs {
		if app := p.apps[proc]; proc.Alive() && app != nil {
			if len(p.tasks[proc]) > 0 && app.State() != runtime.Running {
				return false
			}
			n += len(p.tasks[proc])
		}
	}
	died := slices.ContainsFunc(p.procs, func(proc *model.Process) bool { return !proc.Alive() })
	return p.w.Idle() && (died || n == int(p.n)*len(p.prog.Graph().Subs))
}

// feed sends a record and has it processed as far as that goes without a
// commit.
func (p *pair) feed(k *kgo.Record) {
	p.t.Helper()
	if k.Key != nil {
		k.Partition = p.partition(k.Key)
	}
	tp := seam.TP{Topic: k.Topic, Partition: k.Partition}
	if _, err := p.w.Produce(tp, k.Key, k.Value, k.Timestamp); err != nil {
		p.t.Fatal(err)
	}
	p.settle()
}

func (p *pair) partition(key []byte) int32 {
	p.t.Helper()
	recs, err := stream.NewTopic("any", codec.Bytes, codec.Bytes).Encode(stream.Record[[]byte, []byte]{Key: key}, int(p.n))
	if err != nil {
		p.t.Fatal(err)
	}
	return recs[0].Partition
}

// commit commits until all that follows from a commit, in the sub-topologies
// behind, is committed too, though each instance is killed once on the way.
func (p *pair) commit() {
	p.t.Helper()
	for range len(p.prog.Graph().Subs) + 1 + len(p.procs) {
		for _, proc := range p.procs {
			if proc.Alive() {
				p.apps[proc].Commit()
			}
		}
		p.settle()
	}
}

// crash kills an instance, perhaps takes its disk away, and starts it again.
func (p *pair) crash(proc *model.Process, wipe bool) {
	p.t.Helper()
	p.w.Kill(proc)
	if wipe {
		proc.Disk().Wipe()
	}
	p.settle()
}

// crashAt has an instance killed at a place on the way of the next commit.
func (p *pair) crashAt(proc *model.Process, place string) { p.w.KillAt(proc, place) }

// handOver kills an instance and waits until the other has its tasks.
func (p *pair) handOver(proc *model.Process) {
	p.t.Helper()
	p.w.Kill(proc)
	p.w.Advance(2 * time.Minute)
	p.settle()
}

// results are what was committed, by topic and key, in order of writing.
func (p *pair) results() map[string][]string {
	p.t.Helper()
	out := map[string][]string{}
	for name, topic := range p.w.Topics(p.w.TopicNames()...) {
		if !p.isResult(name) {
			continue
		}
		for i := range topic.Partitions {
			for _, k := range p.w.Read(seam.TP{Topic: name, Partition: i}, 0) {
				row := fmt.Sprintf("%s/%d %s", name, i, showPart(k.Key, ""))
				if k.Key == nil {
					row = name + " null" // of any partition
				}
				out[row] = append(out[row], fmt.Sprintf("%s@%d", showPart(k.Value, ""), k.Timestamp.UnixMilli()))
			}
		}
	}
	for row, all := range out {
		if strings.HasSuffix(row, " null") {
			slices.Sort(all)
		}
	}
	return out
}

// isResult says whether the topic is written by the topology and not internal.
func (p *pair) isResult(name string) bool {
	return name == "out-a" || name == "out-b" || slices.ContainsFunc(p.prog.Graph().Topics, func(t *graph.Topic) bool {
		return t.Sink && !t.Internal && t.Name == name
	})
}

// stores are the rows that the changelogs hold after compaction, and of stores
// of versions those that can be found.
func (p *pair) stores() map[string]string {
	p.t.Helper()
	rows := map[string]string{}
	for _, s := range p.prog.Graph().Stores {
		if s.NoChangelog || s.Source != nil {
			continue
		}
		name := s.ChangelogName(pairApp)
		for i := range p.w.Topics(name)[name].Partitions {
			if s.Kind == graph.Versioned {
				p.versions(rows, s, i)
				continue
			}
			for _, k := range p.w.Read(seam.TP{Topic: name, Partition: i}, 0) {
				row := fmt.Sprintf("%s/%d %s", s.Name, i, showPart(k.Key, ""))
				if k.Value == nil {
					delete(rows, row)
				} else {
					rows[row] = fmt.Sprintf("%s@%d", showPart(k.Value, ""), k.Timestamp.UnixMilli())
				}
			}
		}
	}
	return rows
}

// versions adds the rows of a store of versions: of each key those that begin
// in the history, and the one that was valid before.
func (p *pair) versions(rows map[string]string, s *graph.Store, partition int32) {
	p.t.Helper()
	values, newest := map[string]map[int64]string{}, int64(0)
	for _, k := range p.w.Read(seam.TP{Topic: s.ChangelogName(pairApp), Partition: partition}, 0) {
		key, at := showPart(k.Key, ""), k.Timestamp.UnixMilli()
		if values[key] == nil {
			values[key] = map[int64]string{}
		}
		values[key][at], newest = showPart(k.Value, ""), max(newest, at)
	}
	for key, all := range values {
		before := ""
		for _, at := range slices.Sorted(maps.Keys(all)) {
			if at <= newest-s.Retain {
				before = all[at]
				continue
			}
			rows[fmt.Sprintf("%s/%d %s from %d", s.Name, partition, key, at)] = all[at]
		}
		if before != "null" && before != "" {
			rows[fmt.Sprintf("%s/%d %s before", s.Name, partition, key)] = before
		}
	}
}
