package stream_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/internal/seam"
	"github.com/semelstream/semel/state"
	"github.com/semelstream/semel/stream"
	"github.com/semelstream/semel/stream/internal/runtime"
)

// OpenGlobal implements runtime.GlobalStores.
func (s failStores) OpenGlobal(store string, _ bool) (state.Engine, error) {
	e, err := s.disk.Open("global/" + store)
	if err == nil && s.f.wrap != nil {
		e = s.f.wrap(e)
	}
	return e, err
}

// QuarantineGlobal implements runtime.GlobalStores.
func (s failStores) QuarantineGlobal(store string) (string, error) {
	s.f.quar = append(s.f.quar, "global/"+store)
	return store + ".corrupt-1", s.disk.Remove("global/" + store)
}

// failRates are by key; a value of failIn is multiplied by its key's.
var failRates = stream.NewTopic("rates", codec.String, codec.Int64)

// rated puts into "sums" what each value of "in" gives; nothing has no rate.
func rated(opts ...stream.TableSourceOption) func(b *stream.Builder) {
	return func(b *stream.Builder) {
		rates := b.GlobalTable(failRates, "rates", opts...)
		b.Stream(failIn).LeftJoinGlobal(rates,
			func(k string, _ int64) (string, bool) { return k, true },
			func(v, rate int64, ok bool) int64 {
				if !ok {
					return -v
				}
				return v * rate
			}).To(failSums)
	}
}

const compacted = "cleanup.policy"

// rates makes the topic of the global table.
func (f *failing) rates(partitions int32) *failing {
	f.w.CreateTopic("rates", partitions, map[string]string{compacted: "compact"})
	return f
}

// rate sends a row of the global table; 0 is a tombstone.
func (f *failing) rate(partition int32, key string, v int64) *failing {
	f.t.Helper()
	var b []byte
	if v != 0 {
		b, _ = codec.Int64.Append(nil, v)
	}
	if _, err := f.w.Produce(seam.TP{Topic: "rates", Partition: partition}, []byte(key), b, time.Time{}); err != nil {
		f.t.Fatal(err)
	}
	return f
}

// rows are the rows of the global table.
func (f *failing) rows() map[string]int64 {
	f.t.Helper()
	rows := map[string]int64{}
	if f.app == nil {
		return rows
	}
	shared := f.app.Global("rates")
	if shared == nil {
		return rows
	}
	r, err := state.SharedOf[string, int64](shared)
	if err != nil {
		f.t.Fatal(err)
	}
	for e, err := range r.All() {
		if errors.Is(err, state.ErrClosed) { // of a life that is over
			return nil
		}
		if err != nil {
			f.t.Fatal(err)
		}
		rows[e.Key] = e.Value
	}
	return rows
}

// has waits until the global table has these rows.
func (f *failing) has(want map[string]int64) *failing {
	f.t.Helper()
	return f.until(fmt.Sprintf("the rows are %v", want), func() bool { return maps.Equal(f.rows(), want) })
}

// gives checks the results.
func (f *failing) gives(want map[string]int64) *failing {
	f.t.Helper()
	if got := f.sums(); !maps.Equal(got, want) {
		f.t.Errorf("results are %v, want %v", got, want)
	}
	return f
}

// restores keeps what is heard of global tables being read.
func (f *failing) restores() *[]runtime.Restore {
	var all []runtime.Restore
	f.cfg.Hooks.Restore = func(r runtime.Restore) {
		if r.Task == runtime.GlobalTask && r.Done {
			all = append(all, r)
		}
	}
	return &all
}

// fill sends n rows, each with value v.
func (f *failing) fill(partition int32, n int, v int64) *failing {
	for i := range n {
		f.rate(partition, fmt.Sprintf("p%d-%d", partition, i), v)
	}
	return f
}

func TestAGlobalTableIsReadWholeBeforeTheFirstRecord(t *testing.T) {
	f := newFailing(t).topics(2, "in", "sums").rates(3)
	for p := range int32(3) {
		f.fill(p, 500, 7)
	}
	f.add("p0-0", 1).add("p1-499", 2).add("p2-77", 3).add("none", 4)
	f.start(rated()).processed().gives(map[string]int64{"p0-0": 7, "p1-499": 14, "p2-77": 21, "none": -4})
}

