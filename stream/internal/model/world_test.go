package model

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/semelstream/semel/internal/seam"
	"github.com/semelstream/semel/state"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/zap"
)

func TestAKillAtAStopComesBeforeWhatFollows(t *testing.T) {
	w := New(Config{})
	defer w.Stop()
	var did []string
	p := w.Start("p", func(env seam.Env, _ *Disk) error {
		defer func() { did = append(did, "deferred") }()
		env.Go("other", func() {
			for env.Clock.Sleep(context.Background(), time.Millisecond) == nil {
				did = append(did, "other")
			}
		})
		if err := env.Clock.Sleep(context.Background(), 3*time.Millisecond); err != nil {
			return err
		}
		env.Stops.At("here")
		did = append(did, "after")
		env.Stops.At("there")
		did = append(did, "never")
		return nil
	})
	w.KillAt(p, "there")
	w.Advance(10 * time.Millisecond)
	if p.Alive() || !slices.Contains(did, "other") || !slices.Contains(did, "after") || slices.Contains(did, "never") {
		t.Fatalf("did %v", did)
	}
	if n := len(did); did[n-1] != "deferred" {
		t.Fatalf("something goes on after the crash: %v", did)
	}
	p.Restart()
	w.Advance(time.Second)
	if p.Alive() || p.Err() != nil || !slices.Contains(did, "never") {
		t.Fatalf("the second life: %v, did %v", p.Err(), did)
	}
}

func TestTheWorldRestartsWhoDied(t *testing.T) {
	w := New(Config{Restart: true, Seed: 4})
	defer w.Stop()
	lives := 0
	p := w.Start("p", func(env seam.Env, _ *Disk) error {
		lives++
		if lives == 3 {
			return nil // an end in peace
		}
		return errors.New("again")
	})
	w.Advance(time.Hour)
	if lives != 3 || p.Alive() || w.Stats().Exits != 3 {
		t.Fatalf("%d lives, %+v", lives, w.Stats())
	}
	if w.Step() {
		t.Fatal("something happens in an empty world")
	}
}

func TestAFrozenMemberIsTimedOutAndHasLostItsTasks(t *testing.T) {
	w := New(Config{Trace: true})
	defer w.Stop()
	w.CreateTopic("t", 2, nil)
	type news struct {
		who string
		seam.Change
		member seam.Member
	}
	var got []news
	start := func(name string) *Process {
		return w.Start(name, func(env seam.Env, _ *Disk) error {
			ctx := context.Background()
			g, err := env.Broker.Group(ctx, seam.GroupConfig{Group: "g", Instance: name, Subs: []seam.Sub{{Topics: []string{"t"}, Tasks: 2}}})
			for err == nil {
				var ch seam.Change
				if ch, err = g.Next(ctx); err == nil {
					got = append(got, news{name, ch, g.Member()})
					ch.Done()
				}
			}
			return err
		})
	}
	a, b := start("a"), start("b")
	owns := func(n int) func() bool {
		return func() bool {
			g := w.broker.group("g")
			return len(g.members) == 2 && len(g.members[0].owned) == n && len(g.members[1].owned) == n && w.Idle()
		}
	}
	if !w.RunUntil(owns(1), time.Minute) {
		t.Fatalf("not one task each: %v", got)
	}
	got = nil
	w.Freeze(a, 20*time.Second)
	w.Advance(15 * time.Second)
	if len(got) != 1 || got[0].who != "b" || len(got[0].Assigned) != 1 {
		t.Fatalf("while a was frozen: %+v", got)
	}
	w.Advance(10 * time.Second)
	if len(got) < 2 || got[1].who != "a" || !got[1].Lost || len(got[1].Revoked) != 1 {
		t.Fatalf("after a went on: %+v", got)
	}
	if err := w.broker.fence(got[1].member); err == nil {
		t.Fatal("a member with a Lost change under way may commit")
	}
	if !w.RunUntil(owns(1), time.Minute) {
		t.Fatalf("not one task each again: %+v", got)
	}
	if !a.Alive() || !b.Alive() {
		t.Fatal("somebody died")
	}
}

func TestACrashKeepsAPrefixOfWhatWasWritten(t *testing.T) {
	kept := map[int]bool{}
	for seed := range uint64(50) {
		w := New(Config{Seed: seed})
		p := w.Start("p", func(env seam.Env, disk *Disk) error {
			e, err := disk.Open("s")
			for i := byte(0); i < 6 && err == nil; i++ {
				var b state.Batch
				b.Set([]byte{i}, []byte{i})
				b.Set([]byte("last"), []byte{i})
				if err = e.Write(&b); err == nil && i == 1 {
					err = e.Flush()
				}
			}
			if _, twice := disk.Open("s"); !errors.Is(twice, state.ErrInUse) {
				return fmt.Errorf("opened twice: %v", twice)
			}
			env.Stops.At("written")
			return err
		})
		w.KillAt(p, "written")
		w.Advance(time.Second)
		if p.Err() != nil {
			t.Fatal(p.Err())
		}
		e, n, last := p.Disk().Read("s"), 0, -1
		for i := range byte(6) {
			if ok, _ := e.Get([]byte{i}, func([]byte) error { return nil }); ok {
				n = int(i) + 1
			}
		}
		e.Get([]byte("last"), func(v []byte) error { last = int(v[0]); return nil })
		if n < 2 || last != n-1 {
			t.Fatalf("seed %d: %d batches are left, the last is %d", seed, n, last)
		}
		kept[n] = true
		w.Stop()
	}
	if len(kept) != 5 {
		t.Errorf("not every prefix was seen: %v", kept)
	}
}

