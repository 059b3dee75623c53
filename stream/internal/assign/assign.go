// Package assign decides which member of the group runs which task.
//
// It is a pure function of what the members say about themselves, so that the
// group's leader on Kafka and the in-memory model come to the same plan, and
// the same facts always give the same plan. It assigns tasks, never single
// partitions: inputs that are joined travel together by construction.
package assign

import (
	"cmp"
	"math"
	"slices"

	"github.com/semelstream/semel/internal/assert"
	"github.com/semelstream/semel/internal/seam"
)

// A Member is a member of the group as the leader knows it.
type Member struct {
	ID    string // unique in the group; the order of IDs breaks ties
	Owned []seam.Task
	Facts seam.Facts // Workers below 1 counts as 1
}

// Plan gives every task of subs to exactly one of the members. The result has
// an entry for each member, its tasks in order, and is nil only if there are
// no members. The rules, the first one wins:
//
//  1. Balance: a member gets its share of all tasks, by workers, rounded down
//     or up, and so of the stateful tasks alone.
//  2. Sticky: a member keeps what it owns, as far as rule 1 lets it.
//  3. State: a task that moves goes to where its state is on disk, the
//     smallest lag first; and if a member has to give up tasks, those go first
//     whose state waits at a member with room.
//  4. Spread: the tasks of one sub-topology are spread over the members.
func Plan(members []Member, subs []seam.Sub) map[string][]seam.Task {
	if len(members) == 0 {
		return nil
	}
	p := newPlanner(members, subs)
	stateful, stateless := p.tasks(subs)
	total := len(stateful) + len(stateless)
	all := p.shares(total)

	// Stateful tasks first. A member whose rounded-up share of them is above
	// its rounded-down share of all tasks takes one of the roundings up of
	// all tasks with it, so no more such members than those may be rounded up.
	q := quota{share: p.shares(len(stateful)), tight: make([]bool, len(p.members))}
	q.left = len(stateful) - q.sum()
	q.tightLeft = total - quota{share: all}.sum()
	for i, s := range q.share {
		q.tight[i] = s.up > all[i].down
	}
	p.place(stateful, &q)

	// Stateless tasks fill up to the share of all tasks.
	q = quota{share: make([]share, len(p.members)), tight: make([]bool, len(p.members))}
	q.left, q.tightLeft = total, total
	for i := range p.members {
		n := p.members[i].count
		q.share[i] = share{max(all[i].down-n, 0), max(all[i].up-n, 0)}
		p.members[i].count = 0
		q.left -= max(all[i].down, n)
	}
	p.place(stateless, &q)
	return p.result()
}

// A share is a number of tasks that a member is due, rounded down and up.
type share struct{ down, up int }

// shares divides n tasks by workers.
func (p *planner) shares(n int) []share {
	out := make([]share, len(p.members))
	for i := range p.members {
		x := n * p.members[i].workers
		out[i] = share{x / p.workers, (x + p.workers - 1) / p.workers}
	}
	return out
}

// A quota says how many tasks of a kind each member may still be given.
type quota struct {
	share     []share
	tight     []bool // rounding up takes from tightLeft, too
	left      int    // how many members may be rounded up
	tightLeft int
}

func (q quota) sum() (n int) {
	for _, s := range q.share {
		n += s.down
	}
	return n
}

// mayRoundUp says whether member i may have more than its share rounded down.
func (q *quota) mayRoundUp(i int) bool {
	return q.share[i].up > q.share[i].down && q.left > 0 && (!q.tight[i] || q.tightLeft > 0)
}

func (q *quota) roundUp(i int) {
	q.left--
	if q.tight[i] {
		q.tightLeft--
	}
}

// member is a Member while the plan is made.
type member struct {
	*Member
	workers int
	owned   map[seam.Task]bool
	tasks   []seam.Task
	bySub   map[int32]int
	count   int // of the kind that is being placed
	limit   int // of the kind that is being placed, while keeping
}

// lag is how far the member's state of a task is behind, and MaxInt64 if it
// has none.
func (m *member) lag(t seam.Task) int64 {
	if l, ok := m.Facts.Lags[t]; ok {
		return l
	}
	return math.MaxInt64
}

type planner struct {
	members []member // by ID
	workers int      // of all members
	owner   map[seam.Task]int
}

func newPlanner(members []Member, subs []seam.Sub) *planner {
	p := &planner{members: make([]member, len(members)), owner: make(map[seam.Task]int)}
	for i := range members {
		p.members[i] = member{Member: &members[i], workers: max(1, members[i].Facts.Workers), bySub: make(map[int32]int)}
		p.workers += p.members[i].workers
	}
	slices.SortFunc(p.members, func(a, b member) int { return cmp.Compare(a.ID, b.ID) })
	for i := range p.members {
		m := &p.members[i]
		assert.That(i == 0 || m.ID != p.members[i-1].ID, "two members of the group are called %q", m.ID)
		m.owned = make(map[seam.Task]bool, len(m.Owned))
		for _, t := range m.Owned {
			if t.Sub < 0 || int(t.Sub) >= len(subs) || t.Partition < 0 || t.Partition >= subs[t.Sub].Tasks {
				continue // of an older topology
			}
			if _, ok := p.owner[t]; !ok {
				p.owner[t] = i
				m.owned[t] = true
			}
		}
	}
	return p
}

// tasks are all tasks in order.
func (p *planner) tasks(subs []seam.Sub) (stateful, stateless []seam.Task) {
	for n, s := range subs {
		for part := range s.Tasks {
			t := seam.Task{Sub: int32(n), Partition: part}
			if s.Stateful {
				stateful = append(stateful, t)
			} else {
				stateless = append(stateless, t)
			}
		}
	}
	return stateful, stateless
}

func (p *planner) give(i int, t seam.Task) {
	m := &p.members[i]
	m.tasks = append(m.tasks, t)
	m.bySub[t.Sub]++
	m.count++
}

func (p *planner) result() map[string][]seam.Task {
	out := make(map[string][]seam.Task, len(p.members))
	for i := range p.members {
		slices.SortFunc(p.members[i].tasks, seam.Task.Compare)
		out[p.members[i].ID] = p.members[i].tasks
	}
	return out
}