func TestAGlobalTableIsFollowed(t *testing.T) {
	f := newFailing(t).topics(1, "in", "sums").rates(1).start(rated())
	f.rate(0, "a", 2).has(map[string]int64{"a": 2}).add("a", 1).processed().gives(map[string]int64{"a": 2})
	f.rate(0, "a", 3).has(map[string]int64{"a": 3}).add("a", 1).processed().gives(map[string]int64{"a": 3})
	f.rate(0, "a", 0).has(map[string]int64{}).add("a", 1).processed().gives(map[string]int64{"a": -1})
}

func TestAGlobalTableOnDiskGoesOnWhereItStood(t *testing.T) {
	f := newFailing(t).topics(1, "in", "sums").rates(2).fill(0, 100, 1).fill(1, 100, 1)
	heard := f.restores()
	f.start(rated()).add("p0-1", 5).processed()
	f.w.Advance(time.Second) // it is flushed
	f.w.Kill(f.p)
	f.rate(1, "late", 9)
	f.restart().add("late", 1).processed().gives(map[string]int64{"p0-1": 5, "late": 9})
	if n := len(*heard); n != 2 || (*heard)[0].Records != 200 || (*heard)[1].Records != 1 {
		t.Errorf("it was read %+v", *heard)
	}
}

func TestAGlobalTableWhoseDiskIsGoneIsReadAgain(t *testing.T) {
	f := newFailing(t).topics(1, "in", "sums").rates(1).fill(0, 10, 2)
	f.start(rated()).add("p0-1", 5).processed()
	f.w.Kill(f.p)
	f.p.Disk().Wipe()
	f.restart().add("p0-2", 5).processed().gives(map[string]int64{"p0-1": 10, "p0-2": 10})
}

func TestPartitionsThatAreAddedToAGlobalTableAreReadWhileTheAppRuns(t *testing.T) {
	f := newFailing(t).topics(1, "in", "sums").rates(1).rate(0, "a", 2).start(rated()).add("a", 1).processed()
	f.w.AddPartitions("rates", 3)
	f.rate(2, "b", 5).has(map[string]int64{"a": 2, "b": 5}).add("b", 1).processed().gives(map[string]int64{"a": 2, "b": 5})
	f.w.Kill(f.p)
	f.restart().rate(1, "c", 7).has(map[string]int64{"a": 2, "b": 5, "c": 7})
}

func TestAMissingTopicOfAGlobalTableIsNamed(t *testing.T) {
	f := newFailing(t).topics(1, "in", "sums").start(rated())
	f.stops("SEMEL-NO-TOPIC", "topic rates", "used by rates at stream/failure_global_test.go", "create it")
	f.rates(1).restart().add("a", 1).processed().gives(map[string]int64{"a": -1})
}

func TestAGlobalTableOverATopicThatExpiresIsAnError(t *testing.T) {
	f := newFailing(t).topics(1, "in", "sums", "rates").start(rated())
	f.stops("SEMEL-CHANGELOG", "topic rates", "store rates", "cleanup.policy=delete", "set cleanup.policy=compact").incompatible()
}

func TestAGlobalTableIsReadAgainWhenItsTopicHasLostWhatItStoodAt(t *testing.T) {
	tp := seam.TP{Topic: "rates"}
	f := newFailing(t).topics(1, "in", "sums").rates(2).rate(0, "gone", 1).rate(0, "stays", 2).rate(1, "other", 3)
	f.start(rated()).has(map[string]int64{"gone": 1, "stays": 2, "other": 3})
	f.w.Advance(time.Second)
	f.w.Kill(f.p)
	f.rate(0, "x", 1).rate(0, "gone", 0).rate(0, "stays", 4)
	f.w.DeleteRecords(tp, f.w.End(tp)-1) // the deletion of "gone" is not there any more
	f.restart().has(map[string]int64{"stays": 4, "other": 3})
	if !strings.Contains(f.logs.String(), "before the topic's start") {
		t.Error("the log does not say why")
	}
}

