package runtime_test

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/internal/seam"
	"github.com/semelstream/semel/state"
	"github.com/semelstream/semel/stream"
	"github.com/semelstream/semel/stream/internal/bridge"
	"github.com/semelstream/semel/stream/internal/model"
	"github.com/semelstream/semel/stream/internal/runtime"
)

var (
	seeds = flag.Int("seeds", 200, "how many seeds the simulation runs")
	first = flag.Uint64("first", 1, "the first seed")
	trace = flag.Bool("sim.trace", false, "print the trace of a failing seed")
)

// The topology of the simulation has what the commit protocol must hold
// together: per-record results that carry running counts, results at the
// commit, a repartition topic, and two sub-topologies with state.
var (
	simIn   = stream.NewTopic("in", codec.String, codec.String)
	simEach = stream.NewTopic("each", codec.String, codec.String)
	simSums = stream.NewTopic("sums", codec.String, codec.Int64)
)

func simTopology(b *stream.Builder) {
	counts := b.Store("counts", codec.String, codec.Int64)
	in := b.Stream(simIn)
	in.ProcessValues(func(c *stream.ValueContext[string], r stream.Record[string, string]) error {
		n, _, err := counts.In(c).Get(r.Key)
		if err != nil {
			return err
		}
		if err := counts.In(c).Put(r.Key, n+1); err != nil {
			return err
		}
		return c.Emit(fmt.Sprintf("%d %s", n+1, r.Value))
	}, stream.Uses(counts)).To(simEach)
	in.GroupBy(func(k, _ string) string { return "g" + k[len(k)-1:] }).Count("sums").To(simSums)
}

const (
	simApp   = "sim"
	simParts = 3
	simKeys  = 17
	simTime  = 12 * time.Second
)

// A simRun is one seed.
type simRun struct {
	w       *model.World
	procs   []*model.Process
	inputs  int
	why     string
	workers int
	// continuous commits as soon as the input is drained: every second seed.
	continuous bool
	// They are small in many seeds.
	queue, busy, settle int
	queueBytes          int64
}

func (s *simRun) start(t testing.TB, name string) {
	topology, err := stream.Build(simTopology)
	if err != nil {
		t.Fatal(err)
	}
	prog := bridge.Program(topology, simApp)
	p := s.w.Start(name, func(env seam.Env, disk *model.Disk) error {
		app := runtime.New(runtime.Env{Env: env, Stores: diskStores{disk}}, prog, runtime.Config{
			App: simApp, Instance: name, Workers: s.workers, CommitInterval: 80 * time.Millisecond,
			StoreInterval: 300 * time.Millisecond, FlushInterval: 900 * time.Millisecond, Session: 6 * time.Second,
			PurgeInterval: 2 * time.Second, Continuous: s.continuous, Queue: s.queue, QueueBytes: s.queueBytes, Busy: s.busy, Settle: s.settle,
		})
		return app.Run(context.Background())
	})
	s.procs = append(s.procs, p)
}

type diskStores struct{ d *model.Disk }

func (s diskStores) Open(t seam.Task, inMemory bool) (state.Engine, error) {
	return s.d.Open(t.String())
}

// feed produces the inputs over virtual time.
func (s *simRun) feed(n int, over time.Duration) {
	every := over / time.Duration(n)
	for i := range n {
		k := s.w.Rand().IntN(simKeys)
		key := fmt.Sprintf("k%02d", k)
		tp := seam.TP{Topic: "in", Partition: int32(k % simParts)}
		if _, err := s.w.Produce(tp, []byte(key), fmt.Appendf(nil, "%05d", i), time.Time{}); err != nil {
			panic(err)
		}
		s.inputs++
		s.w.Advance(every)
	}
}

// done says that everything is processed and committed and nothing is open.
func (s *simRun) done() bool {
	if !s.w.Settled() {
		s.why = "transactions are open"
		return false
	}
	for _, topic := range []string{"in", simApp + "-sums-repartition"} {
		for p := range int32(simParts) {
			tp := seam.TP{Topic: topic, Partition: p}
			o, ok := s.w.Committed(simApp, tp)
			if end := s.w.End(tp); !ok && end > 0 || ok && o.At < end {
				s.why = fmt.Sprintf("%s: committed %d of %d", tp, o.At, end)
				return false
			}
		}
	}
	return true
}

