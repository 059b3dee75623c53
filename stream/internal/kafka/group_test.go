package kafka

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/semelstream/semel/internal/seam"
	"github.com/semelstream/semel/txn"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// app is an application in a group of its own: two joined inputs and a
// repartition topic, six tasks.
type app struct {
	w     world
	b     *broker
	group string
	subs  []seam.Sub
}

func (w world) app(t testing.TB) *app {
	b := w.broker(t)
	return &app{w: w, b: b, group: uid("group"), subs: []seam.Sub{
		{Topics: []string{w.topic(t, b, 4), w.topic(t, b, 4)}, Tasks: 4, Stateful: true},
		{Topics: []string{w.topic(t, b, 2)}, Tasks: 2},
	}}
}

func (a *app) config(instance string) seam.GroupConfig {
	return seam.GroupConfig{Group: a.group, Instance: instance, Subs: a.subs}
}

func (a *app) join(t testing.TB, instance string) *member {
	return a.w.join(t, a.w.broker(t), a.config(instance), nil)
}

func TestOneMemberGetsAllTasks(t *testing.T) {
	everywhere(t, func(t *testing.T, w world) {
		a := w.app(t)
		m := a.join(t, "i1")
		m.awaitTasks(t, 6)
		if got := m.Member(); got.Group != a.group || got.Instance != "i1" || got.ID == "" || got.Generation <= 0 {
			t.Fatal(got)
		}
	})
}

func TestTasksAreHandedOverOnlyAfterDone(t *testing.T) {
	everywhere(t, func(t *testing.T, w world) {
		a := w.app(t)
		hold := make(chan struct{})
		m1 := w.join(t, w.broker(t), a.config("i1"), hold)
		m1.awaitTasks(t, 6)
		m2 := a.join(t, "i2")
		m1.await(t, "a revocation", func() bool { return len(m1.history) == 2 })
		revoked := m1.history[1].Revoked
		if len(revoked) != 3 {
			t.Fatal(revoked)
		}
		// While the tasks are not given up they are ours: commits are accepted.
		ok(t, a.b.Commit(ctx(t), m1.Member(), seam.Offsets{tp(a.subs[0].Topics[0], 0): {At: 1, Epoch: -1}}))
		time.Sleep(4 * w.session() / 15) //nolint:forbidigo // some heartbeats, in which nothing must happen
		if n := m2.changes(); n != 0 {
			t.Fatalf("the second member has %v before Done", m2.history)
		}
		close(hold)
		d := m2.awaitTasks(t, 3)
		t.Logf("handed over %v after Done", d)
		m1.awaitTasks(t, 3)
		for _, task := range revoked {
			if !m2.tasks[task] {
				t.Fatalf("%v was revoked but moved elsewhere: %v", task, m2.tasks)
			}
		}
	})
}

func TestAStaticMemberThatRestartsHasItsTasksBackAndNobodyNotices(t *testing.T) {
	everywhere(t, func(t *testing.T, w world) {
		a := w.app(t)
		m1 := a.join(t, "i1")
		m1.awaitTasks(t, 6)
		m2 := a.join(t, "i2")
		m2.awaitTasks(t, 3)
		m1.awaitTasks(t, 3)
		for _, first := range []bool{false, true} { // the leader, too
			x, y := m2, m1
			if first {
				x, y = m1, m2
			}
			before, changes := x.Member(), y.changes()
			x.Close(false)
			start := time.Now()
			z := a.join(t, x.cfg.Instance)
			z.awaitTasks(t, 3)
			t.Logf("tasks back %v after the restart", time.Since(start))
			for task := range x.tasks {
				if !z.tasks[task] {
					t.Fatalf("had %v, has %v", x.tasks, z.tasks)
				}
			}
			if y.changes() != changes {
				t.Fatalf("the other one noticed: %v", y.history)
			}
			if after := z.Member(); after.ID == before.ID {
				t.Fatalf("still %v", after)
			}
			// The former incarnation is fenced, wherever it may still live.
			err := a.b.Commit(ctx(t), before, seam.Offsets{tp(a.subs[0].Topics[0], 0): {At: 1, Epoch: -1}})
			if txn.Judge(err) != txn.OutcomeRejoin {
				t.Fatalf("a commit of the former incarnation: %v", err)
			}
			if first {
				m1 = z
			} else {
				m2 = z
			}
		}
	})
}

