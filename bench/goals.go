package main

import (
	"fmt"
	"time"
)

// A goal is a number to reach, on a real broker, with one worker and commits
// each 100 ms.
type goal struct {
	what    string
	want    float64
	atLeast bool // else at most
	got     float64
	unit    string
}

func (g goal) reached() string {
	switch {
	case g.got != g.got:
		return "not measured"
	case g.atLeast && g.got >= g.want, !g.atLeast && g.got <= g.want:
		return "yes"
	}
	return "NO"
}

// goals says which are reached, if the run was one that they are for.
func (b *bench) goals(goals []goal) string {
	if b.small || b.c.embedded != nil || b.workers != 1 || b.commit != 100*time.Millisecond {
		return "Goals are for full sizes, a real broker, one worker and commits each 100 ms: this was another run.\n"
	}
	return goalTable(goals).String()
}

func goalTable(goals []goal) *table {
	t := &table{left: 1}
	t.add("goal", "wanted", "median", "reached")
	for _, g := range goals {
		sign := "<="
		if g.atLeast {
			sign = ">="
		}
		t.add(g.what, fmt.Sprintf("%s %g %s", sign, g.want, g.unit), fmt.Sprintf("%.3g", g.got), g.reached())
	}
	return t
}

func throughputGoals(all []*series) []goal {
	ratio := func(workload, over string) float64 {
		e, o := find(all, workload, eos.name), find(all, workload, over)
		if e == nil || o == nil {
			return spreadOf(nil).Median
		}
		return spreadOf(ratios(e.rates(), o.rates())).Median
	}
	rate, cpu := spreadOf(nil).Median, spreadOf(nil).Median
	if s := find(all, "count-100k", eos.name); s != nil {
		rate, cpu = spreadOf(s.rates()).Median/1e6, spreadOf(s.cpus()).Median
	}
	goals := []goal{
		{"pass-through, exactly-once over the floor", 0.9, true, ratio("pass-through", bare.name), ""},
		{"count, 100 k keys", 1, true, rate, "M records/s"},
		{"count, 100 k keys", 0.9, false, cpu, "us CPU per record"},
	}
	for _, w := range workloads() {
		goals = append(goals, goal{w.name + ", exactly-once over at-least-once", 0.97, true, ratio(w.name, alos.name), ""})
	}
	return goals
}
