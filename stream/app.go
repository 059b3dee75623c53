package stream

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/semelstream/semel/internal/seam"
	"github.com/semelstream/semel/stream/internal/kafka"
	"github.com/semelstream/semel/stream/internal/runtime"
)

// An App runs a Topology.
type App struct {
	topology *Topology
	cfg      Config

	mu      sync.Mutex
	rt      *runtime.App // while it runs
	stop    func()       // ends Run
	exit    Exit
	started bool
	state   State // before and after rt
	paused  bool
	ended   chan struct{} // closed when Run has returned
}

// New checks cfg and prepares an App; it does not connect.
func New(t *Topology, cfg Config) (*App, error) {
	if t == nil {
		return nil, errors.New("semel: no topology: make one with Build")
	}
	if err := cfg.check(); err != nil {
		return nil, err
	}
	if topic, ok := cfg.OnError.deadLetters(); ok {
		if m := matching(t.graph, topic); m != nil {
			return nil, fmt.Errorf("semel: Config.OnError sends dead letters to topic %q, which the pattern %q of a source matches: they would be read again; change the pattern so that it leaves the topic out, or give the topic another name", topic, m.Name)
		}
	}
	return &App{topology: t, cfg: cfg, exit: cfg.OnExit, state: Starting, ended: make(chan struct{})}, nil
}

// Run is [Build], [New] and [App.Run] in one, for main.
func Run(ctx context.Context, define func(*Builder), cfg Config) error {
	t, err := Build(define)
	if err != nil {
		return err
	}
	a, err := New(t, cfg)
	if err != nil {
		return err
	}
	return a.Run(ctx)
}

// check fills in defaults and reports what is missing or senseless.
func (c *Config) check() error {
	var bad []error
	if c.AppID == "" {
		bad = append(bad, errors.New("Config.AppID is empty: give the application a name that stays"))
	} else if strings.ContainsFunc(c.AppID, notInTopicNames) {
		bad = append(bad, fmt.Errorf("Config.AppID %q: use letters, digits, '.', '_' and '-' only, since it begins topic names", c.AppID))
	}
	if len(c.Brokers) == 0 {
		bad = append(bad, errors.New("Config.Brokers is empty: give one address or more, as host:port"))
	}
	if c.Workers < 0 {
		bad = append(bad, fmt.Errorf("Config.Workers is %d: give 1 or more, or 0 for 1", c.Workers))
	}
	if c.Logger == nil {
		c.Logger = zap.NewNop()
	}
	if c.Session == 0 {
		c.Session = 45 * time.Second
	}
	if len(bad) > 0 {
		return fmt.Errorf("semel: %w", errors.Join(bad...))
	}
	return nil
}

func notInTopicNames(r rune) bool {
	switch {
	case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '.', r == '_', r == '-':
		return false
	}
	return true
}

// Run runs the app until ctx ends, then commits what is in hand and returns
// nil, or returns the first fatal error. It can be called once.
func (a *App) Run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	a.mu.Lock()
	if a.started {
		a.mu.Unlock()
		return fmt.Errorf("semel: App.Run was called twice: %w", ErrClosed)
	}
	a.started, a.stop = true, stop
	a.mu.Unlock()
	defer close(a.ended)
	err := publicError(a.cfg.AppID, a.run(ctx))
	a.mu.Lock()
	defer a.mu.Unlock()
	a.rt, a.state = nil, Stopped
	if err != nil {
		a.state = Failed
	}
	return err
}

func (a *App) run(ctx context.Context) error {
	stores, instance, err := openStores(a.cfg)
	if err != nil {
		return err
	}
	defer stores.close()
	env, closeEnv, err := kafka.NewEnv(kafka.Config{
		AppID: a.cfg.AppID, Brokers: a.cfg.Brokers, Client: a.cfg.Client, Logger: a.cfg.Logger,
		Topics:             a.topology.graph.TopicNames(a.cfg.AppID),
		AllowTransactionV1: a.cfg.AllowTransactionV1, AtLeastOnce: a.cfg.AtLeastOnce, Session: a.cfg.Session,
		TransactionTimeout: transactionTimeout(a.cfg.CommitInterval),
	})
	if err != nil {
		return err
	}
	defer closeEnv()
	env.Stops = seam.TestStops
	rt := a.topology.runtime(runtime.Env{Env: env, Stores: stores}, a.cfg, instance, a.leaves)
	a.mu.Lock()
	a.rt = rt
	if a.paused {
		rt.Pause()
	}
	a.mu.Unlock()
	return rt.Run(ctx)
}

