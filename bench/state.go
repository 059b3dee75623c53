package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/semelstream/semel/stream"
)

// A stateRun is an application with a large state.
type stateRun struct {
	b       *bench
	app     string
	in, out string
	s       spec
	p       *process
	w       *watcher
	bytes   int64 // of the state's keys and values
}

// state builds a large state, kills the application that has it again and
// again, and lets another one rebuild it from nothing.
func (b *bench) state(ctx context.Context, recovery, restore bool) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r, err := b.buildState(ctx)
	if err != nil {
		return fmt.Errorf("building the state: %w", err)
	}
	defer func() { r.p.kill() }()
	if recovery {
		if err := r.recovery(ctx); err != nil {
			return fmt.Errorf("recovery: %w", err)
		}
	}
	if restore {
		if err := r.restore(ctx); err != nil {
			return fmt.Errorf("restore: %w", err)
		}
	}
	if _, err := r.p.stop(ctx); err != nil {
		return err
	}
	cancel()
	<-r.w.gone
	ctx, cancel = context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return b.forget(ctx, r.app, r.in, r.out)
}

// buildState loads one record for each row and has the application take them.
func (b *bench) buildState(ctx context.Context) (*stateRun, error) {
	app := b.name("state")
	r := &stateRun{b: b, app: app, in: app + "-in", out: app + "-out", bytes: b.stateKeys * int64(16+b.stateValue)}
	r.s = spec{
		Kind: kindApp, Topology: "latest", Stay: true, Brokers: b.c.brokers, App: app, In: r.in, Out: r.out,
		Dir: filepath.Join(b.dir, app), Workers: b.workers, Commit: b.commit, Linger: 5 * time.Millisecond,
	}
	b.say("loading %d rows of %d bytes", b.stateKeys, b.stateValue)
	if _, err := b.c.loadKeys(ctx, r.in, b.stateKeys, b.stateValue, inTurn(uint64(b.stateKeys))); err != nil {
		return nil, err
	}
	if err := b.c.makeTopic(ctx, r.out); err != nil {
		return nil, err
	}
	var err error
	if r.w, err = b.watch(ctx, r.out); err != nil {
		return nil, err
	}
	if r.p, err = start(r.s); err != nil {
		return nil, err
	}
	wait, cancel := context.WithTimeout(ctx, b.patience)
	defer cancel()
	if err := r.w.await(wait, "all rows", func() bool { return r.w.other >= b.stateKeys }); err != nil {
		r.p.kill()
		return nil, err
	}
	return r, nil
}

// running waits until the application runs and has all rows.
func (r *stateRun) running(ctx context.Context) (event, error) {
	return r.p.await(ctx, "running", 0, isState(string(stream.Running)))
}

func (r *stateRun) hasAllRows(ctx context.Context) error {
	n, err := r.p.rows(ctx, 0)
	if err == nil && n != r.b.stateKeys {
		err = fmt.Errorf("the store has %d rows of %d", n, r.b.stateKeys)
	}
	return err
}

// A recovered is what one kill -9 cost.
type recovered struct {
	silence, first   time.Duration // as the output's reader saw them
	started, running time.Duration // since the kill: the new process, all its tasks at work
	replayed         int64         // records of changelogs
}

// recovery kills and restarts while a few records trickle in.
func (r *stateRun) recovery(ctx context.Context) error {
	f, err := r.b.newFeeder(r.in, r.b.trickle(), r.b.stateValue, inTurn(uint64(r.b.stateKeys)))
	if err != nil {
		return err
	}
	feed, stop := context.WithCancel(ctx)
	defer stop()
	fed := make(chan error, 1)
	go func() { fed <- f.run(feed) }()
	if err := pause(ctx, r.b.settle); err != nil {
		return err
	}
	var all []recovered
	for range r.b.kills {
		k, err := r.kill(ctx)
		if err != nil {
			return err
		}
		all = append(all, k)
		r.b.say("killed: silence %v, first committed output after %v, %d records replayed",
			k.silence.Round(time.Millisecond), k.first.Round(time.Millisecond), k.replayed)
		// Not in step with the application's own intervals.
		if err := pause(ctx, r.b.gap/2+rand.N(r.b.gap)); err != nil {
			return err
		}
	}
	stop()
	if err := <-fed; err != nil {
		return err
	}
	wait, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := r.w.complete(wait, f.sent.Load()); err != nil {
		return err
	}
	if err := r.hasAllRows(ctx); err != nil {
		return err
	}
	return r.b.write("recovery", recoveryReport(all, r, f.sent.Load()))
}

