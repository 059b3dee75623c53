package stream_test

import (
	"testing"
	"time"

	"github.com/semelstream/semel/internal/seam"
	"github.com/semelstream/semel/stream"
	"github.com/semelstream/semel/stream/internal/runtime"
)

func (f *failing) paused() *failing {
	f.t.Helper()
	return f.until("it is paused", func() bool { return f.app != nil && f.app.State() == runtime.Paused })
}

func TestAPausedAppCommitsWhatItHasAndProcessesNothingMore(t *testing.T) {
	f := newFailing(t).topics(1, "in", "sums")
	f.cfg.CommitInterval = time.Hour
	f.start(sums).add("a", 1)
	f.until("it is taken", func() bool { return f.app != nil && len(f.app.Tasks()) == 1 && f.app.Tasks()[0].StreamTime > 0 })
	if _, ok := f.w.Committed(failApp, seam.TP{Topic: "in"}); ok {
		t.Fatal("it is committed already")
	}
	f.app.Pause()
	f.paused().processed().want(map[string]int64{"a": 1})
	f.add("a", 2)
	f.w.Advance(2 * time.Hour)
	f.want(map[string]int64{"a": 1})
	if s := f.app.State(); s != runtime.Paused {
		t.Errorf("it is %s", s)
	}
	f.app.Resume()
	f.until("it runs", func() bool { return f.app.State() == runtime.Running })
	f.w.Advance(2 * time.Hour)
	f.processed().want(map[string]int64{"a": 3})
}

func TestAnAppThatIsPausedBeforeItRunsRestoresAndWaits(t *testing.T) {
	f := newFailing(t).topics(2, "in", "sums").start(sums).add("a", 1).processed()
	f.w.Kill(f.p)
	f.p.Disk().Wipe()
	f.app = nil
	f.add("a", 2).restart().until("it starts", func() bool { return f.app != nil })
	f.app.Pause()
	f.paused()
	f.w.Advance(time.Minute)
	f.want(map[string]int64{"a": 1})
	if n := len(f.app.Stores("sums")); n != 2 {
		t.Errorf("%d stores are open, want 2", n)
	}
	f.app.Resume()
	f.processed().want(map[string]int64{"a": 3})
}

func TestAPausedInstanceKeepsItsTasksAndGivesThemUpInOrder(t *testing.T) {
	f := newFailing(t).topics(1, "in", "sums").start(sums).add("a", 1).processed()
	f.app.Pause()
	f.paused()
	f.w.Advance(10 * time.Minute) // longer than its session
	if m := f.w.Members(failApp); len(m) != 1 {
		t.Fatalf("the members are %v", m)
	}
	// A second instance takes some of the tasks, and all in the end.
	f.w.Kill(f.p)
	f.add("a", 2)
	f.w.Advance(2 * time.Minute)
	f.restart().processed().want(map[string]int64{"a": 3})
}

func TestTimersDoNotFireInAPausedApp(t *testing.T) {
	fired := 0
	f := newFailing(t).topics(1, "in", "sums").start(func(b *stream.Builder) {
		b.Stream(failIn).ProcessValuesWith(func() *wallTicks { return &wallTicks{&fired} }).To(failSums)
	})
	f.until("it fires", func() bool { return fired > 1 })
	f.app.Pause()
	f.paused()
	was := fired
	f.w.Advance(time.Minute)
	if fired != was {
		t.Errorf("it fired %d times more", fired-was)
	}
	f.app.Resume()
	f.until("it fires again", func() bool { return fired > was })
	if fired != was+1 {
		t.Errorf("what was missed was fired %d times, want once", fired-was)
	}
}

// A wallTicks processor counts the ticks of a wall clock timer.
type wallTicks struct{ n *int }

func (p *wallTicks) Init(c *stream.ValueContext[int64]) error {
	c.Schedule(stream.Schedule{Every: time.Second, WallClock: true}, func(*stream.ValueContext[int64], time.Time) error {
		*p.n++
		return nil
	})
	return nil
}

func (p *wallTicks) Process(*stream.ValueContext[int64], stream.Record[string, int64]) error {
	return nil
}

func TestTasksSayHowFarBehindTheyAre(t *testing.T) {
	f := newFailing(t).topics(2, "in", "sums").start(sums).add("a", 1).add("a", 2).processed()
	f.w.Advance(time.Second)
	all := f.app.Tasks()
	if len(all) != 2 || all[0].ID != (seam.Task{}) || all[0].Restoring || all[1].StreamTime != runtime.NoTime {
		t.Fatalf("the tasks are %+v", all)
	}
	if lag, ok := all[0].Lag[seam.TP{Topic: "in"}]; lag != 0 || !ok || all[0].StreamTime == runtime.NoTime {
		t.Errorf("the first is %+v", all[0])
	}
}

func TestAnAppSaysItsTasksAndPauses(t *testing.T) {
	everywhere(t, func(l *live) {
		in, out := l.topic("in", 2), l.topic("sums", 2)
		l.produce(in, "a", 1)
		states := make(chan stream.State, 100)
		a, _ := l.viewed(l.sums, stream.Config{StateDir: t.TempDir(), Hooks: []stream.Hook{stateHook(states)}}, "sums")
		l.wants(out, map[string]int64{"a": 1})
		tasks := a.app.Tasks()
		if len(tasks) != 2 || tasks[0].Task != "0_0" || tasks[0].Restoring || tasks[0].StreamTime.IsZero() || len(tasks[0].Lag) != 1 {
			t.Errorf("the tasks are %+v", tasks)
		}
		a.app.Pause()
		for s := range states {
			if s == stream.Paused {
				break
			}
		}
		l.produce(in, "a", 2)
		a.app.Resume()
		for s := range states {
			if s == stream.Running {
				break
			}
		}
		l.wants(out, map[string]int64{"a": 3})
		a.stop()
		if n := len(a.app.Tasks()); n != 0 {
			t.Errorf("%d tasks are left", n)
		}
	})
}

type stateHook chan stream.State

func (h stateHook) OnState(_, to stream.State) { h <- to }
