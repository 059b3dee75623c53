// Package runtime runs a topology: members, workers, tasks, queues,
// assignment. It is written against the seams in internal/seam and reaches
// neither Kafka nor the clock nor the goroutine scheduler directly, so that the
// same code runs on a real cluster and, turned by hand, on a model of one.
//
// A process is one member of the consumer group. Its goroutines are
//
//   - the membership (member.go), which hears what tasks are ours,
//   - workers (worker.go), each with a transactional producer and the tasks
//     that it owns: it fetches, processes and commits,
//   - preparers (prepare.go), which fetch offsets and restore stores,
//   - short ones that write committed rows to disk (persist.go).
//
// They talk by orders (order.go), never by calls upwards: whoever gets an order
// meets it between two records, at its own pace.
package runtime

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/semelstream/semel/internal/seam"
	"github.com/semelstream/semel/state"
	"github.com/semelstream/semel/stream/internal/graph"
)

// An App is a program at work in one process.
type App struct {
	env    Env
	cfg    Config
	prog   Program
	graph  *graph.Graph
	log    *zap.Logger
	signal seam.Signal // wakes the membership

	// Of the start, and of the first preparer once the group is joined.
	tasks  []int32                // tasks of each sub-topology; guarded by mu, for those of the group
	counts map[*graph.Topic]int32 // partitions of every fixed topic; of a pattern the most that match

	group     seam.Group // set once, under mu
	workers   []*worker
	preparers []*preparer
	paused    atomic.Bool
	looks     atomic.Bool // somebody wants topics to be looked for

	mu      sync.Mutex            // guards what follows; never held across a call into a seam
	topics  map[string]seam.Topic // every topic known, as found or made; no partitions: known to be missing
	failed  error                 // the first reason to stop
	stop    func()                // ends the wait for changes of the membership
	state   State
	globals *follower               // nil without global tables; set once
	dropped map[string]int          // records left out, by reason
	open    map[seam.Task]*state.DB // of the tasks that run
	active  map[seam.Task]*task     // those
	found   found                   // topics that match patterns; replaced as a whole
	first   map[string]bool         // those of the start that are still there, and whether their source's Reset holds
	reads   map[seam.Task][]seam.TP // of topics that match, by task
}

// A dropKey is an operator and why it left records out.
type dropKey struct{ operator, reason string }

func (k dropKey) compare(o dropKey) int {
	return cmp.Or(cmp.Compare(k.operator, o.operator), cmp.Compare(k.reason, o.reason))
}

// New prepares an App; nothing runs yet.
func New(env Env, prog Program, cfg Config) *App {
	cfg.defaults()
	a := &App{
		env: env, cfg: cfg, prog: prog, graph: prog.Graph(), log: env.Log, signal: env.Signal(),
		state: Starting, dropped: map[string]int{}, open: map[seam.Task]*state.DB{}, active: map[seam.Task]*task{},
		reads: map[seam.Task][]seam.TP{},
	}
	if a.graph.HasPatterns() {
		a.env.Broker = watchedBroker{env.Broker, a}
	}
	return a
}

// Run runs the app until ctx ends, then commits what is in hand and returns
// nil, or returns the first error that ends it.
func (a *App) Run(ctx context.Context) error {
	work, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	defer a.closeGlobals()
	if err := a.start(ctx); err != nil {
		if ctx.Err() != nil {
			a.setState(Stopped)
			return nil
		}
		err = a.explain(err)
		a.log.Error("the app cannot start", zap.Error(err))
		a.setState(Failed)
		return err
	}
	listen, stop := context.WithCancel(ctx)
	defer stop()
	a.stop = stop
	running := a.startWorkers(work)
	// The workers' producers have ended by now, or soon will have, what a crash
	// left open in the topics of global tables.
	a.awaitGlobals(listen)
	if err := a.join(listen); err != nil {
		a.fail(err)
	} else if a.group != nil {
		if err := a.member(listen); err != nil {
			a.fail(err)
		}
	}
	a.stopWorkers(work)
	end()
	a.drain(running)
	if a.group != nil {
		a.group.Close(a.cfg.Leave != nil && a.cfg.Leave())
	}
	if err := a.failure(); err != nil {
		a.setState(Failed)
		return err
	}
	a.setState(Stopped)
	return nil
}

