package seamtest

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/semelstream/semel/internal/seam"
)

var groups = suite{
	{"one member gets all tasks, co-partitioned topics travel together", func(c *kase) {
		g := c.group(seam.Sub{Topics: []string{c.topic(4), c.topic(4)}, Tasks: 4, Stateful: true}, seam.Sub{Topics: []string{c.topic(2)}, Tasks: 2})
		m := c.enter(g, "a")
		m.awaitTasks("0_0 0_1 0_2 0_3 1_0 1_1")
	}},
	{"a second member gets tasks only after Done", func(c *kase) {
		g := c.group(seam.Sub{Topics: []string{c.topic(4)}, Tasks: 4, Stateful: true})
		a := c.enter(g, "a")
		a.awaitTasks("0_0 0_1 0_2 0_3")
		a.hold()
		b := c.enter(g, "b")
		c.await("a is asked to give up two tasks", func() bool { return len(a.held()) == 2 })
		c.linger()
		if n := b.count(); n != 0 {
			c.Fatalf("b has %d tasks that a has not given up", n)
		}
		c.ok(c.Broker.Commit(c.ctx, a.Member(), seam.Offsets{{Topic: g.Subs[0].Topics[0]}: {At: 1, Epoch: -1}})) // they are still a's
		a.release()
		c.await("both have two tasks", func() bool { return a.count() == 2 && b.count() == 2 })
		for t := range a.tasks {
			if b.tasks[t] {
				c.Fatalf("both have task %v", t)
			}
		}
	}},
	{"a static member that restarts keeps its tasks, and nobody notices", func(c *kase) {
		g := c.group(seam.Sub{Topics: []string{c.topic(4)}, Tasks: 4, Stateful: true})
		a, b := c.enter(g, "a"), c.enter(g, "b")
		c.await("both have two tasks", func() bool { return a.count() == 2 && b.count() == 2 })
		tasks, changes := a.list(), b.changes()
		a.Close(false)
		again := c.enter(g, "a")
		again.awaitTasks(tasks)
		if b.changes() != changes {
			c.Fatalf("b had %d changes, now %d", changes, b.changes())
		}
		c.ok(c.Broker.Commit(c.ctx, again.Member(), seam.Offsets{{Topic: g.Subs[0].Topics[0]}: {At: 1, Epoch: -1}}))
	}},
	{"the tasks of a member that is gone move when its session is over", func(c *kase) {
		g := c.group(seam.Sub{Topics: []string{c.topic(2)}, Tasks: 2})
		a, b := c.enter(g, "a"), c.enter(g, "b")
		c.await("both have a task", func() bool { return a.count() == 1 && b.count() == 1 })
		begin := c.Clock.Now()
		a.Close(false)
		b.awaitTasks("0_0 0_1")
		if took := c.Clock.Now().Sub(begin); took < c.world.Session/2 {
			c.Fatalf("they moved after %v, in a session of %v", took, c.world.Session)
		}
	}},
	{"the tasks of a member that leaves move at once", func(c *kase) {
		g := c.group(seam.Sub{Topics: []string{c.topic(2)}, Tasks: 2})
		a, b := c.enter(g, "a"), c.enter(g, "b")
		c.await("both have a task", func() bool { return a.count() == 1 && b.count() == 1 })
		begin := c.Clock.Now()
		a.Close(true)
		b.awaitTasks("0_0 0_1")
		if took := c.Clock.Now().Sub(begin); took > c.world.Session/2 {
			c.Fatalf("they moved after %v, in a session of %v", took, c.world.Session)
		}
	}},
	{"a member that was put out has lost its tasks, cannot commit, and comes back", func(c *kase) {
		if c.world.Evict == nil {
			c.Skip("this world cannot put members out")
		}
		g := c.group(seam.Sub{Topics: []string{c.topic(2)}, Tasks: 2})
		a := c.enter(g, "a")
		a.awaitTasks("0_0 0_1")
		was := a.Member()
		a.hold()
		c.world.Evict(c.Env, g.Group, "a")
		c.await("a is told that its tasks are lost", func() bool { return len(a.held()) == 2 })
		if !a.lost() {
			c.Fatal("the tasks are revoked, not lost")
		}
		for _, m := range []seam.Member{was, a.Member()} {
			err := c.Broker.Commit(c.ctx, m, seam.Offsets{{Topic: g.Subs[0].Topics[0]}: {At: 1, Epoch: -1}})
			if err == nil || !c.world.Rejoin(err) {
				c.Fatalf("a commit as %+v: %v", m, err)
			}
		}
		a.release()
		a.awaitTasks("0_0 0_1")
		c.ok(c.Broker.Commit(c.ctx, a.Member(), seam.Offsets{{Topic: g.Subs[0].Topics[0]}: {At: 1, Epoch: -1}}))
	}},
	{"Rejoin asks for the facts anew and makes a new plan", func(c *kase) {
		g := c.group(seam.Sub{Topics: []string{c.topic(2)}, Tasks: 2, Stateful: true})
		var s shared
		asked := 0
		g.Facts = func() seam.Facts { s.do(func() { asked++ }); return seam.Facts{Process: "p", Workers: 1} }
		a := c.enter(g, "a")
		a.awaitTasks("0_0 0_1")
		var before, now int
		s.do(func() { before = asked })
		generation := a.Member().Generation
		a.Rejoin()
		c.await("a new generation", func() bool {
			s.do(func() { now = asked })
			return a.Member().Generation > generation && now > before
		})
		a.awaitTasks("0_0 0_1")
	}},
	{"a topic that comes to match is added to tasks, which are given up for it, and makes new ones", func(c *kase) {
		g := c.matching(map[string]int32{"m-a": 2})
		m := c.enter(g, "a")
		m.awaitReads("0_0 m-a/0, 0_1 m-a/1")
		m.Update(withMatched(g.Subs, map[string]int32{"m-a": 2, "m-b": 3}))
		m.awaitReads("0_0 m-a/0 m-b/0, 0_1 m-a/1 m-b/1, 0_2 m-b/2")
		if n := m.again(); n != 2 {
			c.Fatalf("%d tasks were given up and taken again, want the two that read more", n)
		}
		m.Update(withMatched(g.Subs, map[string]int32{"m-a": 2, "m-b": 3})) // nothing is new
		m.Update(withMatched(g.Subs, map[string]int32{"m-a": 2}))
		m.awaitReads("0_0 m-a/0, 0_1 m-a/1")
	}},
	{"a group of which nothing matches has no tasks until something does", func(c *kase) {
		g := c.matching(nil)
		m := c.enter(g, "a")
		c.linger()
		if n := m.count(); n != 0 {
			c.Fatalf("there are %d tasks", n)
		}
		m.Update(withMatched(g.Subs, map[string]int32{"m-a": 1}))
		m.awaitReads("0_0 m-a/0")
		m.Update(withMatched(g.Subs, nil))
		m.awaitReads("")
	}},
	{"members that know different topics agree, whoever looked first", func(c *kase) {
		g := c.matching(map[string]int32{"m-a": 2})
		a, b := c.enter(g, "a"), c.enter(g, "b")
		c.await("both have a task", func() bool { return a.count() == 1 && b.count() == 1 })
		for i, first := range []*member{b, a} { // one of them leads
			matched := map[string]int32{"m-a": 2, fmt.Sprint("m-", i): 2}
			a.lookAt(withMatched(g.Subs, matched))
			b.lookAt(withMatched(g.Subs, matched))
			first.look()
			want := fmt.Sprintf("0_0 m-%d/0 m-a/0, 0_1 m-%d/1 m-a/1", i, i)
			c.await("both read "+want, func() bool {
				x, y := a.reading(), b.reading()
				return x+", "+y == want || y+", "+x == want
			})
		}
		again := c.Clock.Now()
		n := a.changes() + b.changes()
		c.linger()
		if a.changes()+b.changes() != n {
			c.Fatalf("they go on changing after %v", again)
		}
	}},
	{"Next ends with its context and after Close", func(c *kase) {
		g := c.group(seam.Sub{Topics: []string{c.topic(1)}, Tasks: 1})
		x := must[seam.Group](c)(c.Broker.Group(c.ctx, g.as("a")))
		ch := must[seam.Change](c)(x.Next(c.ctx))
		if len(ch.Assigned) != 1 {
			c.Fatalf("the first change is %+v", ch)
		}
		ch.Done()
		ctx, cancel := withCancel(c)
		c.Go("canceler", cancel)
		if _, err := x.Next(ctx); err == nil {
			c.Fatal("Next returned without an error")
		}
		x.Close(true)
		if _, err := x.Next(c.ctx); err == nil {
			c.Fatal("Next after Close returned without an error")
		}
	}},
}