func TestAGlobalTableIsReadAgainWhileTasksRunWithTheRowsThatItHas(t *testing.T) {
	tp := seam.TP{Topic: "rates"}
	f := newFailing(t).topics(1, "in", "sums").rates(1).rate(0, "gone", 1).rate(0, "stays", 2)
	f.start(rated()).has(map[string]int64{"gone": 1, "stays": 2})
	f.w.Freeze(f.p, 5*time.Second) // so that it is behind
	f.rate(0, "gone", 0).rate(0, "y", 2).rate(0, "stays", 5)
	f.w.DeleteRecords(tp, f.w.End(tp)-1)
	f.has(map[string]int64{"stays": 5}).add("stays", 2).processed().gives(map[string]int64{"stays": 10})
	if !f.p.Alive() {
		t.Error("the app has stopped")
	}
}

func TestAGlobalTableOfATopicThatWasMadeAnewHasItsRowsOnly(t *testing.T) {
	f := newFailing(t).topics(1, "in", "sums").rates(2).fill(0, 5, 1).fill(1, 5, 1)
	f.start(rated()).add("p0-1", 1).processed()
	f.w.Advance(time.Second)
	f.w.Kill(f.p)
	f.w.DeleteTopic("rates")
	f.rates(1).rate(0, "new", 3)
	f.restart().has(map[string]int64{"new": 3})
}

func TestAGlobalTableThatMayHaveMissedDeletesIsReadAgain(t *testing.T) {
	f := newFailing(t).topics(1, "in", "sums").rates(1).rate(0, "a", 1).start(rated()).has(map[string]int64{"a": 1})
	f.w.Advance(time.Second)
	f.w.Kill(f.p)
	f.rate(0, "a", 0)
	f.w.Advance(30 * time.Hour)
	heard := f.restores()
	f.restart().add("a", 1).processed().gives(map[string]int64{"a": -1})
	if len(*heard) != 1 || !strings.Contains((*heard)[0].Reason, "keeps deletes for") {
		t.Errorf("it was read %+v", *heard)
	}
}

func TestAGlobalTableThatIsFollowedForLongMissesNoDeletes(t *testing.T) {
	f := newFailing(t).topics(1, "in", "sums").rates(1).rate(0, "a", 1).start(rated()).has(map[string]int64{"a": 1})
	f.w.Advance(30 * time.Hour)
	f.w.Kill(f.p)
	heard := f.restores()
	f.restart().add("a", 1).processed()
	if len(*heard) != 1 || strings.Contains((*heard)[0].Reason, "keeps deletes for") {
		t.Errorf("it was read %+v", *heard)
	}
}

func TestARecordOfAGlobalTableThatCannotBeDecodedStopsTheApp(t *testing.T) {
	for name, policy := range map[string]stream.ErrorPolicy{"fail": nil, "dead letter": stream.DeadLetter("dead")} {
		t.Run(name, func(t *testing.T) {
			f := newFailing(t).topics(1, "in", "sums", "dead").rates(1)
			if policy != nil {
				f.policy(policy)
			}
			f.rate(0, "a", 1).put("rates", []byte("bad"), []byte("x")).start(rated())
			f.stops("SEMEL-DECODE", `"rates"`, "task global", "rates/0 at offset 1", "not in a global table")
			if n := f.w.End(seam.TP{Topic: "dead"}); n != 0 {
				t.Errorf("%d dead letters", n)
			}
		})
	}
}

func TestAGlobalTableHasNoDeadLetters(t *testing.T) {
	_, err := stream.Build(rated(stream.OnError(stream.DeadLetter("dead"))))
	hasParts(t, err, `"rates"`, "failure_global_test.go:", "its policy cannot be DeadLetter", "Skip or Fail")
}

func TestARecordOfAGlobalTableThatCannotBeDecodedIsLeftOutIfThePolicySaysSo(t *testing.T) {
	f := newFailing(t).topics(1, "in", "sums").rates(1).policy(stream.Fail)
	f.rate(0, "a", 1).put("rates", []byte("a"), []byte("x")).put("rates", nil, []byte("x")).rate(0, "b", 2)
	f.start(rated(stream.OnError(stream.Skip))).has(map[string]int64{"a": 1, "b": 2}).add("a", 3).processed().gives(map[string]int64{"a": 3})
	if f.app.Dropped("failed") != 1 || f.app.Dropped("no key") != 1 {
		t.Errorf("dropped: %d failed, %d without key", f.app.Dropped("failed"), f.app.Dropped("no key"))
	}
}

