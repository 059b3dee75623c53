package stream_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/internal/seam"
	"github.com/semelstream/semel/stream"
)

// incompatible checks that errors.Is finds what users ask for.
func (f *failing) incompatible() *failing {
	f.t.Helper()
	if !errors.Is(f.p.Err(), stream.ErrIncompatible) {
		f.t.Errorf("the error is no ErrIncompatible: %v", f.p.Err())
	}
	return f
}

func TestAMissingInputTopicIsNamedWithTheOperatorsThatReadIt(t *testing.T) {
	f := newFailing(t).topics(1, "sums").start(sums)
	f.stops("SEMEL-NO-TOPIC", "topic in", "failure_test.go:", "create it, or correct the name")
	f.topics(1, "in").restart().add("a", 1).processed().want(map[string]int64{"a": 1})
}

func TestATopicThatWasMadeAMomentAgoIsWaitedFor(t *testing.T) {
	f := newFailing(t).topics(1, "sums").start(sums)
	f.w.Advance(time.Second)
	f.topics(1, "in").add("a", 1).processed().want(map[string]int64{"a": 1})
}

func TestAMissingOutputTopicIsAnErrorBeforeAnythingIsRead(t *testing.T) {
	f := newFailing(t).topics(1, "in").start(sums).add("a", 1)
	f.stops("SEMEL-NO-TOPIC", "topic sums", "create it")
	if _, ok := f.w.Committed(failApp, seam.TP{Topic: "in"}); ok {
		t.Error("an offset is committed")
	}
}

func TestInternalTopicsThatAreMissingAreNamedIfTheAppMustNotMakeThem(t *testing.T) {
	f := newFailing(t).topics(3, "in", "sums")
	f.cfg.CreateNothing = true
	f.start(sums).stops("SEMEL-NO-TOPIC", failApp+"-sums-changelog with 3", "CreateNothing")
	if slices.Contains(f.w.TopicNames(), failApp+"-sums-changelog") {
		t.Error("it was made all the same")
	}
}

func TestJoinedTopicsWithDifferentPartitionCountsAreAnErrorWithBothCounts(t *testing.T) {
	names := stream.NewTopic("names", codec.String, codec.String)
	define := func(b *stream.Builder) {
		table := b.Table(names, "names")
		b.Stream(failIn).Join(table, func(n int64, _ string) int64 { return n }).To(failSums)
	}
	f := newFailing(t).topics(2, "in", "sums").topics(3, "names").start(define)
	f.stops("SEMEL-COPARTITION", "in has 2", "names has 3", "failure_topics_test.go:", "Repartition").incompatible()
}

func TestPartitionsThatGrowUnderStateStopTheAppBeforeAKeyMoves(t *testing.T) {
	f := newFailing(t).topics(1, "in", "sums").start(sums).add("a", 1).processed()
	f.w.Kill(f.p)
	f.w.AddPartitions("in", 2)
	f.restart().stops("SEMEL-PARTITIONS", failApp+"-sums-changelog has 1, needed are 2", "grown", "another AppID").incompatible()
	f.want(map[string]int64{"a": 1})
}

func TestPartitionsThatGrowWhileTheAppRunsStopItSinceNobodyWouldReadThem(t *testing.T) {
	f := newFailing(t).topics(2, "in", "sums").start(sums).add("a", 1).processed()
	f.w.AddPartitions("in", 4)
	f.add("a", 2).stops("SEMEL-PARTITIONS", "topic in had 2, has 4", "restart the app").incompatible()
	f.want(map[string]int64{"a": 3}) // what was in hand is committed
	f.restart().stops("SEMEL-PARTITIONS", failApp+"-sums-changelog has 2, needed are 4")
}

func TestAChangelogWithTheWrongPartitionCountIsAnError(t *testing.T) {
	f := newFailing(t).topics(2, "in", "sums")
	f.w.CreateTopic(failApp+"-sums-changelog", 3, map[string]string{"cleanup.policy": "compact"})
	f.start(sums).add("a", 1).stops("SEMEL-PARTITIONS", failApp+"-sums-changelog has 3, needed are 2", "another AppID").incompatible()
	if _, ok := f.w.Committed(failApp, seam.TP{Topic: "in"}); ok {
		t.Error("an offset is committed")
	}
}

func TestAChangelogThatIsNotCompactedIsAnErrorSinceRowsWouldExpire(t *testing.T) {
	for _, policy := range []string{"delete", "compact,delete"} {
		f := newFailing(t).topics(1, "in", "sums")
		f.w.CreateTopic(failApp+"-sums-changelog", 1, map[string]string{"cleanup.policy": policy})
		f.start(sums).stops("SEMEL-CHANGELOG", "topic "+failApp+"-sums-changelog", "store sums", "cleanup.policy="+policy, "set cleanup.policy=compact").incompatible()
		f.w.SetConfig(failApp+"-sums-changelog", "cleanup.policy", "compact")
		f.restart().add("a", 1).processed().want(map[string]int64{"a": 1})
	}
}

func TestATableOverATopicThatExpiresIsAnError(t *testing.T) {
	define := func(b *stream.Builder) { b.Table(failIn, "rows").ToStream().To(failSums) }
	f := newFailing(t).topics(1, "in", "sums").start(define)
	f.stops("SEMEL-CHANGELOG", "topic in", "store rows", "cleanup.policy=delete").incompatible()
}

