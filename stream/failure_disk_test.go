package stream_test

import (
	"errors"
	"testing"
	"time"

	"github.com/semelstream/semel/internal/seam"
	"github.com/semelstream/semel/state"
	"github.com/semelstream/semel/stream"
	"github.com/semelstream/semel/stream/internal/runtime"
)

var errNoSpace = errors.New("no space left on device")

func TestAFullDiskHoldsUpNothingAndIsWrittenWhenItHasRoomAgain(t *testing.T) {
	f := newFailing(t).topics(1, "in", "sums").start(sums).add("a", 1).processed()
	f.p.Disk().Fail(errNoSpace)
	f.add("a", 2).processed()
	f.until("it says so", func() bool { return f.logs.has("it stays in memory and will be tried again") })
	f.add("a", 4).processed().want(map[string]int64{"a": 7})
	if !f.logs.has("no space left on device") || !f.logs.has("0_0") {
		t.Error("the log names neither reason nor task")
	}
	f.p.Disk().Fail(nil)
	f.until("the rows are on the disk", func() bool { return stored(f) == 7 })
	f.w.Kill(f.p)
	f.restart().add("a", 8).processed().want(map[string]int64{"a": 15})
}

// stored is the sum of "a" on the disk.
func stored(f *failing) int64 {
	f.t.Helper()
	e := f.p.Disk().Read("0_0")
	db, err := state.Open(e, state.Options{Stores: []state.Spec{{Name: "sums"}}})
	if err != nil {
		f.t.Fatal(err)
	}
	kv, err := state.OpenKV(db, "sums", failIn.Key, failIn.Value)
	if err != nil {
		f.t.Fatal(err)
	}
	v, _, _, err := kv.Get("a")
	if err != nil {
		f.t.Fatal(err)
	}
	return v
}

func TestADiskThatStaysFullStopsTheAppBeforeMemoryIsFullAndLosesNothing(t *testing.T) {
	f := newFailing(t).topics(1, "in", "sums")
	f.cfg.StoreBytes = 64
	f.start(sums).add("a", 1).processed()
	f.p.Disk().Fail(errNoSpace)
	for i := range 40 {
		f.add(string(rune('b'+i)), 1)
	}
	f.stops("SEMEL-DISK", "task 0_0", "no space left on device", "make room", "nothing is lost")
	f.p.Disk().Fail(nil)
	f.restart().processed()
	if got := f.sums(); len(got) != 41 {
		t.Errorf("%d sums, want 41: %v", len(got), got)
	}
}

func TestADiskThatIsFullWhenATaskOpensIsAnErrorWithTheReason(t *testing.T) {
	f := newFailing(t).topics(1, "in", "sums").start(sums).add("a", 1).processed()
	f.w.Kill(f.p)
	f.p.Disk().Fail(errNoSpace)
	f.add("a", 2).restart().stops("SEMEL-STATE", "task 0_0", "no space left on device")
	f.p.Disk().Fail(nil)
	f.restart().processed().want(map[string]int64{"a": 3})
}

func TestADiskThatFillsUpDuringARestoreIsTriedAgain(t *testing.T) {
	f := newFailing(t).topics(1, "in", "sums").start(sums)
	for i := range 20 {
		f.add(string(rune('a'+i)), 1).processed()
	}
	f.w.Kill(f.p)
	f.p.Disk().Wipe()
	f.restart().until("it restores", func() bool { return f.logs.has("no local state") })
	f.p.Disk().Fail(errNoSpace)
	f.until("the restore fails", func() bool { return f.logs.has("no space left on device") })
	f.p.Disk().Fail(nil)
	if f.p.Alive() {
		f.add("a", 2).processed()
	} else {
		f.restart().add("a", 2).processed()
	}
	if got := f.sums(); got["a"] != 3 || len(got) != 20 {
		t.Errorf("sums are %v", got)
	}
}

// bad is a disk whose reads find corruption.
type bad struct {
	state.Engine
	on *bool
}

func (b bad) Get(key []byte, use func([]byte) error) (bool, error) {
	if *b.on {
		return false, state.ErrCorrupt
	}
	return b.Engine.Get(key, use)
}

func TestCorruptionFoundAtARecordMovesTheStateAsideAndGoesOn(t *testing.T) {
	for _, policy := range []stream.ErrorPolicy{nil, stream.Skip, stream.DeadLetter("bad")} {
		on := false
		f := newFailing(t).topics(1, "in", "sums", "bad")
		if policy != nil {
			f.policy(policy)
		}
		f.start(sums).add("a", 1).processed()
		f.w.Advance(time.Second)
		f.w.Kill(f.p) // so that rows are read from the disk
		f.wrap = func(e state.Engine) state.Engine {
			f.wrap = nil // what comes in its place is sound
			return bad{e, &on}
		}
		former := f.app
		f.restart().until("it runs", func() bool { return f.app != former && f.app.State() == runtime.Running })
		on = true
		f.add("a", 2).processed().want(map[string]int64{"a": 3})
		if len(f.quar) != 1 || f.quar[0] != "0_0" {
			t.Errorf("moved aside: %v, want 0_0 once", f.quar)
		}
		if !f.logs.has("moved aside and is rebuilt from the changelogs") {
			t.Error("the log does not tell of it")
		}
		if n := len(f.w.Read(seam.TP{Topic: "bad"}, 0)); n > 0 {
			t.Errorf("%d records were taken for bad ones", n)
		}
	}
}

func TestAClockThatIsSetBackHoldsUpNeitherCommitsNorTimers(t *testing.T) {
	var back time.Duration
	f := newFailing(t).topics(1, "in", "sums", "ticks")
	f.clock = func(c seam.Clock) seam.Clock { return shifted{c, &back} }
	f.start(func(b *stream.Builder) {
		sums(b)
		b.Stream(failIn).ProcessWith(func() *ticking { return &ticking{} }).To(stream.NewTopic("ticks", failIn.Key, failIn.Value))
	})
	f.add("a", 1).processed()
	f.w.Advance(3 * time.Second)
	before := len(f.w.Read(seam.TP{Topic: "ticks"}, 0))
	f.add("a", 2)
	f.w.Advance(10 * time.Millisecond) // the transaction is open
	back = time.Hour
	began := f.w.Now()
	f.processed().want(map[string]int64{"a": 3})
	if d := f.w.Now().Sub(began); d > 5*time.Second {
		t.Errorf("the commit took %v", d)
	}
	f.w.Advance(3 * time.Second)
	f.add("b", 1).processed()
	if n := len(f.w.Read(seam.TP{Topic: "ticks"}, 0)); n < before+2 {
		t.Errorf("%d ticks before the clock was set back, %d in 3 s after it", before, n-before)
	}
	back = 0 // and forward again
	f.add("a", 4).processed().want(map[string]int64{"a": 7, "b": 1})
}

// shifted is a clock that somebody sets.
type shifted struct {
	seam.Clock
	back *time.Duration
}

func (s shifted) Now() time.Time { return s.Clock.Now().Add(-*s.back) }

type ticking struct{}

func (*ticking) Init(c *stream.Context[string, int64]) error {
	c.Schedule(stream.Schedule{Every: time.Second, WallClock: true}, func(c *stream.Context[string, int64], now time.Time) error {
		return c.Emit(stream.Record[string, int64]{Key: "tick", Value: 1, Time: now})
	})
	return nil
}

func (*ticking) Process(*stream.Context[string, int64], stream.Record[string, int64]) error {
	return nil
}