func TestADeadTransactionOfTheAppItselfDoesNotHoldItsGlobalTableUp(t *testing.T) {
	// The app writes its own global table, and dies in the middle of it.
	define := func(b *stream.Builder) {
		b.Stream(failIn).To(failRates)
		rated()(b)
	}
	f := newFailing(t).topics(1, "in", "sums").rates(1)
	f.start(define).add("a", 2).has(map[string]int64{"a": 2})
	f.w.KillAt(f.p, "C4")
	f.add("a", 3).until("it dies", func() bool { return !f.p.Alive() })
	before := f.w.Now()
	f.restart().has(map[string]int64{"a": 3})
	if took := f.w.Now().Sub(before); took > 3*time.Second {
		t.Errorf("it took %v", took)
	}
}

func TestACrashAtAnyTurnLosesNoRowOfAGlobalTable(t *testing.T) {
	run := func(turn int) (*failing, int) {
		f := newFailing(t).topics(1, "in", "sums").rates(2)
		f.cfg.FlushInterval = time.Millisecond
		f.start(rated())
		f.w.KillAtTurn(f.p, turn)
		want := map[string]int64{}
		for i := range int64(12) {
			k := fmt.Sprint("k", i%5)
			f.rate(int32(i%5%2), k, i+1)
			want[k] = i + 1
			f.w.Advance(30 * time.Millisecond)
			if !f.p.Alive() {
				f.restart()
			}
		}
		f.has(want)
		return f, f.p.Turns()
	}
	_, turns := run(0)
	for turn := 1; turn <= turns; turn++ {
		f, _ := run(turn)
		f.w.Stop()
		if t.Failed() {
			t.Fatalf("crash at turn %d of %d", turn, turns)
		}
	}
	t.Logf("%d turns", turns)
}

func TestAGlobalTableOnAClusterIsReadRestartedGrownAndRebuilt(t *testing.T) {
	everywhere(t, func(l *live) {
		in, rates, out := l.topic("in", 1), l.topic("rates", 2, compacted, "compact,delete", "retention.ms", "-1"), l.topic("out", 1)
		dir := t.TempDir()
		define := func(b *stream.Builder) {
			b.Stream(stream.NewTopic(in, codec.String, codec.Int64)).
				LeftJoinGlobal(b.GlobalTable(stream.NewTopic(rates, codec.String, codec.Int64), "rates"),
					func(k string, _ int64) (string, bool) { return k, true },
					func(v, rate int64, _ bool) int64 { return v * rate }).
				To(stream.NewTopic(out, codec.String, codec.Int64))
		}
		var heard restoreReasons
		start := func() (*liveApp, stream.View[string, int64]) {
			return l.viewed(define, stream.Config{StateDir: dir, Hooks: []stream.Hook{&heard}}, "rates")
		}
		l.produce(rates, "a", 2)
		l.produce(rates, "b", 3)
		l.produce(in, "a", 5)
		app, rows := start()
		l.wants(out, map[string]int64{"a": 10})
		l.produce(rates, "a", 4)
		awaitRow(l, rows, "a", 4)
		if os.Getenv("KAFKA_ADDR") != "" { // it takes a while until that is seen
			l.grow(rates, 3)
			l.produceFresh(&kgo.Record{Topic: rates, Partition: 2, Key: []byte("c"), Value: []byte{7: 7}})
		} else {
			l.produce(rates, "c", 7)
		}
		awaitRow(l, rows, "c", 7)
		l.produce(in, "c", 1)
		l.wants(out, map[string]int64{"a": 10, "c": 7})
		app.stop()

		// On disk; then with records deleted that it has not read.
		heard.take()
		l.produce(in, "b", 2)
		app, _ = start()
		l.wants(out, map[string]int64{"a": 10, "b": 6, "c": 7})
		if got := heard.take(); !slices.Equal(got, []string{"new records of the topic"}) {
			t.Errorf("the table was read because of %q", got)
		}
		app.stop()
		l.produce(rates, "x", 1)
		l.produce(rates, "a", 9)
		l.deleteBefore(rates, l.end(rates)-1) // all but a=9
		l.produce(in, "a", 3)
		app, rows = start()
		l.wants(out, map[string]int64{"a": 27, "b": 6, "c": 7})
		got := map[string]int64{}
		for e, err := range rows.All() {
			l.ok(err)
			got[e.Key] = e.Value
		}
		want := map[string]int64{"a": 9}
		if os.Getenv("KAFKA_ADDR") != "" { // it is in another partition
			want["c"] = 7
		}
		if !maps.Equal(got, want) {
			t.Errorf("the table has %v, want %v", got, want)
		}
		if got := heard.take(); len(got) != 1 || !strings.Contains(got[0], "before the topic's start") {
			t.Errorf("the table was read because of %q", got)
		}
		app.stop()
	})
}