func TestADiskFailsWhenItIsTold(t *testing.T) {
	w := New(Config{})
	defer w.Stop()
	full := errors.New("disk is full")
	p := w.Start("p", func(env seam.Env, disk *Disk) error {
		e, err := disk.Open("s")
		if err != nil {
			return err
		}
		disk.Fail(full)
		var b state.Batch
		b.Set([]byte("k"), nil)
		if err := e.Write(&b); !errors.Is(err, full) {
			return fmt.Errorf("Write: %v", err)
		}
		if err := e.Flush(); !errors.Is(err, full) {
			return fmt.Errorf("Flush: %v", err)
		}
		disk.Fail(nil)
		return errors.Join(e.Write(&b), e.Close())
	})
	w.Advance(time.Second)
	if p.Err() != nil || p.Alive() {
		t.Fatal(p.Err())
	}
}

func TestAPanicNamesTheSeedAndThePlace(t *testing.T) {
	w := New(Config{Seed: 77})
	w.Start("p", func(env seam.Env, _ *Disk) error {
		env.Go("reckless", func() { panic("oh") })
		return env.Clock.Sleep(context.Background(), time.Hour)
	})
	defer func() {
		s := fmt.Sprint(recover())
		for _, want := range []string{"seed 77", "p/reckless", "oh", "TestAPanicNamesTheSeedAndThePlace"} {
			if !strings.Contains(s, want) {
				t.Errorf("the panic does not say %q: %s", want, s)
			}
		}
	}()
	w.Advance(time.Second)
}

func TestTwoGoroutinesInOneConsumerAreFound(t *testing.T) {
	w := New(Config{})
	w.CreateTopic("t", 1, nil)
	w.Start("p", func(env seam.Env, _ *Disk) error {
		ctx := context.Background()
		c, err := env.Broker.Consumer(ctx)
		if err != nil {
			return err
		}
		c.Assign(seam.TP{Topic: "t"}, 0)
		env.Go("second", func() { c.Poll(ctx, 1, time.Second) })
		_, err = c.Poll(ctx, 1, time.Second)
		return err
	})
	defer func() {
		if s := fmt.Sprint(recover()); !strings.Contains(s, "p/second") || !strings.Contains(s, "p/main") {
			t.Errorf("recovered %q", s)
		}
	}()
	w.Advance(time.Minute)
	t.Error("nobody complained")
}

func TestLogsAreInTheTrace(t *testing.T) {
	w := New(Config{Trace: true})
	w.Start("p", func(env seam.Env, _ *Disk) error {
		env.Log.With(zap.String("worker", "w1")).Warn("odd", zap.Int("n", 3))
		return nil
	})
	w.Advance(time.Second)
	if s := strings.Join(w.Trace(), "\n"); !strings.Contains(s, "p warn: odd worker=w1 n=3") {
		t.Error(s)
	}
}

// echo commits each record before it reads the next.
func echo(w *World) *Process {
	return w.Start("p", func(env seam.Env, _ *Disk) error {
		ctx := context.Background()
		x, err := env.Broker.Txn(ctx, "x")
		if err != nil {
			return err
		}
		in, out := seam.TP{Topic: "in"}, seam.TP{Topic: "out"}
		x.Assign(in, 0)
		for {
			batches, err := x.Poll(ctx, 100, time.Hour)
			if err != nil {
				return err
			}
			for _, b := range batches {
				if err := x.Add(ctx, []seam.TP{out}); err != nil {
					return err
				}
				for _, r := range b.Records {
					x.Produce([]*kgo.Record{{Topic: "out", Key: r.Key, Value: r.Value}})
				}
				if err := x.Prepare(ctx, seam.Member{}, nil); err != nil {
					return err
				}
				if err := x.End(ctx, true); err != nil {
					return err
				}
			}
		}
	})
}

func TestAnInstantWorldHasAnsweredWhenItIsIdle(t *testing.T) {
	w := New(Config{Instant: true})
	defer w.Stop()
	w.CreateTopic("in", 1, nil)
	w.CreateTopic("out", 1, nil)
	p := echo(w)
	for i := range 10 {
		v := fmt.Append(nil, i)
		w.Produce(seam.TP{Topic: "in"}, nil, v, time.Time{})
		w.RunUntil(w.Idle, time.Second)
		out := w.Read(seam.TP{Topic: "out"}, 0)
		if len(out) != i+1 || !bytes.Equal(out[i].Value, v) {
			t.Fatalf("input %d: %d outputs", i, len(out))
		}
	}
	if w.Elapsed() != 0 || !p.Alive() {
		t.Fatalf("it took %v", w.Elapsed())
	}
}

func BenchmarkInstantRecordAndCommit(b *testing.B) {
	w := New(Config{Instant: true})
	defer w.Stop()
	w.CreateTopic("in", 1, nil)
	w.CreateTopic("out", 1, nil)
	echo(w)
	key, value := []byte("key"), bytes.Repeat([]byte("v"), 100)
	b.ReportAllocs()
	for b.Loop() {
		w.Produce(seam.TP{Topic: "in"}, key, value, time.Time{})
		w.RunUntil(w.Idle, time.Second)
	}
}
