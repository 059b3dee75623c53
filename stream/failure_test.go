package stream_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/internal/seam"
	"github.com/semelstream/semel/state"
	"github.com/semelstream/semel/stream"
	"github.com/semelstream/semel/stream/internal/bridge"
	"github.com/semelstream/semel/stream/internal/model"
	"github.com/semelstream/semel/stream/internal/runtime"
)

// The tests of this file and its siblings are of bad input and of failures:
// each has a clear error, loses nothing, and goes on by itself where the cause
// goes away by itself.

var (
	failIn   = stream.NewTopic("in", codec.String, codec.Int64)
	failSums = stream.NewTopic("sums", codec.String, codec.Int64)
)

// sums adds up the values of each key; a value below zero fails the function,
// and one of a million panics in it.
func sums(b *stream.Builder) {
	b.Stream(failIn).
		GroupByKey().
		TryUpdate("sums", func(_ string, v, sum int64, _ bool) (int64, bool, error) {
			switch {
			case v < 0:
				return 0, false, errors.New("no negative values")
			case v == 1_000_000:
				panic("a million")
			}
			return sum + v, true, nil
		}, stream.Name("add")).
		To(failSums)
}

// A failing is an application in a modelled cluster that something happens to.
type failing struct {
	t     *testing.T
	w     *model.World
	p     *model.Process
	logs  *logs
	clock func(seam.Clock) seam.Clock // changes the process's clock
	cfg   runtime.Config
	app   *runtime.App
	wrap  func(state.Engine) state.Engine // changes an engine that is opened
	quar  []string                        // what was moved aside
}

const failApp = "app"

// newFailing makes the cluster; start starts the application.
func newFailing(t *testing.T) *failing {
	f := &failing{t: t, w: model.New(model.Config{Seed: 1}), logs: newLogs(), cfg: runtime.Config{
		App: failApp, Instance: "one", Workers: 1, CommitInterval: 50 * time.Millisecond,
		StoreInterval: 100 * time.Millisecond, FlushInterval: 200 * time.Millisecond,
	}}
	t.Cleanup(f.w.Stop)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the log:\n%s", f.logs)
		}
	})
	return f
}

func (f *failing) topics(partitions int32, names ...string) *failing {
	for _, n := range names {
		f.w.CreateTopic(n, partitions, nil)
	}
	return f
}

func (f *failing) policy(p stream.ErrorPolicy) *failing {
	f.cfg.Policy = bridge.Policy(p, failApp)
	return f
}

func (f *failing) program(define func(*stream.Builder)) runtime.Program {
	f.t.Helper()
	topology, err := stream.Build(define)
	if err != nil {
		f.t.Fatal(err)
	}
	return bridge.Program(topology, failApp)
}

// start starts define on an empty disk.
func (f *failing) start(define func(*stream.Builder)) *failing {
	f.t.Helper()
	prog := f.program(define)
	f.p = f.w.Start("one", func(env seam.Env, disk *model.Disk) error { return f.main(prog, env, disk) })
	return f
}

// instead starts another topology in the place of the one that ran, on its
// disk.
func (f *failing) instead(define func(*stream.Builder)) *failing {
	f.t.Helper()
	old, prog := f.p.Disk(), f.program(define)
	f.p = f.w.Start("one", func(env seam.Env, _ *model.Disk) error { return f.main(prog, env, old) })
	return f
}

func (f *failing) main(prog runtime.Program, env seam.Env, disk *model.Disk) error {
	env.Log = f.logs.logger()
	if f.clock != nil {
		env.Clock = f.clock(env.Clock)
	}
	f.app = runtime.New(runtime.Env{Env: env, Stores: failStores{f, disk}}, prog, f.cfg)
	return stream.PublicError(failApp, f.app.Run(context.Background()))
}

type failStores struct {
	f    *failing
	disk *model.Disk
}

func (s failStores) Open(t seam.Task, _ bool) (state.Engine, error) {
	e, err := s.disk.Open(t.String())
	if err == nil && s.f.wrap != nil {
		e = s.f.wrap(e)
	}
	return e, err
}

func (s failStores) Quarantine(t seam.Task) (string, error) {
	s.f.quar = append(s.f.quar, t.String())
	return t.String() + ".corrupt-1", s.disk.Remove(t.String())
}