func TestLeavingGivesUpTheTasksAtOnce(t *testing.T) {
	everywhere(t, func(t *testing.T, w world) {
		a := w.app(t)
		m1 := a.join(t, "i1")
		m1.awaitTasks(t, 6)
		m2 := a.join(t, "i2")
		m2.awaitTasks(t, 3)
		m1.awaitTasks(t, 3)
		start := time.Now()
		m2.Close(true)
		m1.awaitTasks(t, 6)
		if d := time.Since(start); d > 4*time.Second {
			t.Fatalf("after %v: that was the session's end", d)
		}
	})
}

func TestALostMemberIsNobodyUntilItIsBack(t *testing.T) {
	everywhere(t, func(t *testing.T, w world) {
		a := w.app(t)
		g := must[seam.Group](t)(a.b.Group(ctx(t), func() seam.GroupConfig {
			c := a.config("i1")
			c.Session = w.session()
			return c
		}()))
		t.Cleanup(func() { g.Close(true) })
		offs := seam.Offsets{tp(a.subs[0].Topics[0], 0): {At: 1, Epoch: -1}}
		if err := a.b.Commit(ctx(t), g.Member(), offs); txn.Judge(err) != txn.OutcomeRejoin {
			t.Fatalf("a commit before the first assignment: %v", err)
		}
		c := must[seam.Change](t)(g.Next(ctx(t)))
		c.Done()
		ok(t, a.b.Commit(ctx(t), g.Member(), offs))
		evict(a.b, a.group, "i1")
		c = must[seam.Change](t)(g.Next(ctx(t)))
		if !c.Lost || len(c.Revoked) != 6 || len(c.Assigned) != 0 {
			t.Fatalf("%+v", c)
		}
		if m := g.Member(); m.ID != nobody {
			t.Fatalf("while the loss is not done it is %+v", m)
		}
		if err := a.b.Commit(ctx(t), g.Member(), offs); txn.Judge(err) != txn.OutcomeRejoin {
			t.Fatalf("a commit of a lost member: %v", err)
		}
		x := w.txn(t, a.b, uid("id"))
		open(t, x, rec(a.subs[1].Topics[0], 0, "x"))
		if err := x.Prepare(ctx(t), g.Member(), offs); txn.Judge(err) != txn.OutcomeRejoin {
			t.Fatalf("a transaction of a lost member: %v", err)
		}
		c.Done()
		c = must[seam.Change](t)(g.Next(ctx(t)))
		if len(c.Assigned) != 6 || c.Lost {
			t.Fatalf("%+v", c)
		}
		c.Done()
		ok(t, a.b.Commit(ctx(t), g.Member(), offs))
	})
}

// Tasks that were not given up in time go to others; until the late Done no
// commit of ours is accepted, though we are a member of the new generation.
func TestCommitsAreRefusedWhileARevocationIsOverdue(t *testing.T) {
	everywhere(t, func(t *testing.T, w world) {
		a := w.app(t)
		hold := make(chan struct{})
		m1 := w.joinPatient(t, w.broker(t), a.config("i1"), hold, time.Second)
		m1.awaitTasks(t, 6)
		m2 := a.join(t, "i2")
		m2.awaitTasks(t, 3) // without Done
		offs := seam.Offsets{tp(a.subs[0].Topics[0], 0): {At: 1, Epoch: -1}}
		if err := a.b.Commit(ctx(t), m1.Member(), offs); txn.Judge(err) != txn.OutcomeRejoin {
			t.Fatalf("a commit while overdue: %v", err)
		}
		close(hold)
		m1.awaitTasks(t, 3)
		for m := m1.Member(); m.ID == nobody; m = m1.Member() { // Done is just being called
			time.Sleep(time.Millisecond) //nolint:forbidigo // there is no signal for it
		}
		ok(t, a.b.Commit(ctx(t), m1.Member(), offs))
	})
}

func TestASecondProcessWithTheSameInstanceIsFatalForTheFirst(t *testing.T) {
	everywhere(t, func(t *testing.T, w world) {
		a := w.app(t)
		m1 := a.join(t, "i1")
		m1.awaitTasks(t, 6)
		m2 := a.join(t, "i1")
		m2.awaitTasks(t, 6)
		m1.await(t, "the fatal error", func() bool { return errors.Is(m1.err, kerr.FencedInstanceID) })
		if len(m1.tasks) != 0 || !m1.history[len(m1.history)-1].Lost {
			t.Fatalf("it still has %v", m1.tasks)
		}
	})
}