// startWorkers starts the goroutines. The count that it returns falls to zero
// as they end.
func (a *App) startWorkers(ctx context.Context) *running {
	r := &running{}
	var workers []*worker
	for i := range a.cfg.Workers {
		workers = append(workers, newWorker(a, i))
	}
	a.mu.Lock()
	a.workers = workers // from here on it may be paused
	a.mu.Unlock()
	for i := range min(a.cfg.Workers, 4) {
		a.preparers = append(a.preparers, &preparer{app: a, id: i, signal: a.env.Signal()})
	}
	for _, p := range a.preparers {
		a.spawn(r, "restore "+strconv.Itoa(p.id), func() { p.run(ctx) })
	}
	if a.globals != nil {
		a.spawn(r, "global tables", func() { a.globals.run(ctx) })
	}
	for _, w := range a.workers {
		a.spawn(r, "worker "+strconv.Itoa(w.id), func() {
			if err := w.run(ctx); err != nil {
				a.fail(err)
			}
		})
	}
	return r
}

type running struct{ n int } // guarded by App.mu

func (a *App) spawn(r *running, name string, f func()) {
	a.mu.Lock()
	r.n++
	a.mu.Unlock()
	a.env.Go(name, func() {
		f()
		a.mu.Lock()
		r.n--
		a.mu.Unlock()
		a.signal.Notify()
	})
}

// drain waits until the goroutines have ended.
func (a *App) drain(r *running) {
	for {
		a.mu.Lock()
		n := r.n
		a.mu.Unlock()
		if n == 0 {
			return
		}
		for _, p := range a.preparers {
			p.wake()
		}
		a.signal.Wait(context.Background(), 50*time.Millisecond)
	}
}

// join enters the consumer group. There is none if ctx ended before.
func (a *App) join(ctx context.Context) error {
	g, err := a.env.Broker.Group(ctx, seam.GroupConfig{
		Group: a.cfg.App, Instance: a.cfg.Instance, Subs: a.subs(), Session: a.cfg.Session, Facts: a.facts,
		Anchor: a.topologyTopic(), Look: a.lookSoon,
	})
	if err != nil {
		if ctx.Err() != nil {
			return nil //nolint:nilerr // the end of ctx is a clean stop
		}
		return a.explainGroup(err)
	}
	a.mu.Lock()
	a.group = g
	a.mu.Unlock()
	return nil
}

// facts are what the leader of the group learns of this process.
func (a *App) facts() seam.Facts {
	return seam.Facts{Process: a.cfg.Instance, Addr: a.cfg.Addr, Workers: a.cfg.Workers}
}

// stopWorkers has every worker commit and close.
func (a *App) stopWorkers(ctx context.Context) {
	var orders []*order
	for _, w := range a.workers {
		o := &order{kind: orderStop}
		w.post(o)
		orders = append(orders, o)
	}
	a.await(ctx, orders, revokeWait)
}

// fail notes why the app stops and ends the membership's wait.
func (a *App) fail(err error) {
	err = a.explain(err)
	a.mu.Lock()
	first := a.failed == nil
	if first {
		a.failed = err
	}
	a.mu.Unlock()
	if first {
		a.log.Error("the app stops", zap.Error(err))
	}
	if a.stop != nil {
		a.stop()
	}
}

func (a *App) failure() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.failed
}

// preparer is the one that prepares the task.
func (a *App) preparer(t seam.Task) *preparer {
	return a.preparers[int(t.Partition)%len(a.preparers)]
}

// txnPrefix is what transactional ids of the app begin with; the instance
// follows, then the worker. Stable ids let a restarted process end what it
// left open, and let others end what a dead one did. No app id has an "@", so
// that the ids of app "a" are never taken for those of app "a-b".
func (a *App) txnPrefix() string { return txnPrefix(a.cfg.App) }

func txnPrefix(app string) string { return app + "-@" }

func (a *App) txnID(worker int) string {
	return fmt.Sprintf("%s%s-%d", a.txnPrefix(), a.cfg.Instance, worker)
}

// count takes over what a task left out in a transaction that committed.
func (a *App) count(t *task, drops map[dropKey]int) {
	if len(drops) == 0 {
		return
	}
	name := t.id.String()
	for _, k := range slices.SortedFunc(maps.Keys(drops), dropKey.compare) {
		a.countDrop(name, k.operator, k.reason, drops[k])
	}
}

// Dropped is how many records were left out for reason, by all operators, in
// transactions that committed.
func (a *App) Dropped(reason string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.dropped[reason]
}
