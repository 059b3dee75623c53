package kafkastreams_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semelstream/semel/stream"
	"github.com/semelstream/semel/stream/streamtest"
)

// An embedded broker has what an application of Kafka Streams leaves behind.
type leftovers struct {
	*streamtest.Cluster
	t   *testing.T
	adm *kadm.Client
}

const app = "old"

func newLeftovers(t *testing.T) *leftovers {
	c := streamtest.NewCluster(t)
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.Brokers()...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	c.CreateTopics(1, append(topicsOf(app).results(), app+".lines", app+"-by-word-repartition", app+"-counts-changelog", app+"-per-second-changelog", app+"-closed-changelog")...)
	l := &leftovers{c, t, kadm.NewClient(cl)}
	l.commits(app+".lines", 0)
	l.commits(app+"-by-word-repartition", 0)
	return l
}

func (l *leftovers) commits(topic string, at int64) {
	l.t.Helper()
	var offs kadm.Offsets
	offs.AddOffset(topic, 0, at, -1)
	if err := l.adm.CommitAllOffsets(l.t.Context(), app, offs); err != nil {
		l.t.Fatal(err)
	}
}

func (l *leftovers) takeOver(id string, opts stream.TakeOverOptions) error {
	l.t.Helper()
	t, err := stream.Build(wordCount(topicsOf(app)))
	if err != nil {
		l.t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(l.t.Context(), time.Minute)
	defer stop()
	return stream.TakeOver(ctx, t, stream.Config{AppID: id, Brokers: l.Brokers()}, opts)
}

// refuses wants a SEMEL-TAKEOVER with the parts.
func (l *leftovers) refuses(err error, is error, parts ...string) {
	l.t.Helper()
	f, ok := errors.AsType[*stream.Fault](err)
	if !ok || f.Code != "SEMEL-TAKEOVER" || f.Do == "" {
		l.t.Fatalf("got %v, want a fault SEMEL-TAKEOVER that says what to do", err)
	}
	if is != nil && !errors.Is(err, is) {
		l.t.Errorf("%v is not %v", err, is)
	}
	for _, p := range parts {
		if !strings.Contains(err.Error(), p) {
			l.t.Errorf("%q is not in: %v", p, err)
		}
	}
}

func TestAnApplicationThatEndedIsTakenOverAndAgain(t *testing.T) {
	l := newLeftovers(t)
	for range 2 {
		if err := l.takeOver(app, stream.TakeOverOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAStoreThatIsNamedOtherwiseIsNotTakenOver(t *testing.T) {
	l := newLeftovers(t)
	if _, err := l.adm.DeleteTopics(t.Context(), app+"-per-second-changelog"); err != nil {
		t.Fatal(err)
	}
	l.refuses(l.takeOver(app, stream.TakeOverOptions{}), stream.ErrIncompatible, "old-per-second-changelog", "TakeOverOptions.New")
	l.refuses(l.takeOver(app, stream.TakeOverOptions{New: []string{"counts"}}), stream.ErrIncompatible, "old-per-second-changelog")
	if err := l.takeOver(app, stream.TakeOverOptions{New: []string{"per-second"}}); err != nil {
		t.Errorf("a store that is said to be new: %v", err)
	}
}

func TestRecordsThatNobodyWouldReadAreNotLeftBehind(t *testing.T) {
	l := newLeftovers(t)
	l.CreateTopics(1, app+"-other-repartition")
	l.commits(app+"-other-repartition", 0)
	if err := l.takeOver(app, stream.TakeOverOptions{}); err != nil {
		t.Fatalf("a topic that was read to its end: %v", err)
	}
	l.Put(stream.NewTopic(app+"-other-repartition", topicsOf(app).lines.Key, topicsOf(app).lines.Value), "k", "v")
	l.refuses(l.takeOver(app, stream.TakeOverOptions{}), stream.ErrIncompatible, "old-other-repartition/0 from offset 0")
}

// The end of the topic is behind the committed offset, and nothing is between
// them but the marker of the transaction that wrote the last record.
func TestAMarkerIsNothingThatTheOldApplicationHasLeft(t *testing.T) {
	l := newLeftovers(t)
	l.CreateTopics(1, app+"-other-repartition")
	cl, err := kgo.NewClient(kgo.SeedBrokers(l.Brokers()...), kgo.TransactionalID("old-writer"))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	if err := cl.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	if err := cl.ProduceSync(t.Context(), &kgo.Record{Topic: app + "-other-repartition", Value: []byte("v")}).FirstErr(); err != nil {
		t.Fatal(err)
	}
	if err := cl.EndTransaction(t.Context(), kgo.TryCommit); err != nil {
		t.Fatal(err)
	}
	l.commits(app+"-other-repartition", 1)
	if err := l.takeOver(app, stream.TakeOverOptions{}); err != nil {
		t.Fatal(err)
	}
}

func TestAGroupThatNeverCommittedIsNotTakenOver(t *testing.T) {
	l := newLeftovers(t)
	l.CreateTopics(1, "odl-by-word-repartition", "odl-counts-changelog", "odl-per-second-changelog", "odl-closed-changelog")
	l.refuses(l.takeOver("odl", stream.TakeOverOptions{}), nil, "has no offsets", "application.id")
}