// check compares what the topics and disks hold with a plain recount.
func (s *simRun) check() (bad []string) {
	report := func(f string, a ...any) { bad = append(bad, fmt.Sprintf(f, a...)) }
	sums := map[string]int64{}
	for p := range int32(simParts) {
		counts := map[string]int64{}
		in := s.w.Read(seam.TP{Topic: "in", Partition: p}, 0)
		byKey := map[string][]string{}
		for _, r := range s.allEach() {
			byKey[r.key] = append(byKey[r.key], r.value)
		}
		for _, r := range in {
			k := string(r.Key)
			counts[k]++
			sums["g"+k[len(k)-1:]]++
			want := fmt.Sprintf("%d %s", counts[k], r.Value)
			if n := int(counts[k]); len(byKey[k]) < n {
				report("%s: result %q is lost", k, want)
			} else if got := byKey[k][n-1]; got != want {
				report("%s: result %d is %q, want %q", k, n, got, want)
			}
		}
		for k, n := range counts {
			if len(byKey[k]) > int(n) {
				report("%s: %d results, want %d", k, len(byKey[k]), n)
			}
		}
		fold := map[string]int64{}
		for _, r := range s.w.Read(seam.TP{Topic: simApp + "-counts-changelog", Partition: p}, 0) {
			fold[string(r.Key)], _ = codec.Int64.Decode(r.Value)
		}
		if !maps.Equal(fold, counts) {
			report("the changelog of counts, partition %d, folds to %v, want %v", p, fold, counts)
		}
	}
	last, fold := map[string]int64{}, map[string]int64{}
	for p := range int32(simParts) {
		for _, r := range s.w.Read(seam.TP{Topic: "sums", Partition: p}, 0) {
			n, _ := codec.Int64.Decode(r.Value)
			if n < last[string(r.Key)] {
				report("sum of %s falls from %d to %d", r.Key, last[string(r.Key)], n)
			}
			last[string(r.Key)] = n
		}
		for _, r := range s.w.Read(seam.TP{Topic: simApp + "-sums-changelog", Partition: p}, 0) {
			fold[string(r.Key)], _ = codec.Int64.Decode(r.Value)
		}
	}
	if !maps.Equal(last, sums) {
		report("sums are %v, want %v", last, sums)
	}
	if !maps.Equal(fold, sums) {
		report("the changelog of sums folds to %v, want %v", fold, sums)
	}
	return append(bad, s.checkDisks()...)
}

type eachResult struct{ key, value string }

// allEach are the per-record results in order of partition and offset.
func (s *simRun) allEach() (out []eachResult) {
	for p := range int32(simParts) {
		for _, r := range s.w.Read(seam.TP{Topic: "each", Partition: p}, 0) {
			out = append(out, eachResult{string(r.Key), string(r.Value)})
		}
	}
	return out
}

// checkDisks asks that every disk that holds a task, also of former owners,
// is the fold of the changelog up to its own position.
func (s *simRun) checkDisks() (bad []string) {
	for _, p := range s.procs {
		for _, name := range p.Disk().Names() {
			var sub, part int32
			fmt.Sscanf(name, "%d_%d", &sub, &part)
			store := []string{"counts", "sums"}[sub]
			e := p.Disk().Read(name)
			db, err := state.Open(e, state.Options{Stores: []state.Spec{{Name: store}}})
			if err != nil {
				bad = append(bad, fmt.Sprintf("disk of %s, task %s: %v", p.Name(), name, err))
				continue
			}
			want := map[string]int64{}
			for _, r := range s.w.Read(seam.TP{Topic: simApp + "-" + store + "-changelog", Partition: part}, 0) {
				if r.Offset < db.Part(store).Position() {
					want[string(r.Key)], _ = codec.Int64.Decode(r.Value)
				}
			}
			kv, err := state.OpenKV(db, store, codec.String, codec.Int64)
			if err != nil {
				bad = append(bad, err.Error())
				continue
			}
			got := map[string]int64{}
			for row, err := range kv.All() {
				if err != nil {
					bad = append(bad, err.Error())
					break
				}
				got[row.Key] = row.Value
			}
			if !maps.Equal(got, want) {
				bad = append(bad, fmt.Sprintf("disk of %s, task %s, position %d holds %v, want %v", p.Name(), name, db.Part(store).Position(), got, want))
			}
		}
	}
	return bad
}

