package model

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/semelstream/semel/internal/seam"
	"github.com/semelstream/semel/stream/internal/assign"
	"github.com/twmb/franz-go/pkg/kerr"
)

// A group is a consumer group with static members whose leader assigns tasks.
//
// A task has a new owner only after the old one gave it up, by a heartbeat
// that no longer lists it, or is no member any more. A plan is made when
// somebody joins, leaves, is timed out or asks for one, and it makes a new
// generation; a member learns of it by its next heartbeat and is then of that
// generation. A known instance that comes back gets its tasks back, and
// nobody else notices, unless it has another topology: the tasks are then other
// ones, and it asks for a plan at once, as a real member does.
type group struct {
	b          *broker
	name       string
	generation int32
	members    []*member // by instance
	subs       []seam.Sub
	offs       seam.Offsets
	offsRecord map[seam.TP]int64
}

type member struct {
	id, instance string
	generation   int32
	facts        seam.Facts
	target       []seam.Task // what the plan gives it
	owned        []seam.Task // what it was told and has not given up
	seq          int         // of its last heartbeat: an older one is late
	session      int64
	seen         int64
	keeps        bool  // it has what it should give up
	overdue      int64 // when that is no longer waited for
}

func (b *broker) group(name string) *group {
	g := b.groups[name]
	if g == nil {
		g = &group{b: b, name: name, offs: seam.Offsets{}, offsRecord: map[seam.TP]int64{}}
		b.groups[name] = g
	}
	return g
}

func (g *group) byID(id string) *member {
	i := slices.IndexFunc(g.members, func(m *member) bool { return m.id == id })
	if i < 0 {
		return nil
	}
	return g.members[i]
}

func (g *group) byInstance(instance string) *member {
	i := slices.IndexFunc(g.members, func(m *member) bool { return m.instance == instance })
	if i < 0 {
		return nil
	}
	return g.members[i]
}

// who finds the member and says why not if it is none.
func (g *group) who(id, instance string) (*member, error) {
	if m := g.byID(id); m != nil {
		if instance != "" && m.instance != instance {
			return nil, kerr.UnknownMemberID
		}
		return m, nil
	}
	if instance != "" && g.byInstance(instance) != nil {
		return nil, kerr.FencedInstanceID
	}
	return nil, kerr.UnknownMemberID
}

// fence refuses a commit by anybody but a member of its generation.
func (b *broker) fence(m seam.Member) error {
	g := b.groups[m.Group]
	if g == nil {
		return kerr.IllegalGeneration
	}
	x, err := g.who(m.ID, m.Instance)
	if err != nil {
		return err
	}
	if x.generation != m.Generation || m.Generation < 0 {
		return kerr.IllegalGeneration
	}
	return nil
}

// join makes a member, with an id that nobody had before. A known instance
// replaces its former self at once and silently.
func (b *broker) join(cfg seam.GroupConfig, facts seam.Facts) (id string) {
	g := b.group(cfg.Group)
	b.nextID++
	id = fmt.Sprintf("%s-%d", cfg.Instance, b.nextID)
	if m := g.byInstance(cfg.Instance); m != nil {
		m.id, m.generation, m.owned, m.seq, m.keeps = id, -1, nil, 0, false
		m.session = int64(cfg.Session)
		g.saw(m)
		if !sameSubs(g.subs, cfg.Subs) {
			m.facts, g.subs = facts, cfg.Subs
			g.plan()
		}
		return id
	}
	m := &member{id: id, instance: cfg.Instance, generation: -1, facts: facts, session: int64(cfg.Session)}
	g.members = append(g.members, m)
	slices.SortFunc(g.members, func(a, b *member) int { return cmp.Compare(a.instance, b.instance) })
	g.subs = cfg.Subs
	g.saw(m)
	g.plan()
	return id
}