// put sends bytes.
func (f *failing) put(topic string, key, value []byte, headers ...kgo.RecordHeader) *failing {
	f.t.Helper()
	if _, err := f.w.Produce(seam.TP{Topic: topic}, key, value, time.Time{}, headers...); err != nil {
		f.t.Fatal(err)
	}
	return f
}

// add sends a value of failIn.
func (f *failing) add(key string, value int64) *failing {
	f.t.Helper()
	b, _ := codec.Int64.Append(nil, value)
	return f.put("in", []byte(key), b)
}

// until turns the world until cond holds.
func (f *failing) until(what string, cond func() bool) *failing {
	f.t.Helper()
	if !f.w.RunUntil(cond, 2*time.Minute) {
		f.t.Fatalf("never: %s; the app is alive: %v, its error: %v", what, f.p.Alive(), f.p.Err())
	}
	return f
}

// processed waits until all of in is committed.
func (f *failing) processed() *failing {
	f.t.Helper()
	return f.until("all is processed", func() bool {
		n := f.w.Topics("in")["in"].Partitions
		for p := range n {
			tp := seam.TP{Topic: "in", Partition: p}
			if o, ok := f.w.Committed(failApp, tp); f.w.End(tp) > 0 && (!ok || o.At < f.w.End(tp)) {
				return false
			}
		}
		return f.w.Settled()
	})
}

// stops waits until the app has stopped by itself, with an error that has all
// of the parts.
func (f *failing) stops(parts ...string) *failing {
	f.t.Helper()
	f.until("it stops", func() bool { return !f.p.Alive() })
	hasParts(f.t, f.p.Err(), parts...)
	return f
}

func hasParts(t *testing.T, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error; it should have %q", parts)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the error does not say %q:\n%v", part, err)
		}
	}
}

// sums are the results as a read_committed reader folds them.
func (f *failing) sums() map[string]int64 { return f.fold("sums") }

func (f *failing) fold(topic string) map[string]int64 {
	f.t.Helper()
	out := map[string]int64{}
	for p := range f.w.Topics(topic)[topic].Partitions {
		for _, r := range f.w.Read(seam.TP{Topic: topic, Partition: p}, 0) {
			v, err := codec.Int64.Decode(r.Value)
			if err != nil {
				f.t.Fatal(err)
			}
			out[string(r.Key)] = v
		}
	}
	return out
}

// want checks the results, and that the changelog has the same.
func (f *failing) want(want map[string]int64) *failing {
	f.t.Helper()
	if got := f.sums(); !maps.Equal(got, want) {
		f.t.Errorf("sums are %v, want %v", got, want)
	}
	if got := f.fold(failApp + "-sums-changelog"); !maps.Equal(got, want) {
		f.t.Errorf("the changelog folds to %v, want %v", got, want)
	}
	return f
}

// restart starts the process again on its disk.
func (f *failing) restart() *failing {
	f.p.Restart()
	return f
}

// logs are all lines of a logger, as text.
type logs struct {
	mu    sync.Mutex
	b     bytes.Buffer
	added chan struct{} // closed and replaced at each line
}

func newLogs() *logs { return &logs{added: make(chan struct{})} }

func (l *logs) logger() *zap.Logger {
	enc := zapcore.NewConsoleEncoder(zap.NewDevelopmentEncoderConfig())
	return zap.New(zapcore.NewCore(enc, l, zapcore.DebugLevel))
}

func (l *logs) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.added)
	l.added = make(chan struct{})
	if testing.Verbose() && os.Getenv("KLOG") != "" {
		os.Stderr.Write(b)
	}
	return l.b.Write(b)
}

func (l *logs) Sync() error { return nil }

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func (l *logs) has(text string) bool { return strings.Contains(l.String(), text) }

// await waits for a line.
func (l *logs) await(t *testing.T, text string, limit time.Duration) {
	t.Helper()
	end := time.After(limit)
	for {
		l.mu.Lock()
		found, added := strings.Contains(l.b.String(), text), l.added
		l.mu.Unlock()
		if found {
			return
		}
		select {
		case <-added:
		case <-end:
			t.Fatalf("the log does not say %q in %v", text, limit)
		}
	}
}