// A restarted member is given its old assignment unseen, also when it has
// another topology now.
func TestARestartWithAnotherTopologyGetsItsTasks(t *testing.T) {
	everywhere(t, func(t *testing.T, w world) {
		a := w.app(t)
		m := a.join(t, "i1")
		m.awaitTasks(t, 6)
		m.Close(false)
		a.subs = append(slices.Clone(a.subs), seam.Sub{Topics: []string{w.topic(t, a.b, 3)}, Tasks: 3})
		a.join(t, "i1").awaitTasks(t, 9)
	})
}

func TestRejoinPlansWithTheFactsOfNow(t *testing.T) {
	everywhere(t, func(t *testing.T, w world) {
		a := w.app(t)
		m1 := a.join(t, "i1")
		m1.awaitTasks(t, 6)
		workers := make(chan int, 1)
		workers <- 1
		cfg := a.config("i2")
		cfg.Facts = func() seam.Facts {
			n := <-workers
			workers <- n
			return seam.Facts{Workers: n}
		}
		m2 := w.join(t, w.broker(t), cfg, nil)
		m2.awaitTasks(t, 3)
		<-workers
		workers <- 5
		m2.Rejoin()
		m2.awaitTasks(t, 5)
		m1.awaitTasks(t, 1)
	})
}

// An open transaction holds up the committed offsets; an assignment does not
// wait for them.
func TestAnAssignmentDoesNotWaitForUnstableOffsets(t *testing.T) {
	everywhere(t, func(t *testing.T, w world) {
		a := w.app(t)
		m1 := a.join(t, "i1")
		m1.awaitTasks(t, 6)
		x := w.txn(t, a.b, uid("id"))
		open(t, x, rec(a.subs[1].Topics[0], 0, "x"))
		offs := seam.Offsets{}
		for p := range int32(4) {
			offs[tp(a.subs[0].Topics[0], p)] = seam.Offset{At: 1, Epoch: -1}
		}
		ok(t, x.Prepare(ctx(t), m1.Member(), offs))
		start := time.Now()
		m2 := a.join(t, "i2")
		m2.awaitTasks(t, 3)
		two := time.Since(start)
		start = time.Now()
		m3 := a.join(t, "i3")
		m3.awaitTasks(t, 2)
		t.Logf("second member has its tasks after %v, third after %v", two, time.Since(start))
		if two > 5*time.Second {
			t.Fatal("that is too long")
		}
	})
}

func TestGroupsThatCannotBeAssignedAreRefused(t *testing.T) {
	w := fake(t)
	b := w.broker(t)
	for _, subs := range [][]seam.Sub{
		{{Tasks: 1}},
		{{Topics: []string{"a"}}},
		{{Topics: []string{"a"}, Tasks: 1}, {Topics: []string{"a"}, Tasks: 1}},
	} {
		if _, err := b.Group(ctx(t), seam.GroupConfig{Group: "g", Subs: subs}); err == nil {
			t.Fatalf("%v was not refused", subs)
		}
	}
}

func TestAnotherProtocolInTheGroupIsFatal(t *testing.T) {
	w := fake(t)
	a := w.app(t)
	joined := make(chan struct{}, 1)
	cl := must[*kgo.Client](t)(kgo.NewClient(kgo.SeedBrokers(w.addrs...), kgo.ConsumerGroup(a.group), kgo.ConsumeTopics(a.subs[0].Topics[0]),
		kgo.OnPartitionsAssigned(func(context.Context, *kgo.Client, map[string][]int32) {
			select {
			case joined <- struct{}{}:
			default:
			}
		})))
	defer cl.Close()
	<-joined
	g := must[seam.Group](t)(a.b.Group(ctx(t), a.config("i1")))
	defer g.Close(false)
	if _, err := g.Next(ctx(t)); !errors.Is(err, kerr.InconsistentGroupProtocol) {
		t.Fatal(err)
	}
}

// The member that every broker refuses must not be the empty one: Kafka takes
// a transaction's offsets from it.
func TestNobodyIsRefusedByTheBroker(t *testing.T) {
	everywhere(t, func(t *testing.T, w world) {
		a := w.app(t)
		a.join(t, "i1").awaitTasks(t, 6)
		req := kmsg.NewPtrHeartbeatRequest()
		req.Group, req.MemberID, req.Generation = a.group, nobody, noGeneration
		resp := must[*kmsg.HeartbeatResponse](t)(req.RequestWith(ctx(t), a.b.cl))
		if err := kerr.ErrorForCode(resp.ErrorCode); txn.Judge(err) != txn.OutcomeRejoin {
			t.Fatal(err)
		}
	})
}