// A groupSpec is a group's config without the instance.
type groupSpec struct{ seam.GroupConfig }

func (g *groupSpec) as(instance string) seam.GroupConfig {
	cfg := g.GroupConfig
	cfg.Instance = instance
	return cfg
}

func (c *kase) group(subs ...seam.Sub) *groupSpec {
	return &groupSpec{seam.GroupConfig{Group: c.name("group"), Subs: subs, Session: c.world.Session}}
}

// shared guards what goroutines of a case have in common. No call into the
// seams is made inside of do.
type shared struct{ mu sync.Mutex }

func (s *shared) do(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// A member takes changes as they come, in a goroutine of its own.
type member struct {
	seam.Group
	shared
	c        *kase
	group    string
	instance string
	tasks    map[seam.Task]bool
	reads    map[seam.Task][]seam.TP
	retaken  int        // tasks given up and taken in one change
	found    []seam.Sub // what it finds when it looks; nil is nothing new
	n        int        // changes
	wait     bool
	pending  *seam.Change // waits for release
	err      error
}

// join makes the only member of a new group and waits until it has its task.
func (c *kase) join() *member {
	c.Helper()
	return c.joinGroup(c.name("group"), "a")
}

func (c *kase) joinGroup(group, instance string) *member {
	c.Helper()
	g := c.group(seam.Sub{Topics: []string{c.topic(1)}, Tasks: 1})
	g.Group = group
	m := c.enter(g, instance)
	m.awaitTasks("0_0")
	return m
}

// prefix is what transactional ids of the group's members begin with.
func (m *member) prefix() string { return m.group + "-" }

// txnID is that of the member's worker.
func (m *member) txnID() string { return m.prefix() + m.instance + "-0" }

// matching is a group of one sub-topology with a pattern. What matches need not
// be there: nobody fetches.
func (c *kase) matching(matched map[string]int32) *groupSpec {
	g := c.group(withMatched([]seam.Sub{{Patterns: []*regexp.Regexp{regexp.MustCompile("^m-.*$")}}}, matched)...)
	g.Anchor = c.topic(1)
	return g
}

// withMatched are subs of which the first has these matches.
func withMatched(subs []seam.Sub, matched map[string]int32) []seam.Sub {
	subs = slices.Clone(subs)
	subs[0].Matched, subs[0].Tasks = matched, 0
	for _, n := range matched {
		subs[0].Tasks = max(subs[0].Tasks, n)
	}
	return subs
}

func (c *kase) enter(g *groupSpec, instance string) *member {
	c.Helper()
	m := &member{c: c, group: g.Group, instance: instance, tasks: map[seam.Task]bool{}, reads: map[seam.Task][]seam.TP{}}
	cfg := g.as(instance)
	cfg.Look = func() { c.Go("look "+instance, m.look) }
	m.Group = must[seam.Group](c)(c.Broker.Group(c.ctx, cfg))
	c.Go("member "+instance, m.run)
	c.ends = append(c.ends, func() { m.Close(true) })
	return m
}

func (m *member) run() {
	for {
		ch, err := m.Next(context.WithoutCancel(m.c.ctx))
		m.do(func() {
			m.n++
			m.err = err
		})
		if err != nil {
			return
		}
		hold := false
		m.do(func() {
			if hold = m.wait && len(ch.Revoked) > 0; hold {
				m.pending = &ch
			}
		})
		if !hold {
			m.obey(ch)
		}
		for hold {
			_ = m.c.Clock.Sleep(context.WithoutCancel(m.c.ctx), 1e6)
			m.do(func() { hold = m.pending != nil })
		}
	}
}

func (m *member) obey(ch seam.Change) {
	m.do(func() {
		for _, t := range ch.Revoked {
			delete(m.tasks, t)
			delete(m.reads, t)
		}
		for _, t := range ch.Assigned {
			if slices.Contains(ch.Revoked, t) {
				m.retaken++
			}
			m.tasks[t] = true
			m.reads[t] = ch.Matched[t]
		}
	})
	ch.Done()
}

// lookAt is what look finds from now on.
func (m *member) lookAt(subs []seam.Sub) { m.do(func() { m.found = subs }) }

func (m *member) look() {
	var subs []seam.Sub
	m.do(func() { subs = m.found })
	if subs != nil {
		m.Update(subs)
	}
}

func (m *member) again() (n int) {
	m.do(func() { n = m.retaken })
	return n
}

// reading is what each task reads of topics that match.
func (m *member) reading() string {
	var s []string
	m.do(func() {
		for t := range m.tasks {
			text := t.String()
			for _, tp := range m.reads[t] {
				text += " " + tp.String()
			}
			s = append(s, text)
		}
	})
	slices.Sort(s)
	return strings.Join(s, ", ")
}

func (m *member) awaitReads(want string) {
	m.c.Helper()
	m.c.await(fmt.Sprintf("%s reads %s", m.instance, want), func() bool { return m.reading() == want })
}

// hold makes the member keep what it is asked to give up, until release.
func (m *member) hold() { m.do(func() { m.wait = true }) }

func (m *member) release() {
	var ch *seam.Change
	m.do(func() { m.wait, ch = false, m.pending })
	if ch != nil {
		m.obey(*ch)
	}
	m.do(func() { m.pending = nil })
}

// held is what the member should give up and has not.
func (m *member) held() (tasks []seam.Task) {
	m.do(func() {
		if m.pending != nil {
			tasks = m.pending.Revoked
		}
	})
	return tasks
}

func (m *member) lost() (lost bool) {
	m.do(func() { lost = m.pending != nil && m.pending.Lost })
	return lost
}

func (m *member) count() (n int) {
	m.do(func() { n = len(m.tasks) })
	return n
}

func (m *member) changes() (n int) {
	m.do(func() { n = m.n })
	return n
}

// list is the member's tasks as a sentence.
func (m *member) list() (s string) {
	m.do(func() {
		var ts []seam.Task
		for t := range m.tasks {
			ts = append(ts, t)
		}
		slices.SortFunc(ts, seam.Task.Compare)
		for i, t := range ts {
			if i > 0 {
				s += " "
			}
			s += t.String()
		}
	})
	return s
}

func (m *member) awaitTasks(want string) {
	m.c.Helper()
	m.c.await(fmt.Sprintf("%s has the tasks %s", m.instance, want), func() bool { return m.list() == want })
}
