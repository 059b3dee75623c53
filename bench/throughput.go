package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"time"
)

// A variant is one way to do a workload.
type variant struct {
	name  string
	set   func(*spec)
	check check   // instead of its workload's
	more  int64   // records beside the source's
	src   *source // instead of its workload's
}

var (
	eos  = variant{name: "exactly-once", set: func(s *spec) { s.Kind = kindApp }}
	alos = variant{name: "at-least-once", set: func(s *spec) { s.Kind, s.AtLeastOnce = kindApp, true }}
	bare = variant{name: kindFloor, set: func(s *spec) { s.Kind = kindFloor }}
)

// source is what the variant drains of a workload with this source.
func (v variant) source(src *source) *source {
	if v.src != nil {
		return v.src
	}
	return src
}

// A workload is a topology on a source, done in several variants.
type workload struct {
	name     string
	topology string
	variants []variant
	check    check
	load     func(ctx context.Context, b *bench, topic string) (*source, error)
	source   string // name of the source; workloads may share one
}

// workloads are all of them, in the order of the report.
func workloads() []workload {
	keyed := func(next func() uint64) func(context.Context, *bench, string) (*source, error) {
		return func(ctx context.Context, b *bench, topic string) (*source, error) {
			return b.c.loadKeys(ctx, topic, b.records, b.valueSize, next)
		}
	}
	pair := []variant{eos, alos}
	return []workload{
		{"pass-through", "pass-through", []variant{
			bare,
			{name: kindFloorTxn, set: func(s *spec) { s.Kind = kindFloorTxn }},
			{name: kindFloorSession, set: func(s *spec) { s.Kind = kindFloorSession }},
			eos, alos,
		}, checkCopies, keyed(uniform(100_000)), "uniform-100k"},
		{"count-100k", "count", pair, checkCounts, keyed(uniform(100_000)), "uniform-100k"},
		{"count-1m", "count", pair, checkCounts, keyed(uniform(1_000_000)), "uniform-1m"},
		{"count-zipf", "count", pair, checkCounts, keyed(zipf(1_000_000)), "zipf-1m"},
		{"words", "words", pair, checkCounts, func(ctx context.Context, b *bench, topic string) (*source, error) {
			lines, err := goSource(ctx, b.lines)
			if err != nil {
				return nil, err
			}
			return b.c.loadText(ctx, topic, b.lines, lines)
		}, "text"},
	}
}

// A series is the results of one variant, one for each round.
type series struct {
	workload, variant string
	src               *source
	results           []*result
}

// of reads one number off each result.
func (s *series) of(f func(*result) float64) []float64 {
	var out []float64
	for _, r := range s.results {
		out = append(out, f(r))
	}
	return out
}

// throughput drains loaded topics. In each round every variant runs once, in
// turn forwards and backwards, so that a drift of the machine touches all of
// them alike.
func (b *bench) throughput(ctx context.Context) error {
	sources := map[string]*source{}
	var all []*series
	wanted := slices.DeleteFunc(workloads(), func(w workload) bool { return !b.wants(w.name) })
	for i, w := range wanted {
		w.variants = slices.DeleteFunc(slices.Clone(w.variants), func(v variant) bool { return !lists(b.variants, v.name) })
		src := sources[w.source]
		if src == nil {
			var err error
			b.say("loading %s", w.source)
			if src, err = w.load(ctx, b, b.name(w.source)); err != nil {
				return err
			}
			sources[w.source] = src
		}
		got, err := b.rounds(ctx, w, src)
		if err != nil {
			return fmt.Errorf("%s: %w", w.name, err)
		}
		all = append(all, got...)
		later := func(l workload) bool { return l.source == w.source }
		if !slices.ContainsFunc(wanted[i+1:], later) {
			if err := b.c.deleteTopics(ctx, src.topic); err != nil {
				return err
			}
		}
	}
	if len(all) == 0 {
		return fmt.Errorf("no workload is named %q with a variant of %q", b.only, b.variants)
	}
	return b.write("throughput", throughputReport(all, b))
}

func (b *bench) rounds(ctx context.Context, w workload, src *source) ([]*series, error) {
	var all []*series
	for _, v := range w.variants {
		all = append(all, &series{workload: w.name, variant: v.name, src: v.source(src)})
	}
	if b.warm {
		b.say("%s: warming up", w.name)
		for i, v := range w.variants {
			if _, err := b.drain(ctx, w, v, all[i].src); err != nil {
				return nil, fmt.Errorf("%s: %w", v.name, err)
			}
		}
	}
	for round := range b.pairs {
		for _, i := range order(len(w.variants), round) {
			r, err := b.drain(ctx, w, w.variants[i], all[i].src)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", w.variants[i].name, err)
			}
			all[i].results = append(all[i].results, r)
			b.say("%s", runLine(all[i], r, round))
		}
	}
	return all, nil
}

// order is forwards in even rounds and backwards in odd ones: ABBA.
func order(n, round int) []int {
	var is []int
	for i := range n {
		is = append(is, i)
	}
	if round%2 == 1 {
		slices.Reverse(is)
	}
	return is
}

// drain is one run: all of the source through a fresh application, and a look
// at its output.
func (b *bench) drain(ctx context.Context, w workload, v variant, src *source) (*result, error) {
	ctx, cancel := context.WithTimeout(ctx, b.patience)
	defer cancel()
	app := b.name(w.name)
	out := app + "-out"
	if err := b.c.makeTopic(ctx, out); err != nil {
		return nil, err
	}
	s := spec{
		Topology: w.topology, Brokers: b.c.brokers, App: app, In: src.topic, Out: out, Dir: filepath.Join(b.dir, app),
		Workers: b.workers, Commit: b.commit, Linger: 5 * time.Millisecond,
	}
	v.set(&s)
	s.Records = src.units
	if s.Kind == kindApp || s.Kind == kindPeer {
		s.Records = src.records + v.more
	}
	s.CPUProfile, s.MemProfile = profile(b.cpuProfile, w.name, v.name), profile(b.memProfile, w.name, v.name)
	p, err := startWarm(ctx, s)
	if err != nil {
		return nil, err
	}
	r, err := p.result(ctx)
	if err == nil {
		err = r.sound()
	}
	if err == nil {
		check := w.check
		if v.check != nil {
			check = v.check
		}
		err = check(ctx, b.c, out, src)
	}
	if err != nil {
		return nil, err
	}
	return r, b.forget(ctx, app, out)
}

// sound says whether a result is of a run as it should be.
func (r *result) sound() error {
	switch {
	case r.Unsteady:
		return fmt.Errorf("more was committed than there is")
	case r.Records <= 0 || r.Seconds <= 0:
		return fmt.Errorf("nothing was measured: %d records in %v s", r.Records, r.Seconds)
	}
	return nil
}

// profile is the file of a variant's profile, or nothing; a later run replaces
// an earlier one's.
func profile(prefix, workload, variant string) string {
	if prefix == "" {
		return ""
	}
	return fmt.Sprintf("%s-%s-%s.pprof", prefix, workload, variant)
}
