package stream

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/stream/internal/runtime"
)

type textContext = Context[string, string]

func TestProcessorSeesTombstonesOnlyIfItAsks(t *testing.T) {
	pass := func(c *textContext, r Record[string, string]) error { return c.Emit(r) }
	r := newRig(t, func(b *Builder) {
		in := b.Stream(texts)
		in.Process(pass, Name("p")).To(out)
		in.Process(pass, Tombstones()).To(out2)
	})
	send(r, texts, rec("a", "x", 1), del[string]("a", 2), unkeyed[string]("y", 3))
	expect(r, out, "a=x@1", "-=y@3")
	expect(r, out2, "a=x@1", "a=-@2", "-=y@3")
	r.dropped("p: tombstone")
}

func TestProcessChangesTheKeyAndProcessValuesDoesNot(t *testing.T) {
	subs := func(define func(in Stream[string, string])) int {
		top, err := Build(func(b *Builder) { define(b.Stream(texts)) })
		if err != nil {
			t.Fatal(err)
		}
		return len(top.graph.Subs)
	}
	if n := subs(func(in Stream[string, string]) {
		in.Process(func(*textContext, Record[string, string]) error { return nil }).GroupByKey().Count("n")
	}); n != 2 {
		t.Errorf("Process: %d sub-topologies, want 2", n)
	}
	if n := subs(func(in Stream[string, string]) {
		in.ProcessValues(func(*ValueContext[string], Record[string, string]) error { return nil }).GroupByKey().Count("n")
	}); n != 1 {
		t.Errorf("ProcessValues: %d sub-topologies, want 1", n)
	}
}

func TestEmitRefusesRecordsThatCannotBe(t *testing.T) {
	for _, bad := range []Record[string, string]{
		{Key: "a", Value: "x", Time: time.UnixMilli(1), NoValue: true},
		{Key: "a", Value: "x", Time: time.UnixMilli(1), NoKey: true},
		{Key: "a", Value: "x"},
	} {
		r := newRig(t, func(b *Builder) {
			b.Stream(texts).Process(func(c *textContext, r Record[string, string]) error {
				c.Emit(bad) // that the error is lost does not help
				return c.Emit(r)
			}, Name("p")).To(out)
		})
		var f *runtime.Failure
		if err := feed(r, texts, rec("a", "y", 1)); !errors.As(err, &f) || f.Operator != "p" || f.Op != runtime.OpFunction {
			t.Errorf("%+v: got %v", bad, err)
		}
		expect(r, out)
	}
}

func TestFailureBehindAProcessorIsNotTheProcessors(t *testing.T) {
	bad := errors.New("bad")
	for _, handle := range []func(error) error{
		func(err error) error { return err },
		func(err error) error { return fmt.Errorf("wrapped: %w", err) },
		func(error) error { return nil },
		func(error) error { return errors.New("another") },
	} {
		r := newRig(t, func(b *Builder) {
			b.Stream(texts).
				Process(func(c *textContext, r Record[string, string]) error { return handle(c.Emit(r)) }, Name("p")).
				TryMapValues(func(string) (string, error) { return "", bad }, Name("behind")).
				To(out)
		})
		var f *runtime.Failure
		if err := feed(r, texts, rec("a", "y", 1)); !errors.As(err, &f) || f.Operator != "behind" || !errors.Is(err, bad) {
			t.Errorf("got %v", err)
		}
	}
}

func TestPanicAfterEmitIsTheProcessors(t *testing.T) {
	r := newRig(t, func(b *Builder) {
		b.Stream(texts).
			Process(func(c *textContext, r Record[string, string]) error {
				if err := c.Emit(r); err != nil {
					return err
				}
				panic("after emit")
			}, Name("p")).
			MapValues(strings.ToUpper, Name("behind")).
			To(out)
	})
	var f *runtime.Failure
	if err := feed(r, texts, rec("a", "y", 1)); !errors.As(err, &f) || f.Operator != "p" || f.Stack == nil {
		t.Errorf("got %v", err)
	}
}

func TestOutputsGoWhereTheyAreSent(t *testing.T) {
	r := newRig(t, func(b *Builder) {
		refused := b.Output[string, int64]("refused")
		refused.Stream().To(intOut) // before the processor that emits to it
		b.Stream(texts).Process(func(c *textContext, r Record[string, string]) error {
			if len(r.Value) > 3 {
				return refused.Emit(c, r.WithValue(int64(len(r.Value))))
			}
			return c.Emit(r)
		}, Uses(refused), Name("p")).To(out)
	})
	send(r, texts, rec("a", "long", 1), rec("b", "ok", 2))
	expect(r, intOut, "a=4@1")
	expect(r, out, "b=ok@2")
}

