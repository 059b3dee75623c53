package stream_test

import (
	"encoding/binary"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semelstream/semel/stream"
	"github.com/semelstream/semel/stream/internal/bridge"
	"github.com/semelstream/semel/stream/internal/graph"
)

// What an app makes of its input is decided by the input alone: crashes, lost
// disks and moves of tasks leave no trace in it, and where commits fall shows
// only in how often a row is told. Every golden shape is run here on random
// records, with one partition and with several.

var determinismSeeds = flag.Int("determinism-seeds", 2, "seeds of each shape in the test of determinism")

// leftOut are shapes that this cannot be said of, with the reason.
var leftOut = map[string]string{
	"wall-clock-timer":    "goes by the wall clock",
	"anchored-wall-timer": "goes by the wall clock",
	"stream-time-timer":   "its processor counts calls in a field",
	"anchored-timer":      "its processor counts calls in a field",
	"cancelled-timer":     "its processor counts calls in a field",
	"suppress-full-stops": "is to stop",
}

// retold are shapes in which an aggregate counts the updates of another, which
// are fewer where only the last of a transaction is told.
var retold = []string{"count-of-counts", "rekey-count-rekey-reduce", "windowed-regrouped", "windowed-table-regrouped", "tt-left-group", "suppress-limit", "suppress-early"}

func TestResultsAreDecidedByTheInputAlone(t *testing.T) {
	crashes := 0
	for _, shape := range slices.Sorted(maps.Keys(shapes)) {
		if leftOut[shape] != "" {
			continue
		}
		t.Run(shape, func(t *testing.T) {
			for seed := range *determinismSeeds {
				crashes += newTrial(shape, uint64(seed)).run(t)
			}
		})
	}
	if t.Logf("%d crashes", crashes); crashes == 0 {
		t.Error("nothing was interrupted")
	}
}

// A trial is one shape on one sequence of records.
type trial struct {
	shape      string
	seed       uint64
	partitions int32
	eachUpdate bool
	recs       []*kgo.Record
	commits    []bool // after each record
	ordered    bool   // the records of one transaction are processed in one order only
}

func newTrial(shape string, seed uint64) *trial {
	r := rand.New(rand.NewPCG(seed, uint64(len(shape))))
	tr := &trial{shape: shape, seed: seed, partitions: []int32{1, 2, 5}[r.IntN(3)], eachUpdate: r.IntN(2) == 0}
	g := tr.graph()
	sources, internal := []string{}, false
	for _, topic := range g.Topics {
		internal = internal || topic.Internal
		if topic.Source && !topic.Internal {
			sources = append(sources, topic.Name)
		}
	}
	// After a crash the records of several topics, and what several tasks wrote
	// to one partition, may come in another order than the first time.
	tr.ordered = len(sources) == 1 && (tr.partitions == 1 || !internal && !slices.ContainsFunc(g.Nodes, rekeys))
	now := int64(100)
	for range 40 {
		now += r.Int64N(8)
		tr.recs = append(tr.recs, tr.record(r, sources[r.IntN(len(sources))], max(0, now-r.Int64N(12))))
		tr.commits = append(tr.commits, !tr.ordered || r.IntN(4) == 0)
	}
	return tr
}

// rekeys says whether n may write one key from several tasks.
func rekeys(n *graph.Node) bool {
	return slices.Contains([]string{"select-key", "map", "map-records", "flat-map", "flat-map-records", "process"}, n.Kind)
}

func (tr *trial) graph() *graph.Graph {
	back := tr.mode()
	defer back()
	top, err := stream.Build(shapes[tr.shape])
	if err != nil {
		panic(err)
	}
	return bridge.Program(top, pairApp).Graph()
}

// mode sets how aggregates emit, and returns what sets it back.
func (tr *trial) mode() (back func()) {
	before := each
	if !tr.eachUpdate {
		each = nil
	}
	return func() { each = before }
}

func (tr *trial) record(r *rand.Rand, topic string, ms int64) *kgo.Record {
	values := []string{"a", "b:1", "c:2", "a:13", "xyz", "DEL", "12:v", "b"}
	if v := commands[tr.shape]; v != nil {
		values = v
	}
	k := &kgo.Record{Topic: topic, Timestamp: time.UnixMilli(ms)}
	if r.IntN(20) != 0 {
		k.Key = []byte{byte('a' + r.IntN(5))}
	}
	switch {
	case r.IntN(10) == 0:
	case tr.shape == "sum-long":
		k.Value = binary.BigEndian.AppendUint64(nil, r.Uint64N(100))
	default:
		k.Value = []byte(values[r.IntN(len(values))])
	}
	return k
}

