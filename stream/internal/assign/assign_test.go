package assign

import (
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"testing"

	"github.com/semelstream/semel/internal/seam"
	"pgregory.net/rapid"
)

type group struct {
	members []Member
	subs    []seam.Sub
}

func drawSubs(t *rapid.T) []seam.Sub {
	n := rapid.IntRange(1, 4).Draw(t, "subs")
	subs := make([]seam.Sub, n)
	for i := range subs {
		subs[i] = seam.Sub{
			Topics:   []string{fmt.Sprint("in", i)},
			Tasks:    rapid.Int32Range(1, 12).Draw(t, "tasks"),
			Stateful: rapid.Bool().Draw(t, "stateful"),
		}
	}
	return subs
}

func tasksOf(subs []seam.Sub) (all []seam.Task) {
	for n, s := range subs {
		for p := range s.Tasks {
			all = append(all, seam.Task{Sub: int32(n), Partition: p})
		}
	}
	return all
}

func drawMember(t *rapid.T, id string, subs []seam.Sub) Member {
	m := Member{ID: id, Facts: seam.Facts{Workers: rapid.IntRange(0, 4).Draw(t, "workers"), Lags: map[seam.Task]int64{}}}
	for _, task := range tasksOf(subs) {
		if subs[task.Sub].Stateful && rapid.IntRange(0, 3).Draw(t, "has") == 0 {
			m.Facts.Lags[task] = rapid.Int64Range(0, 100).Draw(t, "lag")
		}
	}
	return m
}

// drawGroup is any group, owners included: some tasks without an owner, some
// claimed twice, some of a topology that is no more.
func drawGroup(t *rapid.T) group {
	g := group{subs: drawSubs(t)}
	for i := range rapid.IntRange(1, 6).Draw(t, "members") {
		m := drawMember(t, fmt.Sprint("m", i), g.subs)
		for _, task := range tasksOf(g.subs) {
			if rapid.IntRange(0, 2).Draw(t, "owns") == 0 {
				m.Owned = append(m.Owned, task)
			}
		}
		if rapid.IntRange(0, 4).Draw(t, "old") == 0 {
			m.Owned = append(m.Owned, seam.Task{Sub: 9, Partition: 1}, seam.Task{Sub: 0, Partition: 99})
		}
		g.members = append(g.members, m)
	}
	return g
}

func (g group) owning(plan map[string][]seam.Task) group {
	ms := slices.Clone(g.members)
	for i := range ms {
		ms[i].Owned = slices.Clone(plan[ms[i].ID])
	}
	return group{ms, g.subs}
}

func (g group) plan() map[string][]seam.Task { return Plan(g.members, g.subs) }

func TestEveryTaskIsAssignedExactlyOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := drawGroup(t)
		var got []seam.Task
		plan := g.plan()
		for _, ts := range plan {
			if !slices.IsSortedFunc(ts, seam.Task.Compare) {
				t.Fatalf("not in order: %v", ts)
			}
			got = append(got, ts...)
		}
		slices.SortFunc(got, seam.Task.Compare)
		if want := tasksOf(g.subs); !slices.Equal(got, want) {
			t.Fatalf("assigned %v, want %v", got, want)
		}
		if len(plan) != len(g.members) {
			t.Fatalf("%d entries for %d members", len(plan), len(g.members))
		}
	})
}

func TestSharesOfAllAndOfStatefulTasksAreRoundedDownOrUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := drawGroup(t)
		workers := 0
		for _, m := range g.members {
			workers += max(1, m.Facts.Workers)
		}
		plan := g.plan()
		check := func(kind string, is func(seam.Task) bool) {
			total := 0
			for _, task := range tasksOf(g.subs) {
				if is(task) {
					total++
				}
			}
			for _, m := range g.members {
				n := 0
				for _, task := range plan[m.ID] {
					if is(task) {
						n++
					}
				}
				due := float64(total*max(1, m.Facts.Workers)) / float64(workers)
				if float64(n) < math.Floor(due) || float64(n) > math.Ceil(due) {
					t.Fatalf("%s: %s has %d tasks, is due %.2f\n%v", m.ID, kind, n, due, plan)
				}
			}
		}
		check("all", func(seam.Task) bool { return true })
		check("stateful", func(task seam.Task) bool { return g.subs[task.Sub].Stateful })
	})
}

func TestSameMembersMoveNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := drawGroup(t)
		plan := g.plan()
		if again := g.owning(plan).plan(); !reflect.DeepEqual(plan, again) {
			t.Fatalf("first %v\nsecond %v", plan, again)
		}
	})
}

func TestOrderOfMembersAndClaimsDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := drawGroup(t)
		claimed := map[seam.Task]bool{}
		for i := range g.members { // a task claimed twice is decided by order
			g.members[i].Owned = slices.DeleteFunc(g.members[i].Owned, func(task seam.Task) bool {
				had := claimed[task]
				claimed[task] = true
				return had
			})
		}
		want := g.plan()
		ms := rapid.Permutation(g.members).Draw(t, "order")
		for i := range ms {
			ms[i].Owned = rapid.Permutation(ms[i].Owned).Draw(t, "claims")
		}
		if got := Plan(ms, g.subs); !reflect.DeepEqual(got, want) {
			t.Fatalf("got %v, want %v", got, want)
		}
	})
}

// A member that comes takes its share, and nothing moves between those that
// were there before.
func TestNewMemberMovesOnlyItsShare(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := drawGroup(t)
		stateful := rapid.Bool().Draw(t, "all stateful")
		for i := range g.subs {
			g.subs[i].Stateful = stateful
		}
		for i := range g.members {
			g.members[i].Facts.Workers = 2
		}
		before := g.owning(g.plan())
		comes := drawMember(t, "new", g.subs)
		comes.Facts.Workers = 2
		plan := Plan(append(slices.Clone(before.members), comes), g.subs)
		for _, m := range before.members {
			for _, task := range plan[m.ID] {
				if !slices.Contains(m.Owned, task) {
					t.Fatalf("%v moved to %s, which was there before:\n%v", task, m.ID, plan)
				}
			}
		}
	})
}

// Whatever the weights and the kinds: who gives up a task gets no other one
// of that kind for it, so that no more moves than the balance demands.
func TestNoSwaps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := drawGroup(t)
		first := map[seam.Task]string{}
		for _, m := range g.members {
			for _, task := range m.Owned {
				if _, ok := first[task]; !ok {
					first[task] = m.ID
				}
			}
		}
		plan := g.plan()
		type side struct {
			member   string
			stateful bool
		}
		lost, got := map[side]bool{}, map[side]bool{}
		for _, task := range tasksOf(g.subs) {
			kind := g.subs[task.Sub].Stateful
			for _, m := range g.members {
				had, has := first[task] == m.ID, slices.Contains(plan[m.ID], task)
				lost[side{m.ID, kind}] = lost[side{m.ID, kind}] || had && !has
				got[side{m.ID, kind}] = got[side{m.ID, kind}] || !had && has
			}
		}
		for s := range lost {
			if lost[s] && got[s] {
				t.Fatalf("%s gave up tasks and got others: %v", s.member, plan)
			}
		}
	})
}

