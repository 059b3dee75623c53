package stream_test

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/internal/seam"
	"github.com/semelstream/semel/stream"
	"github.com/semelstream/semel/stream/internal/model"
	"github.com/semelstream/semel/stream/internal/runtime"
)

var (
	anyOrders = stream.NewTopic("", codec.String, codec.Int64)
	ordersRE  = regexp.MustCompile("orders-.*")
)

// copies sends what matches to sums.
func copies(opts ...stream.SourceOption) func(*stream.Builder) {
	return func(b *stream.Builder) {
		b.Stream(anyOrders, append(opts, stream.Matching(ordersRE))...).To(failSums)
	}
}

// matchSums is sums of what matches.
func matchSums(b *stream.Builder) {
	b.Stream(anyOrders, stream.Matching(ordersRE)).GroupByKey().Reduce("sums", func(a, b int64) int64 { return a + b }).To(failSums)
}

// order writes a value to a partition of a topic.
func (f *failing) order(topic string, partition int32, key string, value int64) *failing {
	f.t.Helper()
	b, _ := codec.Int64.Append(nil, value)
	if _, err := f.w.Produce(seam.TP{Topic: topic, Partition: partition}, []byte(key), b, time.Time{}); err != nil {
		f.t.Fatal(err)
	}
	return f
}

// sent are the records of sums, as text and sorted.
func (f *failing) sent() (out []string) {
	f.t.Helper()
	for p := range f.w.Topics("sums")["sums"].Partitions {
		for _, r := range f.w.Read(seam.TP{Topic: "sums", Partition: p}, 0) {
			v, err := codec.Int64.Decode(r.Value)
			if err != nil {
				f.t.Fatal(err)
			}
			out = append(out, fmt.Sprintf("%s=%d", r.Key, v))
		}
	}
	slices.Sort(out)
	return out
}

func (f *failing) awaitSent(want ...string) *failing {
	f.t.Helper()
	if !f.w.RunUntil(func() bool { return slices.Equal(f.sent(), want) }, time.Minute) {
		f.t.Fatalf("sent is %v, want %v; alive: %v, error: %v", f.sent(), want, f.p.Alive(), f.p.Err())
	}
	return f
}

// running checks that the app has not been started again.
func (f *failing) running() *failing {
	f.t.Helper()
	if f.p.String() != "one (life 1)" || !f.p.Alive() {
		f.t.Errorf("it is %v now, alive: %v: %v", f.p, f.p.Alive(), f.p.Err())
	}
	return f
}

func TestAllTopicsThatMatchAreRead(t *testing.T) {
	f := newFailing(t).topics(1, "sums", "orders-a", "old-orders-x", "orders").topics(3, "orders-b")
	f.order("orders-a", 0, "a", 1).order("orders-b", 2, "b", 2).order("old-orders-x", 0, "x", 3).order("orders", 0, "y", 4)
	f.start(copies()).awaitSent("a=1", "b=2").running()
	if tasks := f.app.Tasks(); len(tasks) != 3 {
		t.Errorf("there are %d tasks, want one for each partition of the largest topic", len(tasks))
	}
}

func TestATopicThatAppearsLaterIsReadFromItsBeginningWithoutARestart(t *testing.T) {
	for _, reset := range [][]stream.SourceOption{nil, {stream.FromEnd()}, {stream.FromAgo(time.Millisecond)}} {
		f := newFailing(t).topics(1, "sums", "orders-a").start(copies(reset...))
		f.until("it runs", func() bool { return f.app != nil && f.app.State() == runtime.Running })
		f.order("orders-a", 0, "a", 1).awaitSent("a=1")
		f.topics(2, "orders-new").order("orders-new", 0, "n", 2).order("orders-new", 1, "n", 3).awaitSent("a=1", "n=2", "n=3").running()
		f.order("orders-a", 0, "a", 4).order("orders-new", 1, "n", 5).awaitSent("a=1", "a=4", "n=2", "n=3", "n=5")
		f.w.Kill(f.p)
		f.topics(1, "orders-down").order("orders-down", 0, "d", 6)
		f.restart().awaitSent("a=1", "a=4", "d=6", "n=2", "n=3", "n=5") // it was made while nobody looked
	}
}