// --- bad records

func TestARecordThatDoesNotDecodeStopsTheAppAndNothingBeforeItIsLost(t *testing.T) {
	f := newFailing(t).topics(1, "in", "sums").start(sums)
	f.add("a", 1).add("a", 2).put("in", []byte("a"), []byte("three")).add("a", 4)
	f.stops("SEMEL-DECODE", "task 0_0", "in/0 at offset 2", "value", "mend the codec", "OnError").until("the last commit's markers are written", f.w.Settled)
	var failure *stream.Failure
	if !errors.As(f.p.Err(), &failure) || failure.Op != stream.OpDecode || failure.Offset != 2 {
		t.Errorf("the error is %#v", failure)
	}
	f.want(map[string]int64{"a": 3})
	// It is met again, with a policy.
	f.policy(stream.Skip).restart().processed().want(map[string]int64{"a": 7})
	if n := f.app.Dropped("failed"); n != 1 {
		t.Errorf("%d dropped, want 1", n)
	}
}

func TestAFunctionThatFailsOrPanicsNamesOperatorRecordAndReason(t *testing.T) {
	for _, c := range []struct {
		value int64
		parts []string
	}{
		{-1, []string{"SEMEL-FUNCTION", `"add"`, "task 0_0", "in/0 at offset 1", "no negative values", "mend the function"}},
		{1_000_000, []string{"SEMEL-FUNCTION", `"add"`, "in/0 at offset 1", "panic: a million"}},
	} {
		f := newFailing(t).topics(1, "in", "sums", "bad").start(sums)
		f.add("a", 1).add("a", c.value).add("b", 5)
		f.stops(c.parts...).until("the last commit's markers are written", f.w.Settled).want(map[string]int64{"a": 1})
		f.policy(stream.DeadLetter("bad")).restart().processed().want(map[string]int64{"a": 1, "b": 5})
		bad := f.w.Read(seam.TP{Topic: "bad"}, 0)
		if len(bad) != 1 {
			t.Fatalf("%d dead letters, want 1", len(bad))
		}
		if d, err := stream.ReadDeadLetter(bad[0]); err != nil || d.Operator != "add" || d.Offset != 1 || string(d.Key) != "a" {
			t.Errorf("the dead letter is %+v, %v", d, err)
		}
	}
}

func TestATimerThatFailsStopsTheAppWhateverTheTopicOfItsPolicy(t *testing.T) {
	define := func(b *stream.Builder) {
		b.Stream(failIn).ProcessWith(func() *failingTimer { return &failingTimer{} }, stream.Name("watch")).To(failSums)
	}
	f := newFailing(t).topics(1, "in", "sums", "bad").policy(stream.DeadLetter("bad")).start(define)
	f.stops("SEMEL-TIMER", `"watch"`, "task 0_0", "the timer fails")
	f.policy(stream.Skip).restart().add("a", 1).processed()
	f.until("a timer failed again", func() bool { return f.app.Dropped("failed") > 0 })
	if got := f.sums(); !maps.Equal(got, map[string]int64{"a": 1}) {
		t.Errorf("results are %v", got)
	}
}

type failingTimer struct{}

func (*failingTimer) Init(c *stream.Context[string, int64]) error {
	c.Schedule(stream.Schedule{Every: time.Second, WallClock: true}, func(*stream.Context[string, int64], time.Time) error {
		return errors.New("the timer fails")
	})
	return nil
}

func (*failingTimer) Process(c *stream.Context[string, int64], r stream.Record[string, int64]) error {
	return c.Emit(r)
}

// --- large records

// lengthen makes one long text of each record.
func lengthen(b *stream.Builder) {
	b.Stream(failIn).
		MapValues(func(n int64) string { return strings.Repeat("x", int(n)) }, stream.Name("lengthen")).
		To(stream.NewTopic("texts", codec.String, codec.String))
}

