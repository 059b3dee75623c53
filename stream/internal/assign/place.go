package assign

import (
	"cmp"
	"slices"

	"github.com/semelstream/semel/internal/assert"
	"github.com/semelstream/semel/internal/seam"
)

// place gives tasks of one kind to members within the quota: first everybody
// keeps, then state decides, then load.
func (p *planner) place(tasks []seam.Task, q *quota) {
	free := p.keep(tasks, q)
	free = p.byState(free, q)
	for _, t := range free {
		i := p.leastLoaded(t, q)
		assert.That(i >= 0, "no member has room for task %v", t)
		p.take(i, t, q)
	}
}

// room says whether member i may be given one more.
func (p *planner) room(i int, q *quota) bool {
	n, s := p.members[i].count, q.share[i]
	return n < s.down || n == s.down && q.mayRoundUp(i)
}

func (p *planner) take(i int, t seam.Task, q *quota) {
	if p.members[i].count == q.share[i].down {
		q.roundUp(i)
	}
	p.give(i, t)
}

// keep leaves members what they own, up to their limits, and returns the rest.
func (p *planner) keep(tasks []seam.Task, q *quota) (free []seam.Task) {
	owned := make([][]seam.Task, len(p.members))
	for _, t := range tasks {
		if i, ok := p.owner[t]; ok {
			owned[i] = append(owned[i], t)
		} else {
			free = append(free, t)
		}
	}
	p.limits(owned, q)
	for i := range p.members {
		keep := owned[i]
		if limit := p.members[i].limit; len(keep) > limit {
			p.sortByWorth(i, keep, owned)
			free = append(free, keep[limit:]...)
			keep = keep[:limit]
		}
		for _, t := range keep {
			p.give(i, t)
		}
	}
	slices.SortFunc(free, seam.Task.Compare)
	return free
}

// limits says how much each member may keep. Who owns more than its share
// rounded down is rounded up as long as that is possible; those first whose
// rounding up takes from one budget only, then those who own most.
func (p *planner) limits(owned [][]seam.Task, q *quota) {
	var want []int
	for i := range p.members {
		p.members[i].limit = q.share[i].down
		if len(owned[i]) > q.share[i].down {
			want = append(want, i)
		}
	}
	slices.SortStableFunc(want, func(a, b int) int {
		if q.tight[a] != q.tight[b] {
			if q.tight[a] {
				return 1
			}
			return -1
		}
		return cmp.Compare(len(owned[b]), len(owned[a]))
	})
	for _, i := range want {
		if q.mayRoundUp(i) {
			q.roundUp(i)
			p.members[i].limit++
		}
	}
}

// sortByWorth sorts the tasks of member i by how much it is worth to keep
// them: last those whose state waits at a member that will have room, then
// those whose own state is furthest behind.
func (p *planner) sortByWorth(i int, tasks []seam.Task, owned [][]seam.Task) {
	elsewhere := make(map[seam.Task]int64, len(tasks))
	for _, t := range tasks {
		best := int64(-1)
		for j := range p.members {
			if j == i || len(owned[j]) >= p.members[j].limit {
				continue
			}
			if l, ok := p.members[j].Facts.Lags[t]; ok && (best < 0 || l < best) {
				best = l
			}
		}
		elsewhere[t] = best
	}
	m := &p.members[i]
	slices.SortFunc(tasks, func(a, b seam.Task) int {
		ea, eb := elsewhere[a], elsewhere[b]
		switch {
		case ea < 0 && eb >= 0:
			return -1
		case ea >= 0 && eb < 0:
			return 1
		}
		return cmp.Or(cmp.Compare(eb, ea), cmp.Compare(m.lag(a), m.lag(b)), a.Compare(b))
	})
}

// byState gives tasks to members that have their state, the smallest lag
// first, and returns the rest.
func (p *planner) byState(tasks []seam.Task, q *quota) (free []seam.Task) {
	type copyOf struct {
		lag    int64
		task   seam.Task
		member int
	}
	var copies []copyOf
	for _, t := range tasks {
		for i := range p.members {
			if l, ok := p.members[i].Facts.Lags[t]; ok {
				copies = append(copies, copyOf{l, t, i})
			}
		}
	}
	slices.SortFunc(copies, func(a, b copyOf) int {
		return cmp.Or(cmp.Compare(a.lag, b.lag), a.task.Compare(b.task), cmp.Compare(a.member, b.member))
	})
	given := make(map[seam.Task]bool)
	for _, c := range copies {
		if !given[c.task] && p.room(c.member, q) {
			p.take(c.member, c.task, q)
			given[c.task] = true
		}
	}
	for _, t := range tasks {
		if !given[t] {
			free = append(free, t)
		}
	}
	return free
}

// leastLoaded is the member with room that has the fewest tasks of t's
// sub-topology, then the fewest tasks, both by worker; -1 if none has room.
func (p *planner) leastLoaded(t seam.Task, q *quota) int {
	best := -1
	for i := range p.members {
		if !p.room(i, q) {
			continue
		}
		if best < 0 || p.lighter(i, best, t.Sub) {
			best = i
		}
	}
	return best
}

func (p *planner) lighter(i, j int, sub int32) bool {
	a, b := &p.members[i], &p.members[j]
	return cmp.Or(
		cmp.Compare(a.bySub[sub]*b.workers, b.bySub[sub]*a.workers),
		cmp.Compare(len(a.tasks)*b.workers, len(b.tasks)*a.workers),
	) < 0
}