func TestAGroupThatReadOtherTopicsBelongsToAnotherApplication(t *testing.T) {
	f := newFailing(t).topics(1, "in", "sums", "elsewhere")
	f.w.Commit(failApp, seam.TP{Topic: "elsewhere"}, 7)
	f.start(sums).add("a", 1).stops("SEMEL-APP-ID", "group "+failApp, "elsewhere", "choose another AppID").incompatible()
	if slices.Contains(f.w.TopicNames(), failApp+"-sums-changelog") {
		t.Error("its topics were made all the same")
	}
	f.w.Commit(failApp, seam.TP{Topic: "in"}, 0) // it has read this one, too: an input was left out
	f.restart().processed().want(map[string]int64{"a": 1})
}

func TestAnAppIDThatATopologyOfAnotherSizeUsedIsAnError(t *testing.T) {
	f := newFailing(t).topics(2, "in", "sums").topics(3, "wide").start(func(b *stream.Builder) {
		b.Stream(stream.NewTopic("wide", codec.String, codec.Int64)).GroupByKey().Count("sums")
	})
	f.until("it runs", func() bool { return len(f.w.Members(failApp)) > 0 && f.w.Settled() })
	f.w.Kill(f.p)
	f.w.DeleteOffsets(failApp)
	f.instead(sums).stops("SEMEL-PARTITIONS", "has 3, needed are 2", "another topology").incompatible()
}

func TestStoresOfAnotherTopologyInTheStateDirectoryAreAnErrorWhereTheirsWouldBeMissing(t *testing.T) {
	f := newFailing(t).topics(1, "in", "sums").start(sums).add("a", 1).processed()
	f.w.Advance(time.Second) // it is stored
	f.w.Kill(f.p)
	renamed := func(b *stream.Builder) { b.Stream(failIn).GroupByKey().Count("counts") }
	f.instead(renamed).add("a", 1).stops("SEMEL-APP-ID", "task 0_0", "has sums and needs counts", "its old name").incompatible()
	// As it was, everything is there.
	f.instead(sums).processed().want(map[string]int64{"a": 2})
}

func TestAStoreThatIsAddedBesideOthersIsNoOtherTopology(t *testing.T) {
	f := newFailing(t).topics(1, "in", "sums").start(sums).add("a", 1).processed()
	f.w.Advance(time.Second)
	f.w.Kill(f.p)
	f.instead(func(b *stream.Builder) {
		sums(b)
		b.Stream(failIn).GroupByKey().Count("counts")
	}).add("a", 1).processed().want(map[string]int64{"a": 2})
}

// sameName says that it writes what it does not.
type sameName struct{ codec.Codec[string] }

func (sameName) String() string { return codec.Name(codec.Int64) }

func TestRowsOfAnotherTypeStopTheAppWithTheStoreNamed(t *testing.T) {
	f := newFailing(t).topics(1, "in", "sums").start(func(b *stream.Builder) {
		// A codec of the same name, so that only the rows themselves say it.
		b.Stream(failIn).GroupByKey().Aggregate("sums", func(_ string, n int64, s string) string { return s + "+" }, stream.ValueCodec(sameName{codec.String}))
	}).add("a", 1).processed()
	f.w.Advance(time.Second)
	f.w.Kill(f.p)
	f.instead(sums).add("a", 1).stops("SEMEL-ROWS", `"add"`, "in/0 at offset 1", "another type")
	if got := f.sums(); len(got) > 0 {
		t.Errorf("results are %v", got)
	}
}

func TestOffsetsThatAreLostWhileTheStateIsNotAreAnError(t *testing.T) {
	f := newFailing(t).topics(1, "in", "sums").start(sums).add("a", 1).processed()
	f.w.Kill(f.p)
	f.w.DeleteOffsets(failApp)
	f.add("a", 2).restart().stops("SEMEL-OFFSETS-LOST", "task 0_0", "store sums", failApp+"-sums-changelog/0", "set the group's offsets").incompatible()
	f.want(map[string]int64{"a": 1})
	// What the hint says.
	f.w.Commit(failApp, seam.TP{Topic: "in"}, 1)
	f.restart().processed().want(map[string]int64{"a": 3})
}

func TestOffsetsThatAreLostWithADiskAreFoundByTheChangelog(t *testing.T) {
	f := newFailing(t).topics(1, "in", "sums").start(sums).add("a", 1).processed()
	f.w.Kill(f.p)
	f.p.Disk().Wipe()
	f.w.DeleteOffsets(failApp)
	f.restart().stops("SEMEL-OFFSETS-LOST", "task 0_0", "store sums").incompatible()
}

func TestRetentionThatDeletedUnprocessedRecordsIsAnErrorAndNotASilentJump(t *testing.T) {
	f := newFailing(t).topics(1, "in", "sums").start(sums).add("a", 1).processed()
	f.w.Kill(f.p)
	f.add("a", 2).add("a", 4)
	f.w.DeleteRecords(seam.TP{Topic: "in"}, 2)
	f.restart().stops("SEMEL-OFFSET-GONE", "in/0", "retention", "set the group's offset")
	f.want(map[string]int64{"a": 1})
	f.w.Commit(failApp, seam.TP{Topic: "in"}, 2)
	f.restart().processed().want(map[string]int64{"a": 5})
}

func TestAChangelogThatWasMadeAnewUnderStateIsAnError(t *testing.T) {
	f := newFailing(t).topics(1, "in", "sums").start(sums).add("a", 1).processed()
	f.w.Advance(time.Second)
	f.w.Kill(f.p)
	f.w.DeleteTopic(failApp + "-sums-changelog")
	f.restart().stops("SEMEL-CHANGELOG", "task 0_0", "store sums", "made anew")
}