func TestAPatternThatNothingMatchesWaitsForATopic(t *testing.T) {
	f := newFailing(t).topics(2, "sums").start(matchSums)
	f.w.Advance(time.Minute)
	if slices.Contains(f.w.TopicNames(), failApp+"-sums-changelog") {
		t.Error("the changelog is there, and nobody knows with how many partitions")
	}
	f.topics(2, "orders-a").order("orders-a", 1, "a", 1).awaitSent("a=1").running()
	f.order("orders-a", 1, "a", 2).awaitSent("a=1", "a=3")
	if n := f.w.Topics(failApp + "-sums-changelog")[failApp+"-sums-changelog"].Partitions; n != 2 {
		t.Errorf("the changelog has %d partitions", n)
	}
	f.until("markers are written", f.w.Settled).want(map[string]int64{"a": 3})
}

func TestATopicThatDisappearsDoesNotStopTheOthers(t *testing.T) {
	f := newFailing(t).topics(1, "sums", "orders-a").topics(2, "orders-b").start(copies())
	f.order("orders-a", 0, "a", 1).order("orders-b", 1, "b", 2).awaitSent("a=1", "b=2")
	f.order("orders-b", 0, "b", 3)
	f.w.DeleteTopic("orders-b")
	f.w.Advance(20 * time.Second)
	f.order("orders-a", 0, "a", 4)
	f.until("the rest is read", func() bool { return slices.Contains(f.sent(), "a=4") }).running()
	if tasks := f.app.Tasks(); len(tasks) != 1 {
		t.Errorf("there are %d tasks, want that of the topic that is left", len(tasks))
	}
	f.topics(2, "orders-b").order("orders-b", 1, "again", 5)
	f.until("it is back", func() bool { return slices.Contains(f.sent(), "again=5") }).running()
}

func TestStateOfTopicsThatAreGoneStays(t *testing.T) {
	f := newFailing(t).topics(1, "sums", "orders-a").start(matchSums)
	f.order("orders-a", 0, "k", 1).awaitSent("k=1")
	f.w.DeleteTopic("orders-a")
	f.w.DeleteOffsets(failApp)
	f.w.Advance(20 * time.Second)
	f.topics(1, "orders-b").order("orders-b", 0, "k", 2).awaitSent("k=1", "k=3").running()
}

func TestATopicThatTwoPatternsMatchStopsTheAppWithBoth(t *testing.T) {
	define := func(b *stream.Builder) {
		b.Stream(anyOrders, stream.Matching(ordersRE)).To(failSums)
		b.Stream(anyOrders, stream.Matching(regexp.MustCompile(".*-eu"))).To(failSums)
	}
	f := newFailing(t).topics(1, "sums", "orders-us", "returns-eu").start(define)
	f.order("orders-us", 0, "u", 1).order("returns-eu", 0, "e", 2).awaitSent("e=2", "u=1")
	f.topics(1, "orders-eu").stops("SEMEL-PATTERN", `topic orders-eu matches "orders-.*"`, `".*-eu"`, "failure_patterns_test.go:", "no topic matches both").incompatible()
	f.restart().stops("SEMEL-PATTERN", "orders-eu")
	f.w.DeleteTopic("orders-eu")
	f.restart().order("orders-us", 0, "u", 3).awaitSent("e=2", "u=1", "u=3")
}

func TestTheAppsOwnTopicsNeverMatch(t *testing.T) {
	define := func(b *stream.Builder) {
		b.Stream(anyOrders, stream.Matching(regexp.MustCompile(".*"))).
			GroupBy(func(k string, _ int64) string { return k }).
			Reduce("sums", func(a, b int64) int64 { return a + b }).To(failSums)
	}
	f := newFailing(t).topics(1, "sums", "orders-a", "__kafka").topics(1, failApp+"-old-repartition")
	f.start(define).order("orders-a", 0, "a", 1).awaitSent("a=1")
	f.w.Advance(time.Minute)
	f.order("orders-a", 0, "a", 2).awaitSent("a=1", "a=3").running()
	for _, task := range f.app.Tasks() {
		for _, tp := range seam.SortedTPs(task.Lag) {
			if tp.Topic != "orders-a" && tp.Topic != failApp+"-sums-repartition" {
				t.Errorf("task %v reads %v", task.ID, tp)
			}
		}
	}
}

