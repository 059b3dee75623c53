package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/semelstream/semel/stream"
)

// A latencyRun is an application that records go through at a fixed rate.
type latencyRun struct {
	topology string
	variant  string
	set      func(*spec)
	linger   time.Duration
	q        quantiles
	r        *result
	sent     int64
}

func latencyRuns() []*latencyRun {
	app := func(topology, variant string, commit time.Duration) *latencyRun {
		return &latencyRun{topology: topology, variant: variant, linger: 5 * time.Millisecond, set: func(s *spec) {
			s.Kind, s.Commit = kindApp, commit
		}}
	}
	return []*latencyRun{
		{topology: "pass-through", variant: kindFloor, set: func(s *spec) { s.Kind = kindFloor }},
		app("pass-through", "continuous", stream.Continuous),
		app("pass-through", "every 100ms", 100*time.Millisecond),
		app("latest", "continuous", stream.Continuous),
		app("latest", "every 100ms", 100*time.Millisecond),
	}
}

// latency measures from the time a record was to be sent until a
// read_committed consumer has it.
func (b *bench) latency(ctx context.Context) error {
	var runs []*latencyRun
	for _, l := range latencyRuns() {
		if !b.wants(l.topology) {
			continue
		}
		if err := b.measureLatency(ctx, l); err != nil {
			return fmt.Errorf("%s, %s: %w", l.topology, l.variant, err)
		}
		runs = append(runs, l)
		b.say("%-12s %-24s p50 %.2f ms, p99 %.2f ms", l.topology, l.variant, l.q.P50, l.q.P99)
	}
	if len(runs) == 0 {
		return fmt.Errorf("no workload is named %q", b.only)
	}
	return b.write("latency", latencyReport(runs, b))
}

func (b *bench) measureLatency(ctx context.Context, l *latencyRun) error {
	ctx, cancel := context.WithTimeout(ctx, b.warmUp+time.Duration(b.seconds)*time.Second+time.Minute)
	defer cancel()
	app := b.name(l.topology)
	in, out := app+"-in", app+"-out"
	for _, t := range []string{in, out} {
		if err := b.c.makeTopic(ctx, t); err != nil {
			return err
		}
	}
	s := spec{
		Topology: l.topology, Brokers: b.c.brokers, App: app, In: in, Out: out, Dir: filepath.Join(b.dir, app),
		Workers: b.workers, Linger: l.linger, CPUProfile: profile(b.cpuProfile, l.topology, l.variant),
	}
	l.set(&s)
	p, err := start(s)
	if err != nil {
		return err
	}
	defer p.kill()
	if _, err := p.await(ctx, "running", 0, isState(string(stream.Running))); err != nil {
		return err
	}
	w, err := b.watch(ctx, out)
	if err != nil {
		return err
	}
	f, err := b.newFeeder(in, b.rate, b.valueSize, inTurn(100_000))
	if err != nil {
		return err
	}
	if err := b.flow(ctx, f, w); err != nil {
		return err
	}
	if l.r, err = p.stop(ctx); err != nil {
		return err
	}
	cancel() // ends the watcher
	<-w.gone
	l.sent, l.q = f.sent.Load(), quantilesOf(w.latency)
	if l.q.N == 0 {
		return errors.New("nothing was measured")
	}
	ctx, cancel = context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return b.forget(ctx, app, in, out)
}

// flow lets records flow, first without and then with a watch on them, and
// waits until all have come out.
func (b *bench) flow(ctx context.Context, f *feeder, w *watcher) error {
	begin := time.Now().Add(b.warmUp)
	w.measure(begin)
	feed, stop := context.WithDeadline(ctx, begin.Add(time.Duration(b.seconds)*time.Second))
	defer stop()
	if err := f.run(feed); err != nil {
		return err
	}
	return w.complete(ctx, f.sent.Load())
}

func latencyReport(runs []*latencyRun, b *bench) string {
	var t strings.Builder
	fmt.Fprintf(&t, "%d records/s of %d bytes, %d s after %v, keys in turn. Milliseconds from the time a record was to be sent\n"+
		"until a read_committed consumer in another process than the application had it. \"latest\" has state: a store and\n"+
		"its changelog. Every record came out once. Transactions, CPU of the application and what the machine had left are of the\n"+
		"whole run.\n\n", b.rate, max(b.valueSize, stampSize), b.seconds, b.warmUp)
	tab := &table{left: 2}
	tab.add("topology", "variant", "records", "p50", "p90", "p99", "p99.9", "max", "transactions/s", "commit p50", "p99", "CPU %", "idle %")
	for _, l := range runs {
		txns, p50, p99 := "-", "-", "-"
		if l.r.Commits > 0 {
			txns = fmt.Sprintf("%.0f", float64(l.r.Commits)/l.r.Seconds)
		}
		if l.r.Commit.N > 0 {
			p50, p99 = fmt.Sprintf("%.2f", l.r.Commit.P50), fmt.Sprintf("%.2f", l.r.Commit.P99)
		}
		tab.add(l.topology, l.variant, fmt.Sprint(l.q.N),
			fmt.Sprintf("%.2f", l.q.P50), fmt.Sprintf("%.2f", l.q.P90), fmt.Sprintf("%.2f", l.q.P99),
			fmt.Sprintf("%.2f", l.q.P999), fmt.Sprintf("%.2f", l.q.Max),
			txns, p50, p99, fmt.Sprintf("%.0f", 100*l.r.CPU/l.r.Seconds), fmt.Sprintf("%.0f", l.r.idle()))
	}
	t.WriteString(tab.String() + "\n")
	t.WriteString(b.goals(latencyGoals(runs)))
	return t.String()
}

func latencyGoals(runs []*latencyRun) []goal {
	var goals []goal
	for _, l := range runs {
		if !strings.HasSuffix(l.variant, "continuous") {
			continue
		}
		goals = append(goals,
			goal{l.topology + ", continuous: p50", 5, false, l.q.P50, "ms"},
			goal{l.topology + ", continuous: p99", 20, false, l.q.P99, "ms"})
	}
	return goals
}