func TestMistakesWithHandlesAreFoundByBuild(t *testing.T) {
	pass := func(c *textContext, r Record[string, string]) error { return c.Emit(r) }
	for name, c := range map[string]struct {
		define func(b *Builder)
		want   string
	}{
		"output used twice": {func(b *Builder) {
			o := b.Output[string, string]("o")
			b.Stream(texts).Process(pass, Uses(o))
			b.Stream(texts).Process(pass, Uses(o))
		}, `output "o" is used by process`},
		"output used by nobody": {func(b *Builder) { b.Stream(texts).To(out); b.Output[string, string]("o").Stream().To(out2) }, "nothing is connected to it"},
		"store used by nobody":  {func(b *Builder) { b.Stream(texts).To(out); b.Store("s", codec.String, codec.String) }, `no processor uses it`},
		"table without a store": {func(b *Builder) {
			table := b.Table(texts2, "t").MapValues(strings.ToUpper, Name("upper"))
			b.Stream(texts).Process(pass, Uses(table))
		}, `.Stored("name")`},
		"nil handle": {func(b *Builder) { b.Stream(texts).Process(pass, Uses(nil)) }, "nil handle"},
		"store without key": {func(b *Builder) {
			b.Stream(texts).Process(pass, Uses(b.Store("s", codec.Codec[string](nil), codec.String)))
		}, `store "s" lacks a codec`},
		"no function": {func(b *Builder) {
			var f func(*textContext, Record[string, string]) error
			b.Stream(texts).Process(f)
		}, "its function is nil"},
	} {
		if _, err := Build(c.define); err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "process_test.go:") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestStoreThatAProcessorDoesNotUseIsAPanicThatSaysSo(t *testing.T) {
	r := newRig(t, func(b *Builder) {
		s := b.Store("s", codec.String, codec.String)
		in := b.Stream(texts)
		in.Process(func(c *textContext, r Record[string, string]) error { return nil }, Uses(s))
		in.Process(func(c *textContext, r Record[string, string]) error { return s.In(c).Put("a", "b") }, Name("p")).To(out)
	})
	if err := feed(r, texts, rec("a", "y", 1)); err == nil || !strings.Contains(err.Error(), `operator "p" does not use store "s"; add it to the operator's option Uses`) {
		t.Errorf("got %v", err)
	}
}

func TestProcessorReadsTables(t *testing.T) {
	r := newRig(t, func(b *Builder) {
		table := b.Table(texts2, "t")
		b.Stream(texts).ProcessValues(func(c *ValueContext[string], r Record[string, string]) error {
			rows := table.In(c)
			all := fmt.Sprint(rows.Len())
			for row, err := range rows.Backward().All() {
				if err != nil {
					return err
				}
				all += " " + row.Key + row.Value
			}
			v, ok, err := rows.Get(r.Key)
			if err != nil {
				return err
			}
			return c.Emit(fmt.Sprint(all, " ", v, ok))
		}, Uses(table)).To(out)
	})
	send(r, texts2, rec("a", "A", 1), rec("b", "B", 1))
	send(r, texts, rec("a", "", 2), rec("c", "", 3))
	expect(r, out, "a=2 bB aA Atrue@2", "c=2 bB aA false@3")
}

func TestWhatAProcessorWritesHasTheTimeOfItsRecord(t *testing.T) {
	r := newRig(t, func(b *Builder) {
		s := b.Store("s", codec.String, codec.String)
		b.Stream(texts).Process(func(c *textContext, r Record[string, string]) error {
			if err := s.In(c).Put(r.Key, r.Value); err != nil {
				return err
			}
			for row, err := range s.In(c).Range("a", "b") {
				if err != nil {
					return err
				}
				if err := c.Emit(r.WithValue(fmt.Sprint(row.Key, row.Time.UnixMilli()))); err != nil {
					return err
				}
			}
			return nil
		}, Uses(s)).To(out)
	})
	send(r, texts, rec("a", "", 7), rec("b", "", 3))
	expect(r, out, "a=a7@7", "b=a7@3", "b=b3@3")
}

// A clerk records its life.
type clerk struct {
	log  *[]string
	s    Store[string, int64]
	when Schedule
}

func (p *clerk) Init(c *ValueContext[string]) error {
	*p.log = append(*p.log, "init "+c.ID())
	if _, ok := c.Source(); ok {
		return errors.New("there is a record in Init")
	}
	c.Schedule(p.when, func(c *ValueContext[string], now time.Time) error {
		if _, ok := c.Source(); ok {
			return errors.New("there is a record in a timer")
		}
		n, _, err := p.s.In(c).Get("a")
		*p.log = append(*p.log, fmt.Sprint("timer ", now.UnixMilli(), " ", n))
		return err
	})
	return nil
}

func (p *clerk) Process(c *ValueContext[string], r Record[string, string]) error {
	at, _ := c.Source()
	*p.log = append(*p.log, fmt.Sprint(at.Topic, "/", at.Partition, "/", at.Offset, " ", c.StreamTime().UnixMilli()))
	n, _, err := p.s.In(c).Get(r.Key)
	if err != nil {
		return err
	}
	if err := p.s.In(c).Put(r.Key, n+1); err != nil {
		return err
	}
	if err := c.EmitWith(r.Value, r.Time.Add(time.Second), Headers{{"h", nil}}); err != nil {
		return err
	}
	return c.EmitTombstone()
}

func (p *clerk) Close() error { *p.log = append(*p.log, "close"); return nil }

func TestLifeOfAProcessor(t *testing.T) {
	var log []string
	r := newRig(t, func(b *Builder) {
		s := b.Store("s", codec.String, codec.Int64)
		b.Stream(texts).ProcessValuesWith(func() *clerk {
			return &clerk{&log, s, Schedule{Every: 10 * time.Millisecond, From: time.UnixMilli(5)}}
		}, Uses(s)).To(out)
	})
	send(r, texts, rec("a", "x", 3), rec("a", "y", 6), rec("a", "z", 2))
	expect(r, out, "a=x@1003", "a=-@3", "a=y@1006", "a=-@6", "a=z@1002", "a=-@2")
	r.restart()
	send(r, texts, rec("a", "y", 7), rec("a", "y", 15))
	want := "init 0_0, texts/0/0 3, texts/0/1 6, timer 6 2, texts/0/2 6, close, init 0_0, texts/0/3 7, texts/0/4 15, timer 15 5"
	if got := strings.Join(log, ", "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestProcessValuesCannotEmitInTimers(t *testing.T) {
	r := newRig(t, func(b *Builder) {
		b.Stream(texts).ProcessValuesWith(func() *lateEmitter { return &lateEmitter{} }, Name("p")).To(out)
	})
	var f *runtime.Failure
	if err := feed(r, texts, rec("a", "x", 3)); !errors.As(err, &f) || f.Operator != "p" || !strings.Contains(err.Error(), "without a record at hand") {
		t.Errorf("got %v", err)
	}
}

type lateEmitter struct{}

func (lateEmitter) Init(c *ValueContext[string]) error {
	c.Schedule(Schedule{Every: time.Second}, func(c *ValueContext[string], _ time.Time) error {
		c.Emit("late") // that the error is lost does not help
		return nil
	})
	return nil
}

func (lateEmitter) Process(c *ValueContext[string], r Record[string, string]) error {
	return c.Emit(r.Value)
}

func TestTimerThatFailsStopsWithItsOperator(t *testing.T) {
	bad := errors.New("bad")
	r := newRig(t, func(b *Builder) {
		b.Stream(texts).ProcessWith(func() *failingTimer { return &failingTimer{bad} }, Name("p")).To(out)
	})
	var f *runtime.Failure
	if err := r.advance(time.Second); !errors.As(err, &f) || f.Operator != "p" || f.Op != runtime.OpTimer || !errors.Is(err, bad) {
		t.Errorf("got %v", err)
	}
}

type failingTimer struct{ err error }

func (p *failingTimer) Init(c *textContext) error {
	c.Schedule(Schedule{Every: time.Second, WallClock: true}, func(*textContext, time.Time) error { return p.err })
	return nil
}

func (p *failingTimer) Process(*textContext, Record[string, string]) error { return nil }

func TestTimerSetByARecordFires(t *testing.T) {
	r := newRig(t, func(b *Builder) {
		b.Stream(texts).Process(func(c *textContext, r Record[string, string]) error {
			var timer *Timer
			timer = c.Schedule(Schedule{Every: 10 * time.Millisecond, From: r.Time.Add(10 * time.Millisecond)},
				func(c *textContext, now time.Time) error {
					timer.Cancel()
					return c.Emit(rec("fired", r.Value, now.UnixMilli()))
				})
			return nil
		}).To(out)
	})
	send(r, texts, rec("a", "x", 1), rec("a", "y", 5), rec("a", "z", 12), rec("a", "w", 14))
	expect(r, out, "fired=x@12")
	send(r, texts, rec("a", "", 40))
	expect(r, out, "fired=y@40", "fired=z@40", "fired=w@40")
}

func TestScheduleWithoutAnIntervalSaysSo(t *testing.T) {
	r := newRig(t, func(b *Builder) {
		b.Stream(texts).Process(func(c *textContext, r Record[string, string]) error {
			c.Schedule(Schedule{}, func(*textContext, time.Time) error { return nil })
			return nil
		}, Name("p")).To(out)
	})
	if err := feed(r, texts, rec("a", "x", 1)); err == nil || !strings.Contains(err.Error(), `operator "p" schedules a timer every 0s`) {
		t.Errorf("got %v", err)
	}
}

func TestProcessorsDoNotAllocatePerRecord(t *testing.T) {
	r := newRig(t, func(b *Builder) {
		s := b.Store("s", codec.String, codec.Int64)
		in := b.Stream(texts)
		in.Process(func(c *textContext, r Record[string, string]) error {
			n, _, err := s.In(c).Get(r.Key)
			if err != nil {
				return err
			}
			if err := s.In(c).Put(r.Key, n+1); err != nil {
				return err
			}
			return c.Emit(r)
		}, Uses(s)).ProcessValues(func(c *ValueContext[string], r Record[string, string]) error {
			return c.Emit(r.Value)
		}).ForEach(func(string, string) error { return nil })
	})
	task := r.sorted()[0]
	k := encode(r, texts, rec("a", "x", 1))
	push := func() {
		if err := task.Process(task.in, 0, k, 1); err != nil {
			t.Fatal(err)
		}
	}
	push()
	if n := testing.AllocsPerRun(1000, push); n != 0 {
		t.Errorf("%v allocations per record", n)
	}
}