// viewed starts define, with a view of one of its stores.
func (l *live) viewed(define func(*stream.Builder), cfg stream.Config, store string) (*liveApp, stream.View[string, int64]) {
	l.t.Helper()
	a := &liveApp{l: l, logs: newLogs(), done: make(chan struct{})}
	cfg.AppID, cfg.Brokers, cfg.OnExit, cfg.Logger = l.name, l.addrs, stream.Leave, a.logs.logger()
	topology, err := stream.Build(define)
	l.ok(err)
	app, err := stream.New(topology, cfg)
	l.ok(err)
	a.app = app
	ctx, end := context.WithCancel(context.Background())
	a.end = end
	go func() {
		defer close(a.done)
		a.err = app.Run(ctx)
	}()
	l.t.Cleanup(func() {
		end()
		<-a.done
		if l.t.Failed() {
			l.t.Logf("the log:\n%s", a.logs)
		}
	})
	rows, err := app.View[string, int64](store)
	l.ok(err)
	return a, rows
}

// restoreReasons are the reasons for which global tables were read.
type restoreReasons struct {
	logs // for its lock
	all  []string
}

func (r *restoreReasons) OnRestore(e stream.Restore) {
	if e.Task == runtime.GlobalTask && e.Done {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.all = append(r.all, e.Reason)
	}
}

func (r *restoreReasons) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := r.all
	r.all = nil
	return out
}

// awaitRow waits until a view has a row.
func awaitRow(l *live, rows stream.View[string, int64], key string, want int64) {
	l.t.Helper()
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for end := l.ctx().Done(); ; {
		select {
		case <-look.C:
		case <-end:
			l.t.Fatalf("row %s never is %d", key, want)
		}
		if v, ok, err := rows.Get(key); err == nil && ok && v == want {
			return
		}
	}
}

// grow returns when the broker says so too: it hears of it from its controller.
func (l *live) grow(topic string, partitions int) {
	l.t.Helper()
	ctx := l.ctx()
	_, err := l.adm.UpdatePartitions(ctx, partitions, topic)
	l.ok(err)
	for {
		d, err := l.adm.ListTopics(ctx, topic)
		l.ok(err)
		if len(d[topic].Partitions) == partitions {
			return
		}
	}
}

// produceFresh writes a record with a client that knows a topic as it is now.
func (l *live) produceFresh(r *kgo.Record) {
	l.t.Helper()
	cl, err := kgo.NewClient(l.cl.Opts()...)
	l.ok(err)
	defer cl.Close()
	l.ok(cl.ProduceSync(l.ctx(), r).FirstErr())
}

// end is the end of partition 0.
func (l *live) end(topic string) int64 {
	l.t.Helper()
	ends, err := l.adm.ListEndOffsets(l.ctx(), topic)
	l.ok(err)
	o, _ := ends.Lookup(topic, 0)
	return o.Offset
}

// deleteBefore deletes the first records of partition 0.
func (l *live) deleteBefore(topic string, offset int64) {
	l.t.Helper()
	offs := kadm.Offsets{}
	offs.Add(kadm.Offset{Topic: topic, At: offset})
	got, err := l.adm.DeleteRecords(l.ctx(), offs)
	l.ok(err)
	l.ok(got.Error())
}