func TestNoRecordIsWrittenToATopicThatAPatternOfTheAppMatches(t *testing.T) {
	route := func(b *stream.Builder) {
		b.Stream(anyOrders, stream.Matching(ordersRE)).
			Route(func(stream.Record[string, int64]) stream.Topic[string, int64] { return anyOrders.Named("orders-done") })
	}
	// What a function decides is known when it has.
	letter := func(f *stream.Failure) stream.Action { return stream.DeadLetter("orders-dead")(f) }
	dead := func(b *stream.Builder) {
		b.Stream(anyOrders, stream.Matching(ordersRE), stream.OnError(letter)).To(failSums)
	}
	for name, define := range map[string]func(*stream.Builder){"orders-done": route, "orders-dead": dead} {
		f := newFailing(t).topics(1, "sums", "orders-a", name).start(define)
		if name == "orders-dead" {
			f.put("orders-a", []byte("a"), []byte("no number"))
		} else {
			f.order("orders-a", 0, "a", 1)
		}
		f.stops("SEMEL-PATTERN", "topic "+name, "leaves the topic out").incompatible()
		if n := f.w.End(seam.TP{Topic: name}); n != 0 {
			t.Errorf("%s has %d records", name, n)
		}
	}
}

func TestDeadLettersThatAPatternWouldReadAgainAreRefusedBeforeTheyAreWritten(t *testing.T) {
	read := func(dead string, more ...func(*stream.Builder)) func(*stream.Builder) {
		return func(b *stream.Builder) {
			b.Stream(anyOrders, stream.Matching(ordersRE)).
				MapValues(func(n int64) int64 { return n }, stream.OnError(stream.DeadLetter(dead)), stream.Name("map")).To(failSums)
			for _, f := range more {
				f(b)
			}
		}
	}
	_, err := stream.Build(read("orders-dead"))
	hasParts(t, err, `"map"`, "failure_patterns_test.go:", `pattern "orders-.*" matches topic "orders-dead"`, "leaves the topic out")
	// A topic that the topology writes to matches no pattern.
	writes := func(b *stream.Builder) {
		b.Stream(failIn).To(stream.NewTopic("orders-dead", codec.String, codec.Int64))
	}
	for _, define := range []func(*stream.Builder){read("dead"), read("my-orders-dead"), read("orders-dead", writes)} {
		if _, err := stream.Build(define); err != nil {
			t.Error(err)
		}
	}
	topology, err := stream.Build(copies())
	if err != nil {
		t.Fatal(err)
	}
	cfg := stream.Config{AppID: "app", Brokers: []string{"localhost:1"}, OnError: stream.DeadLetter("orders-dead")}
	_, err = stream.New(topology, cfg)
	hasParts(t, err, "Config.OnError", `"orders-dead"`, `"orders-.*"`, "another name")
	for _, p := range []stream.ErrorPolicy{stream.DeadLetter("dead"), stream.Skip, nil} {
		cfg.OnError = p
		if _, err := stream.New(topology, cfg); err != nil {
			t.Error(err)
		}
	}
}

func TestTopicsThatMeetInAStoreMustHaveOneNumberOfPartitions(t *testing.T) {
	f := newFailing(t).topics(2, "sums", "orders-a").start(matchSums)
	f.order("orders-a", 0, "a", 1).awaitSent("a=1")
	f.topics(3, "orders-b").stops("SEMEL-COPARTITION", "orders-a has 2", "orders-b has 3", "Repartition").incompatible()
	f.w.DeleteTopic("orders-b")
	f.topics(2, "orders-c").order("orders-c", 0, "a", 2)
	f.restart().awaitSent("a=1", "a=3")
}