// kill is one kill -9 and its consequences. The first output that counts is
// one of a record that was sent after the kill: the killed process cannot have
// made it.
func (r *stateRun) kill(ctx context.Context) (recovered, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	at := time.Now()
	r.w.killing(at)
	r.p.kill()
	var k recovered
	var err error
	if r.p, err = start(r.s); err != nil {
		return k, err
	}
	k.started = time.Since(at)
	e, err := r.running(ctx)
	if err != nil {
		return k, err
	}
	k.running = e.At.Sub(at)
	if err := r.w.await(ctx, "an output", func() bool { return !r.w.firstOut.IsZero() }); err != nil {
		return k, err
	}
	k.silence, k.first = r.w.recovered()
	k.replayed = restoreOf(r.p).records
	return k, nil
}

// trickle is how many records come in each second while processes are killed.
func (b *bench) trickle() int { return 200 }

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// A restored is one restore from nothing.
type restored struct {
	records, bytes int64
	took           time.Duration // from the first task's beginning to the last one's end
	start          time.Duration // from the start of the process until all tasks run
	cpu            float64       // seconds, of the process until then and a little later
	peak           int64
}

// restore deletes the state directory and starts again.
func (r *stateRun) restore(ctx context.Context) error {
	var all []restored
	for range r.b.pairs {
		if _, err := r.p.stop(ctx); err != nil {
			return err
		}
		if err := os.RemoveAll(r.s.Dir); err != nil {
			return err
		}
		got, err := r.restoreOnce(ctx)
		if err != nil {
			return err
		}
		all = append(all, got)
		r.b.say("restored %d records, %.0f MB in %v", got.records, float64(got.bytes)/1e6, got.took.Round(time.Millisecond))
	}
	return r.b.write("restore", restoreReport(all, r))
}

func (r *stateRun) restoreOnce(ctx context.Context) (restored, error) {
	ctx, cancel := context.WithTimeout(ctx, r.b.patience)
	defer cancel()
	giveBack, err := touchMemory()
	if err != nil {
		return restored{}, err
	}
	if err := giveBack(); err != nil {
		return restored{}, err
	}
	if r.p, err = start(r.s); err != nil {
		return restored{}, err
	}
	e, err := r.running(ctx)
	if err != nil {
		return restored{}, err
	}
	got := restoreOf(r.p)
	got.start = e.At.Sub(r.p.began)
	got.cpu, got.peak = r.p.used()
	if err := r.hasAllRows(ctx); err != nil {
		return got, err
	}
	if got.records < r.b.stateKeys {
		return got, errors.New("not all of the state was restored: the directory was not empty")
	}
	return got, nil
}

// restoreOf sums up what the stores of a process have said of their restores.
func restoreOf(p *process) (all restored) {
	type place struct{ task, store string }
	most := map[place]*restore{}
	var begin, end time.Time
	for _, e := range p.all() {
		if e.Kind != eventRestore {
			continue
		}
		at := place{e.Restore.Task, e.Restore.Store}
		if m := most[at]; m == nil || e.Restore.Records >= m.Records {
			most[at] = e.Restore
		}
		if b := e.At.Add(-e.Restore.Took); begin.IsZero() || b.Before(begin) {
			begin = b
		}
		end = e.At
	}
	for _, m := range most {
		all.records += m.Records
		all.bytes += m.Bytes
	}
	all.took = end.Sub(begin)
	return all
}