// transactionTimeout is longer than a commit may take while a broker fails over
// (18 s were seen), on top of the time that a transaction is open anyway.
func transactionTimeout(interval time.Duration) time.Duration {
	return max(interval, 0) + 40*time.Second
}

// runtime makes the runtime's app of a topology.
func (t *Topology) runtime(env runtime.Env, cfg Config, instance string, leave func() bool) *runtime.App {
	rc := runtime.Config{
		App: cfg.AppID, Instance: instance, Workers: cfg.Workers, CommitInterval: cfg.CommitInterval,
		Continuous: cfg.CommitInterval == Continuous, MaxIdle: cfg.MaxIdle, Session: cfg.Session,
		Replication: cfg.Replication, CreateNothing: cfg.CreateNothing, AtLeastOnce: cfg.AtLeastOnce,
		Leave: leave, Hooks: hooks(cfg.AppID, cfg.Hooks),
	}
	if cfg.OnError != nil {
		rc.Policy = cfg.OnError.runtime(cfg.AppID)
	}
	if cfg.MemoryBudget > 0 {
		rc.CacheBytes = cfg.MemoryBudget / 4
	}
	return runtime.New(env, t.withApp(cfg.AppID), rc)
}

func (a *App) leaves() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.exit == Leave
}

// Close ends Run as how says and waits for it, at most until ctx ends.
func (a *App) Close(ctx context.Context, how Exit) error {
	a.mu.Lock()
	a.exit = how
	stop := a.stop
	a.mu.Unlock()
	if stop == nil {
		return nil
	}
	stop()
	select {
	case <-a.ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// State is what the app is doing now.
func (a *App) State() State {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.rt != nil {
		return State(a.rt.State())
	}
	return a.state
}

// Pause stops processing and timers after a commit, which it does not wait for:
// State is [Paused] then. The instance keeps its tasks, takes new ones, restores
// them and goes on reading global tables. Paused before [App.Run] it processes
// nothing until Resume. Other instances go on.
func (a *App) Pause() { a.setPaused(true) }

// Resume undoes Pause. A timer of the wall clock that came due meanwhile fires
// once.
func (a *App) Resume() { a.setPaused(false) }

func (a *App) setPaused(paused bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.paused = paused
	switch {
	case a.rt == nil:
	case paused:
		a.rt.Pause()
	default:
		a.rt.Resume()
	}
}

// Tasks are the tasks on this instance, in order; none before and after
// [App.Run].
func (a *App) Tasks() []TaskInfo {
	rt := a.runtime()
	if rt == nil {
		return nil
	}
	var out []TaskInfo
	for _, t := range rt.Tasks() {
		info := TaskInfo{Task: t.ID.String(), Restoring: t.Restoring}
		if t.StreamTime != runtime.NoTime {
			info.StreamTime = timeOf(t.StreamTime)
		}
		if t.Lag != nil {
			info.Lag = map[string]int64{}
		}
		for tp, n := range t.Lag {
			info.Lag[tp.String()] = n
		}
		out = append(out, info)
	}
	return out
}

// A TaskInfo is a task as [App.Tasks] saw it.
type TaskInfo struct {
	Task       string    // sub-topology and partition, as "1_7"
	Restoring  bool      // its state is not there yet; it has no time and no lag then
	StreamTime time.Time // the largest record time that it has met, zero before the first record
	// Lag is how many records it is behind, by input as "topic/partition", as
	// far as is known from what was fetched: a paused task learns of no new ones.
	Lag map[string]int64
}

// publicError makes the runtime's failures the user's.
func publicError(app string, err error) error {
	var f *runtime.Stopper
	if errors.As(err, &f) {
		return newFailure(app, f.Task, f.Failure, f.Record)
	}
	if errors.Is(err, runtime.ErrIncompatible) && !errors.Is(err, ErrIncompatible) {
		err = fmt.Errorf("%w: %w", ErrIncompatible, err)
	}
	return publicFault(err)
}