func TestAResultThatIsTooLargeForItsTopicIsTheRecordsFailure(t *testing.T) {
	f := newFailing(t).topics(1, "in")
	f.w.CreateTopic("texts", 1, map[string]string{"max.message.bytes": "2000"})
	f.start(lengthen).add("a", 1500).add("a", 3000).add("a", 1600)
	f.stops("SEMEL-TOO-LARGE", "topic texts", "3001 bytes", "in/0 at offset 1", "max.message.bytes")
	f.policy(stream.Skip).restart().processed()
	var got []int
	for _, r := range f.w.Read(seam.TP{Topic: "texts"}, 0) {
		got = append(got, len(r.Value))
	}
	if !slices.Equal(got, []int{1500, 1600}) {
		t.Errorf("texts of %v bytes, want 1500 and 1600", got)
	}
}

func TestHeadersCountWhereARecordIsTooLarge(t *testing.T) {
	f := newFailing(t).topics(1, "in")
	f.w.CreateTopic("texts", 1, map[string]string{"max.message.bytes": "2000"})
	b, _ := codec.Int64.Append(nil, 10)
	f.start(lengthen).put("in", []byte("a"), b, kgo.RecordHeader{Key: "h", Value: make([]byte, 5000)})
	f.stops("SEMEL-TOO-LARGE", "topic texts", "in/0 at offset 0")
}

func TestALimitBelowAnyRecordIsNoLimitlessTopic(t *testing.T) {
	f := newFailing(t).topics(1, "in")
	f.w.CreateTopic("texts", 1, map[string]string{"max.message.bytes": "100"})
	f.start(lengthen).add("a", 50)
	f.stops("SEMEL-TOO-LARGE", "topic texts", "in/0 at offset 0")
}

func TestADeadLetterThatIsTooLargeStopsTheAppAndTheRecordStays(t *testing.T) {
	f := newFailing(t).topics(1, "in", "sums")
	f.w.CreateTopic("bad", 1, map[string]string{"max.message.bytes": "2000"})
	f.policy(stream.DeadLetter("bad")).start(sums)
	f.add("a", 1).put("in", []byte("a"), make([]byte, 5000)).add("a", 2)
	f.stops("SEMEL-DEAD-LETTER", "topic bad", "in/0 at offset 1", "too large", "raise the topic's max.message.bytes").until("the last commit's markers are written", f.w.Settled).want(map[string]int64{"a": 1})
	f.w.SetConfig("bad", "max.message.bytes", "100000")
	f.restart().processed().want(map[string]int64{"a": 3})
	if n := len(f.w.Read(seam.TP{Topic: "bad"}, 0)); n != 1 {
		t.Errorf("%d dead letters, want 1", n)
	}
}

func TestADeadLetterTopicThatIsMissingStopsTheAppAndTheRecordStays(t *testing.T) {
	f := newFailing(t).topics(1, "in", "sums").policy(stream.DeadLetter("bad")).start(sums)
	f.add("a", 1).add("a", -1).add("a", 2)
	f.stops("SEMEL-DEAD-LETTER", "topic bad", "in/0 at offset 1", "add: function", "create").until("the last commit's markers are written", f.w.Settled).want(map[string]int64{"a": 1})
	f.topics(1, "bad").restart().processed().want(map[string]int64{"a": 3})
}

func TestARowThatIsTooLargeForItsChangelogStopsTheAppAndLosesNothing(t *testing.T) {
	define := func(b *stream.Builder) {
		b.Stream(failIn).GroupByKey().Aggregate("rows", func(_ string, n int64, _ string) string {
			return strings.Repeat("x", int(n))
		})
	}
	f := newFailing(t).topics(1, "in")
	f.w.CreateTopic(failApp+"-rows-changelog", 1, map[string]string{"cleanup.policy": "compact", "max.message.bytes": "2000"})
	f.start(define).add("a", 100).processed().add("b", 5000)
	f.stops("SEMEL-TOO-LARGE", "topic "+failApp+"-rows-changelog", "task 0_0", "max.message.bytes")
	f.w.SetConfig(failApp+"-rows-changelog", "max.message.bytes", "10000")
	f.restart().processed()
	var got []string
	for _, r := range f.w.Read(seam.TP{Topic: failApp + "-rows-changelog"}, 0) {
		got = append(got, fmt.Sprintf("%s %d", r.Key, len(r.Value)))
	}
	if !slices.Equal(got, []string{"a 100", "b 5000"}) {
		t.Errorf("the changelog has %v", got)
	}
}