// Behind a repartition topic they may have any, and the topic keeps its own.
func TestARepartitionTopicBehindAPatternKeepsItsPartitions(t *testing.T) {
	define := func(b *stream.Builder) {
		b.Stream(anyOrders, stream.Matching(ordersRE)).Repartition("all").
			GroupByKey().Reduce("sums", func(a, b int64) int64 { return a + b }).To(failSums)
	}
	f := newFailing(t).topics(1, "sums").topics(2, "orders-a").start(define)
	f.order("orders-a", 0, "k", 1).awaitSent("k=1")
	f.topics(5, "orders-b").order("orders-b", 4, "k", 2).awaitSent("k=1", "k=3")
	f.w.DeleteTopic("orders-b")
	f.w.DeleteTopic("orders-a")
	f.w.Advance(20 * time.Second)
	f.topics(1, "orders-c").order("orders-c", 0, "k", 3).awaitSent("k=1", "k=3", "k=6").running()
	if n := f.w.Topics(failApp + "-all-repartition")[failApp+"-all-repartition"].Partitions; n != 2 {
		t.Errorf("the repartition topic has %d partitions", n)
	}
}

func TestATopicThatMatchesAndGrowsStopsTheApp(t *testing.T) {
	f := newFailing(t).topics(1, "sums", "orders-a").start(copies())
	f.order("orders-a", 0, "a", 1).awaitSent("a=1")
	f.w.AddPartitions("orders-a", 2)
	f.stops("SEMEL-PARTITIONS", "topic orders-a had 1, has 2", "restart the app")
	f.order("orders-a", 1, "a", 2).restart().awaitSent("a=1", "a=2")
}

func TestAGroupThatReadWhatMatchesBelongsToThisApplication(t *testing.T) {
	f := newFailing(t).topics(1, "sums", "orders-a")
	f.w.Commit(failApp, seam.TP{Topic: "orders-a"}, 0)
	f.start(copies()).order("orders-a", 0, "a", 1).awaitSent("a=1")
}

// Two processes, crashes and lost requests, while topics come and go: every
// record of a topic that stays is copied once.
func TestRecordsOfTopicsThatComeAreCopiedOnceWhateverHappens(t *testing.T) {
	for seed := range uint64(40) {
		w := model.New(model.Config{Seed: seed, Restart: true, Faults: model.Faults{Crash: 8, Freeze: 1, Net: 10, Late: 3}})
		f := &failing{t: t, w: w, logs: newLogs(), cfg: runtime.Config{
			App: failApp, Workers: 2, CommitInterval: 50 * time.Millisecond, Session: 6 * time.Second,
		}}
		prog := f.program(copies())
		f.topics(2, "sums", "orders-0")
		for _, name := range []string{"one", "two"} {
			f.p = w.Start(name, func(env seam.Env, disk *model.Disk) error {
				cfg := f.cfg
				cfg.Instance = name
				return runtime.New(runtime.Env{Env: env, Stores: failStores{f, disk}}, prog, cfg).Run(context.Background())
			})
		}
		want := map[string]int{}
		for i := range 12 {
			if i%3 == 2 {
				f.topics(int32(1+i%4), fmt.Sprintf("orders-%d", i))
			}
			if i == 6 {
				f.topics(1, "orders-gone")
			}
			if i == 9 {
				w.DeleteTopic("orders-gone")
			}
			for name, info := range w.Topics(w.TopicNames()...) {
				if strings.HasPrefix(name, "orders-") && name != "orders-gone" {
					key := fmt.Sprint(name, " ", i)
					f.order(name, int32(i)%info.Partitions, key, 1)
					want[key] = 1
				}
			}
			w.Advance(2 * time.Second)
		}
		w.Quiet()
		got := func() map[string]int {
			out := map[string]int{}
			for _, s := range f.sent() {
				key, _, _ := strings.Cut(s, "=")
				out[key]++
			}
			return out
		}
		if !w.RunUntil(func() bool { return len(got()) >= len(want) && w.Settled() }, 3*time.Minute) || !maps.Equal(got(), want) {
			t.Errorf("seed %d: %d of %d keys; errors %v", seed, len(got()), len(want), f.p.Err())
			for k := range want {
				if got()[k] != 1 {
					t.Logf("%s: %d times", k, got()[k])
				}
			}
		}
		w.Stop()
		if t.Failed() {
			return
		}
	}
}
