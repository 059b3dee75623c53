package stream_test

import (
	"slices"
	"testing"
	"time"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/internal/seam"
	"github.com/semelstream/semel/stream"
)

const failTopology = failApp + "-semel-topology"

// worded is sums with values that are text.
func worded(b *stream.Builder) {
	b.Stream(failIn).GroupByKey().Aggregate("sums", func(_ string, _ int64, s string) string { return s + "+" })
}

// rekeyed is sums behind a repartition topic.
func rekeyed(b *stream.Builder) {
	b.Stream(failIn).Map(func(k string, n int64) (string, int64) { return k, n }).Repartition("wide").
		GroupByKey().Reduce("sums", func(a, b int64) int64 { return a + b }).To(failSums)
}

func TestAVersionThatDoesNotFitIsRefusedBeforeItChangesAnything(t *testing.T) {
	f := newFailing(t).topics(1, "in", "sums").start(sums).add("a", 1).processed()
	f.w.Kill(f.p)
	saved := f.w.End(seam.TP{Topic: failTopology})
	if saved == 0 {
		t.Fatal("the topology was not saved")
	}
	f.instead(func(b *stream.Builder) {
		worded(b)
		b.Stream(failIn).GroupByKey().Count("counts")
	}).add("a", 1).stops("SEMEL-TOPOLOGY", "topic "+failTopology, `store "sums": its values were written as int64 and are read as string`, "another name").incompatible()
	if slices.Contains(f.w.TopicNames(), failApp+"-counts-changelog") || f.w.End(seam.TP{Topic: failTopology}) != saved {
		t.Error("the version that was refused has made or written topics")
	}
	// As it was, everything is there; and nothing is written again.
	f.instead(sums).processed().want(map[string]int64{"a": 2})
	if f.w.End(seam.TP{Topic: failTopology}) != saved {
		t.Error("the same version was saved twice")
	}
}

func TestAVersionIsComparedWithTheOneThatRanLast(t *testing.T) {
	f := newFailing(t).topics(1, "in", "sums").start(func(b *stream.Builder) {
		b.Stream(failIn).GroupByKey().Count("counts")
	}).add("a", 1).processed()
	f.w.Kill(f.p)
	f.instead(func(b *stream.Builder) {
		b.Stream(failIn).GroupByKey().Count("counts")
		sums(b)
	}).add("a", 1).processed()
	f.w.Kill(f.p)
	f.instead(func(b *stream.Builder) {
		b.Stream(failIn).GroupByKey().Count("counts")
		worded(b)
	}).stops("SEMEL-TOPOLOGY", `store "sums"`, "if that is a newer one than this, start no more of this").incompatible()
	if !f.logs.has(`store \"sums\" is new and starts empty`) {
		t.Error("the log does not say that a store is new")
	}
}

func TestARepartitionTopicIsGivenUpOnceItWasProcessed(t *testing.T) {
	f := newFailing(t).topics(1, "in", "sums").start(rekeyed).add("a", 1)
	wide := seam.TP{Topic: failApp + "-wide-repartition"}
	f.until("the repartition topic is processed", func() bool {
		o, ok := f.w.Committed(failApp, wide)
		return ok && o.At > 0 && f.w.Settled() && f.sums()["a"] == 1
	})
	f.w.Kill(f.p)
	b, _ := codec.Int64.Append(nil, 5)
	if _, err := f.w.Produce(wide, []byte("a"), b, time.Time{}); err != nil {
		t.Fatal(err)
	}
	f.instead(sums).stops("SEMEL-TOPOLOGY", `repartition topic "wide"`, "let the older version process it").incompatible()
	f.instead(rekeyed).until("the old version has processed it", func() bool { return f.sums()["a"] == 6 && f.w.Settled() })
	f.until("it is committed", func() bool {
		o, _ := f.w.Committed(failApp, wide)
		return o.At > 2
	})
	f.w.Kill(f.p)
	f.instead(sums).add("a", 1).processed().want(map[string]int64{"a": 7})
}

func TestATopologyWithoutStateSavesNothing(t *testing.T) {
	f := newFailing(t).topics(1, "in", "sums").start(func(b *stream.Builder) { b.Stream(failIn).To(failSums) }).add("a", 1).processed()
	if slices.Contains(f.w.TopicNames(), failTopology) {
		t.Error("it has made a topic of its own")
	}
}

func TestATopologyTopicThatAnotherProgramWroteIsAnError(t *testing.T) {
	f := newFailing(t).topics(1, "in", "sums", failTopology)
	f.put(failTopology, []byte("k"), []byte("v")).start(sums).stops("SEMEL-TOPOLOGY", "topic "+failTopology, "delete it")
}