// runSeed runs one seed to the end and returns what is wrong.
func runSeed(t testing.TB, cfg model.Config, procs, workers, inputs int, over time.Duration, prepare func(*simRun)) (*simRun, []string) {
	s := &simRun{w: model.New(cfg), workers: workers, continuous: cfg.Seed%2 == 1, queue: int(cfg.Seed % 4), busy: int(cfg.Seed % 5), settle: int(cfg.Seed % 7), queueBytes: int64(cfg.Seed % 3 * 40)}
	defer s.w.Stop()
	for _, name := range []string{"in", "each", "sums"} {
		s.w.CreateTopic(name, simParts, nil)
	}
	for i := range procs {
		s.start(t, string(rune('a'+i)))
	}
	if prepare != nil {
		prepare(s)
	}
	s.feed(inputs, over)
	s.w.Quiet()
	if !s.w.RunUntil(s.done, 3*time.Minute) {
		return s, []string{"no progress: " + s.why}
	}
	bad := s.check()
	return s, bad
}

func simConfig(seed uint64) model.Config {
	return model.Config{Seed: seed, Restart: true, Trace: *trace, Faults: model.Faults{Crash: 10, Freeze: 3, Net: 15, Late: 5, GiveUp: 10}}
}

// simLoad is how many records come and how fast: of every third seed so fast that
// there are always some for the next transaction while the last one ends.
func simLoad(seed uint64) (inputs int, over time.Duration) {
	if seed%3 == 0 {
		return 300, 900 * time.Millisecond
	}
	return 120, simTime
}

func report(t testing.TB, what string, s *simRun, bad []string) {
	t.Helper()
	if len(bad) == 0 {
		return
	}
	if *trace {
		t.Logf("%s", strings.Join(s.w.Trace(), "\n"))
	}
	t.Errorf("%s:\n  %s", what, strings.Join(bad[:min(len(bad), 8)], "\n  "))
}

func TestNoFaultsNoLoss(t *testing.T) {
	s, bad := runSeed(t, model.Config{Seed: 7, Trace: *trace}, 2, 2, 100, 5*time.Second, nil)
	report(t, "without faults", s, bad)
}

func TestSeeds(t *testing.T) {
	var sum model.Stats
	began := time.Now()
	for i := range *seeds {
		seed := *first + uint64(i)
		inputs, over := simLoad(seed)
		s, bad := runSeed(t, simConfig(seed), 2, 2, inputs, over, nil)
		report(t, fmt.Sprintf("seed %d (-first %d -seeds 1 -sim.trace)", seed, seed), s, bad)
		st := s.w.Stats()
		sum.Turns += st.Turns
		sum.Crashes += st.Crashes
		sum.Freezes += st.Freezes
		sum.Exits += st.Exits
		sum.NetFaults += st.NetFaults
		sum.Late += st.Late
		if t.Failed() && i > 3 {
			break
		}
	}
	d := time.Since(began)
	t.Logf("%d seeds in %v, %.1f ms each: %+v", *seeds, d.Round(time.Millisecond), d.Seconds()*1000/float64(*seeds), sum)
}

func TestSameSeedSameRun(t *testing.T) {
	for seed := range uint64(10) {
		a, _ := runSeed(t, simConfig(seed), 2, 2, 60, 6*time.Second, nil)
		b, _ := runSeed(t, simConfig(seed), 2, 2, 60, 6*time.Second, nil)
		if a.w.Hash() != b.w.Hash() || a.w.Stats() != b.w.Stats() {
			t.Fatalf("seed %d ran differently the second time: %x %+v, %x %+v", seed, a.w.Hash(), a.w.Stats(), b.w.Hash(), b.w.Stats())
		}
	}
}

// The first process dies at each of its turns, once per run; nothing else
// goes wrong.
func TestCrashAtEveryTurn(t *testing.T) {
	run := func(turn int) (*simRun, []string) {
		cfg := model.Config{Seed: 3, Restart: true, Trace: *trace}
		return runSeed(t, cfg, 2, 1, 20, time.Second, func(s *simRun) {
			if turn > 0 {
				s.w.KillAtTurn(s.procs[0], turn)
			}
		})
	}
	s, bad := run(0)
	report(t, "no crash", s, bad)
	turns := s.procs[0].Turns()
	began := time.Now()
	for turn := 1; turn <= turns; turn++ {
		s, bad := run(turn)
		report(t, fmt.Sprintf("crash at turn %d", turn), s, bad)
		if t.Failed() {
			break
		}
	}
	t.Logf("%d turns, one crash at each, in %v", turns, time.Since(began).Round(time.Millisecond))
}