// commands are what shapes that take commands understand.
var commands = map[string][]string{
	"window-commands":            windowCommandList,
	"window-duplicates-commands": windowCommandList,
	"session-commands": {
		"put:10:20:x", "put:15:90:y", "put:60:70:z", "put:200:240:v", "rem:10:20", "at:15:90", "find:0:300", "bfind:50:80", "fetch", "keys:a:c",
	},
	"versioned-commands": {"put:1", "put:2", "nul", "del", "get", "asof:40", "asof:120", "asof:200"},
	"kv-commands":        {"put:1", "put:2", "pia:3", "del", "get", "range:*:*", "rrange:a:c", "all", "prefix:a"},
}

var windowCommandList = []string{
	"put:1", "put:2", "del", "at:40", "fetch:0:300", "bfetch:50:200", "keys:a:c:0:300", "fetchall:20:220", "bfetchall:0:300", "all",
}

func (tr *trial) String() string {
	return fmt.Sprintf("%s, seed %d, %d partitions, every update %v", tr.shape, tr.seed, tr.partitions, tr.eachUpdate)
}

// run returns how many crashes there were.
func (tr *trial) run(t *testing.T) int {
	t.Helper()
	back := tr.mode()
	defer back()
	plain := tr.play(t, tr.commits, nil)
	rough := tr.play(t, tr.commits, rand.New(rand.NewPCG(tr.seed, 1)))
	tr.same(t, "results after crashes and moves", rough.results, plain.results)
	tr.same(t, "stores after crashes and moves", rough.stores, plain.stores)
	if !tr.ordered {
		return rough.crashes
	}
	single := tr.play(t, slices.Repeat([]bool{true}, len(tr.recs)), nil)
	if tr.eachUpdate {
		tr.same(t, "results with other commits", plain.results, single.results)
	}
	if tr.eachUpdate || !slices.Contains(retold, tr.shape) {
		tr.same(t, "stores with other commits", plain.stores, single.stores)
	}
	return rough.crashes
}

func (tr *trial) same(t *testing.T, what string, got, want map[string]string) {
	t.Helper()
	for k := range want {
		if got[k] != want[k] {
			t.Errorf("%v: %s: %s\n got %s\nwant %s", tr, what, k, got[k], want[k])
		}
	}
	for k := range got {
		if _, ok := want[k]; !ok {
			t.Errorf("%v: %s: %s\n got %s\nwant nothing", tr, what, k, got[k])
		}
	}
}

type played struct {
	results, stores map[string]string
	crashes         int
}

// play runs the records. With r, things happen in between.
func (tr *trial) play(t *testing.T, commits []bool, r *rand.Rand) played {
	t.Helper()
	p := newPair(t, shapes[tr.shape], tr.partitions)
	defer p.w.Stop()
	for i, k := range tr.recs {
		c := *k
		p.feed(&c)
		if r != nil {
			tr.interrupt(p, r, commits[i])
		}
		if commits[i] {
			p.commit()
			if r != nil {
				tr.move(p, r)
			}
		}
	}
	p.commit()
	out := played{map[string]string{}, p.stores(), p.w.Stats().Crashes}
	for k, all := range p.results() {
		out.results[k] = strings.Join(all, " ")
	}
	return out
}

// interrupt kills an instance now, or on the way of the commit that follows.
func (tr *trial) interrupt(p *pair, r *rand.Rand, commits bool) {
	proc := p.procs[r.IntN(len(p.procs))]
	switch n := r.IntN(12); {
	case n < 2:
		p.crash(proc, n == 0)
	case commits && n < 5:
		p.crashAt(proc, []string{"C2", "C4", "C5", "C6", "C7"}[r.IntN(5)])
	}
}

// move moves tasks, with nothing uncommitted: a second instance comes, or one
// leaves its tasks to the other for a while.
func (tr *trial) move(p *pair, r *rand.Rand) {
	switch n := r.IntN(8); {
	case n == 0 && len(p.procs) < 2:
		p.startOne()
	case n <= 1 && len(p.procs) == 2:
		p.handOver(p.procs[r.IntN(2)])
	}
}
