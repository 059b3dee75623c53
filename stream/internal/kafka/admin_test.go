package kafka

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/semelstream/semel/internal/seam"
	"github.com/semelstream/semel/txn"
	"github.com/twmb/franz-go/pkg/kerr"
)

func TestCreateTwiceIsFineAndTopicsLeavesOutWhatIsNotThere(t *testing.T) {
	everywhere(t, func(t *testing.T, w world) {
		b := w.broker(t)
		one, two := uid("one"), uid("two")
		specs := []seam.TopicSpec{{Name: one, Partitions: 3, Replication: -1, Config: map[string]string{"cleanup.policy": "compact"}}}
		ok(t, b.Create(ctx(t), specs))
		ok(t, b.Create(ctx(t), append(specs, seam.TopicSpec{Name: two, Partitions: 1, Config: map[string]string{"retention.ms": "3600000"}})))
		got := must[map[string]seam.Topic](t)(b.Topics(ctx(t), one, uid("missing"), two))
		if len(got) != 2 || got[one].Partitions != 3 || got[two].Partitions != 1 {
			t.Fatal(slices.Collect(maps.Keys(got)))
		}
		if got[one].Config["cleanup.policy"] != "compact" || got[two].Config["retention.ms"] != "3600000" || got[two].Config["max.message.bytes"] == "" {
			t.Fatal(got[one].Config, got[two].Config)
		}
		if got := must[map[string]seam.Topic](t)(b.Topics(ctx(t))); len(got) != 0 {
			t.Fatal(got)
		}
	})
}

func TestCreateSaysWhatIsWrong(t *testing.T) {
	everywhere(t, func(t *testing.T, w world) {
		good, bad := uid("good"), uid("bad")
		err := w.broker(t).Create(ctx(t), []seam.TopicSpec{{Name: good, Partitions: 1}, {Name: bad, Partitions: 0}})
		if !errors.Is(err, kerr.InvalidPartitions) || !strings.Contains(err.Error(), bad) {
			t.Fatal(err)
		}
	})
}

func TestOffsetsOfAPartition(t *testing.T) {
	everywhere(t, func(t *testing.T, w world) {
		b := w.broker(t)
		topic := w.topic(t, b, 2)
		p, empty := tp(topic, 0), tp(topic, 1)
		both := []seam.TP{p, empty}
		t0 := time.UnixMilli(1_700_000_000_000)
		rs := recs(topic, 0, 10)
		for i, r := range rs {
			r.Timestamp = t0.Add(time.Duration(i) * time.Minute)
		}
		w.produce(t, rs...)
		offsets := must[map[seam.TP]int64](t)
		check := func(what string, got map[seam.TP]int64, want int64) {
			t.Helper()
			if len(got) != 2 || got[p] != want || got[empty] != 0 {
				t.Fatalf("%s: %v, want %d and 0", what, got, want)
			}
		}
		check("ends", offsets(b.Ends(ctx(t), both)), 10)
		check("stable", offsets(b.Stable(ctx(t), both)), 10)
		check("starts", offsets(b.Starts(ctx(t), both)), 0)
		check("since 3 minutes", offsets(b.Since(ctx(t), both, t0.Add(3*time.Minute))), 3)
		check("since between", offsets(b.Since(ctx(t), both, t0.Add(3*time.Minute+time.Second))), 4)
		check("since always", offsets(b.Since(ctx(t), both, time.Time{})), 0)
		check("since never", offsets(b.Since(ctx(t), both, t0.Add(time.Hour))), 10)
		ok(t, b.Purge(ctx(t), map[seam.TP]int64{p: 6}))
		check("starts after a purge", offsets(b.Starts(ctx(t), both)), 6)
		ok(t, b.Purge(ctx(t), map[seam.TP]int64{p: 99, tp(uid("missing"), 0): 1})) // said in the log
		if got := offsets(b.Ends(ctx(t), nil)); len(got) != 0 {
			t.Fatal(got)
		}
		if _, err := b.Ends(ctx(t), []seam.TP{p, tp(topic, 9)}); err == nil {
			t.Fatal("a partition that is not there has an end")
		}
	})
}

func TestCommitIsFencedByGeneration(t *testing.T) {
	everywhere(t, func(t *testing.T, w world) {
		a := w.app(t)
		m := a.join(t, "i1")
		m.awaitTasks(t, 6)
		in := tp(a.subs[0].Topics[0], 0)
		ok(t, a.b.Commit(ctx(t), m.Member(), seam.Offsets{in: {At: 3, Epoch: -1, Metadata: "m"}}))
		stale := m.Member()
		stale.Generation--
		if err := a.b.Commit(ctx(t), stale, seam.Offsets{in: {At: 4, Epoch: -1}}); txn.Judge(err) != txn.OutcomeRejoin {
			t.Fatal(err)
		}
		if got := must[seam.Offsets](t)(a.b.Committed(ctx(t), a.group, "app-", []seam.TP{in})); got[in].At != 3 || got[in].Metadata != "m" {
			t.Fatal(got)
		}
	})
}

func TestCheckAcceptsAClusterWithTransactionVersion2(t *testing.T) {
	everywhere(t, func(t *testing.T, w world) { ok(t, w.broker(t).Check(ctx(t))) })
}

func TestCallsRetryUntilTheirContextEnds(t *testing.T) {
	b := world{addrs: []string{"127.0.0.1:1"}}.broker(t)
	short, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	if _, err := b.Topics(short, "a"); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	if _, err := b.Ends(short, []seam.TP{{Topic: "a"}}); txn.Judge(err) != txn.OutcomeNone {
		t.Fatal(err)
	}
}

func TestRefusalsSayWhatToGrant(t *testing.T) {
	err := explain(kerr.TopicAuthorizationFailed, "Create", "topic x")
	if !errors.Is(err, kerr.TopicAuthorizationFailed) || err.Error() == kerr.TopicAuthorizationFailed.Error() {
		t.Fatal(err)
	}
	if other := explain(kerr.UnknownServerError, "Create", "topic x"); other != error(kerr.UnknownServerError) {
		t.Fatal(other)
	}
}

func TestAnEnvNeedsBrokers(t *testing.T) {
	if _, _, err := NewEnv(Config{}); err == nil {
		t.Fatal("no error")
	}
}