func sameSubs(a, b []seam.Sub) bool {
	return slices.EqualFunc(a, b, func(x, y seam.Sub) bool {
		return x.Tasks == y.Tasks && x.Stateful == y.Stateful && slices.Equal(x.Topics, y.Topics) && maps.Equal(x.Matched, y.Matched)
	})
}

func (g *group) saw(m *member) {
	m.seen = g.b.now
	g.b.alarm(m.seen + m.session + 1)
}

// A beat is a heartbeat: what the member owns, its facts if they may be new,
// and whether it asks for a new plan.
type beat struct {
	group, id, instance string
	seq                 int
	owns                []seam.Task
	facts               *seam.Facts
	subs                []seam.Sub // that it found since its last one; nil if they are as before
	rejoin              bool
}

// heartbeat answers with the member's generation and the tasks that it should
// own now: those of its plan that nobody else has.
//
// A real group's leader decides what tasks read. Here it is whoever has looked
// last.
func (b *broker) heartbeat(h beat) (generation int32, tasks []seam.Task, err error) {
	g := b.group(h.group)
	m, err := g.who(h.id, h.instance)
	if err != nil {
		return 0, nil, err
	}
	if h.seq <= m.seq { // late: the member has said something newer
		return 0, nil, kerr.RebalanceInProgress
	}
	m.seq = h.seq
	g.saw(m)
	if h.facts != nil {
		m.facts = *h.facts
	}
	if h.subs != nil && !sameSubs(g.subs, h.subs) {
		g.subs = h.subs
		g.plan()
	} else if h.rejoin {
		g.plan()
	}
	m.owned = slices.Clone(h.owns)
	m.generation = g.generation
	for _, t := range m.target {
		if g.free(t, m) {
			tasks = append(tasks, t)
			if !slices.Contains(m.owned, t) {
				m.owned = append(m.owned, t)
			}
		}
	}
	g.watch(m)
	return m.generation, tasks, nil
}

// matched are the partitions of topics that match which the tasks read.
func (b *broker) matched(group string, tasks []seam.Task) map[seam.Task][]seam.TP {
	g, out := b.group(group), map[seam.Task][]seam.TP{}
	for _, t := range tasks {
		if int(t.Sub) < len(g.subs) && len(g.subs[t.Sub].Patterns) > 0 {
			out[t] = g.subs[t.Sub].MatchedAt(t.Partition)
		}
	}
	return out
}

// free says that nobody but m holds t.
func (g *group) free(t seam.Task, m *member) bool {
	return !slices.ContainsFunc(g.members, func(o *member) bool { return o != m && slices.Contains(o.owned, t) })
}

// watch notes until when m may keep tasks that are planned for others.
func (g *group) watch(m *member) {
	kept := m.keeps
	m.keeps = slices.ContainsFunc(m.owned, func(t seam.Task) bool { return !slices.Contains(m.target, t) })
	if m.keeps && !kept {
		m.overdue = g.b.now + g.b.rebalance
		g.b.alarm(m.overdue + 1)
	}
}

func (b *broker) leave(name, instance string) {
	g := b.group(name)
	g.remove(func(m *member) bool { return m.instance == instance })
}

func (g *group) tick() {
	now := g.b.now
	g.remove(func(m *member) bool {
		return now > m.seen+m.session || m.keeps && now > m.overdue
	})
	for _, m := range g.members {
		g.b.alarm(m.seen + m.session + 1)
		if m.keeps {
			g.b.alarm(m.overdue + 1)
		}
	}
}

func (g *group) remove(which func(*member) bool) {
	n := len(g.members)
	g.members = slices.DeleteFunc(g.members, which)
	if len(g.members) != n {
		g.plan()
	}
}

func (g *group) plan() {
	g.generation++
	ms := make([]assign.Member, len(g.members))
	for i, m := range g.members {
		ms[i] = assign.Member{ID: m.instance, Owned: m.target, Facts: m.facts}
	}
	targets := assign.Plan(ms, g.subs)
	for _, m := range g.members {
		m.target = targets[m.instance]
		g.watch(m)
	}
}