// What a member had to give up goes to its new owner at the next plan, when
// it owns it no more: a cooperative group settles after two plans.
func TestTwoPhasesSettle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := drawGroup(t)
		claimed := map[seam.Task]bool{}
		for i := range g.members {
			g.members[i].Owned = slices.DeleteFunc(g.members[i].Owned, func(task seam.Task) bool {
				had := claimed[task]
				claimed[task] = true
				return had
			})
		}
		plan := g.plan()
		second := group{slices.Clone(g.members), g.subs}
		gaveUp := map[seam.Task]string{}
		for i, m := range g.members {
			second.members[i].Owned = nil
			for _, task := range plan[m.ID] {
				if !claimed[task] || slices.Contains(m.Owned, task) {
					second.members[i].Owned = append(second.members[i].Owned, task)
				}
			}
			for _, task := range m.Owned {
				if !slices.Contains(plan[m.ID], task) {
					gaveUp[task] = m.ID
				}
			}
		}
		settled := second.plan()
		for id, tasks := range settled {
			for _, task := range tasks {
				if gaveUp[task] == id {
					t.Fatalf("%v came back to %s\nfirst %v\nsecond %v", task, id, plan, settled)
				}
			}
		}
		for _, m := range second.members {
			for _, task := range m.Owned {
				if !slices.Contains(settled[m.ID], task) {
					t.Fatalf("%v left %s\nfirst %v\nsecond %v", task, m.ID, plan, settled)
				}
			}
		}
	})
}

func TestTasksGoWhereTheirStateIs(t *testing.T) {
	subs := []seam.Sub{{Topics: []string{"a"}, Tasks: 4, Stateful: true}}
	task := func(p int32) seam.Task { return seam.Task{Partition: p} }
	members := []Member{
		{ID: "a", Facts: seam.Facts{Lags: map[seam.Task]int64{task(3): 5, task(1): 7, task(0): 100}}},
		{ID: "b", Facts: seam.Facts{Lags: map[seam.Task]int64{task(0): 3, task(2): 0, task(3): 50}}},
	}
	want := map[string][]seam.Task{"a": {task(1), task(3)}, "b": {task(0), task(2)}}
	if got := Plan(members, subs); !reflect.DeepEqual(got, want) {
		t.Fatalf("got %v, want %v", got, want)
	}
}

// A member that left and comes back gets the very tasks whose state it has.
func TestGivesUpWhatWaitsElsewhere(t *testing.T) {
	subs := []seam.Sub{{Topics: []string{"a"}, Tasks: 6, Stateful: true}}
	back := Member{ID: "b", Facts: seam.Facts{Lags: map[seam.Task]int64{}}}
	for _, p := range []int32{1, 2, 4} {
		back.Facts.Lags[seam.Task{Partition: p}] = int64(p)
	}
	got := Plan([]Member{{ID: "a", Owned: tasksOf(subs)}, back}, subs)
	want := map[string][]seam.Task{"a": {{Partition: 0}, {Partition: 3}, {Partition: 5}}, "b": {{Partition: 1}, {Partition: 2}, {Partition: 4}}}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("got %v, want %v", got, want)
	}
}

func TestEachSubTopologyIsSpread(t *testing.T) {
	subs := []seam.Sub{{Topics: []string{"a"}, Tasks: 6}, {Topics: []string{"b"}, Tasks: 6}, {Topics: []string{"c"}, Tasks: 3}}
	plan := Plan([]Member{{ID: "a"}, {ID: "b"}, {ID: "c"}}, subs)
	for _, id := range slices.Sorted(maps.Keys(plan)) {
		n := map[int32]int{}
		for _, task := range plan[id] {
			n[task.Sub]++
		}
		if n[0] != 2 || n[1] != 2 || n[2] != 1 {
			t.Fatalf("%s has %v of each sub-topology", id, n)
		}
	}
}

func TestNoMembersNoPlan(t *testing.T) {
	if got := Plan(nil, []seam.Sub{{Topics: []string{"a"}, Tasks: 1}}); got != nil {
		t.Fatalf("got %v", got)
	}
}

func BenchmarkPlan(b *testing.B) {
	subs := []seam.Sub{{Topics: []string{"a"}, Tasks: 1000, Stateful: true}, {Topics: []string{"b"}, Tasks: 1000}}
	members := make([]Member, 50)
	for i := range members {
		members[i].ID = fmt.Sprint("m", i)
	}
	for b.Loop() {
		Plan(members, subs)
	}
}
