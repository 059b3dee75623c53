package kafka

import (
	"testing"
	"time"

	"github.com/semelstream/semel/internal/seam"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

func TestCommittedHasPositionsAndMetadata(t *testing.T) {
	everywhere(t, func(t *testing.T, w world) {
		a := w.app(t)
		m := a.join(t, "i1")
		m.awaitTasks(t, 6)
		in, out := tp(a.subs[0].Topics[0], 1), a.subs[1].Topics[0]
		x := w.txn(t, a.b, "app-i1-0"+uid(""))
		open(t, x, rec(out, 0, "a"))
		ok(t, x.Prepare(ctx(t), m.Member(), seam.Offsets{in: {At: 42, Epoch: 0, Metadata: "times"}}))
		ok(t, x.End(ctx(t), true))
		got := must[seam.Offsets](t)(a.b.Committed(ctx(t), a.group, "app-", []seam.TP{in, tp(in.Topic, 0)}))
		if len(got) != 1 || got[in].At != 42 || got[in].Metadata != "times" {
			t.Fatal(got)
		}
	})
}

// The normal path of a takeover: the owner died in a transaction, and is a
// member no more. Without fencing the offsets would come at its timeout.
func TestCommittedFencesTheOpenTransactionOfADeadInstance(t *testing.T) {
	everywhere(t, func(t *testing.T, w world) {
		a := w.app(t)
		prefix := uid("app") + "-"
		m1 := a.join(t, "i-1") // with a dash, as a uuid has
		m1.awaitTasks(t, 6)
		in, out := tp(a.subs[0].Topics[0], 1), a.subs[1].Topics[0]
		ok(t, a.b.Commit(ctx(t), m1.Member(), seam.Offsets{in: {At: 7, Epoch: -1}}))
		x := w.txn(t, w.broker(t), prefix+"i-1-0")
		open(t, x, rec(out, 0, "never"))
		ok(t, x.Prepare(ctx(t), m1.Member(), seam.Offsets{in: {At: 8, Epoch: -1}}))
		m1.Close(true)
		m2 := a.join(t, "i2")
		m2.awaitTasks(t, 6)

		start := time.Now()
		got := must[seam.Offsets](t)(a.b.Committed(ctx(t), a.group, prefix, []seam.TP{in}))
		d := time.Since(start)
		t.Logf("fenced and stable after %v", d)
		if got[in].At != 7 {
			t.Fatal(got)
		}
		if d > time.Second {
			t.Fatal("that is too long")
		}
		if err := x.End(ctx(t), true); err == nil {
			t.Fatal("the dead owner's commit was accepted")
		}
	})
}

// A member's transaction is waited for, and so is one whose id is not of the
// form that workers have.
func TestCommittedWaitsForTheLiving(t *testing.T) {
	everywhere(t, func(t *testing.T, w world) {
		a := w.app(t)
		prefix := uid("app") + "-"
		m := a.join(t, "i1")
		m.awaitTasks(t, 6)
		out := a.subs[1].Topics[0]
		for i, id := range []string{prefix + "i1-12", prefix + "someone else"} {
			in := tp(a.subs[0].Topics[0], int32(i))
			x := w.txn(t, a.b, id)
			open(t, x, rec(out, int32(i), "a"))
			ok(t, x.Prepare(ctx(t), m.Member(), seam.Offsets{in: {At: 5, Epoch: -1}}))
			looked := make(chan seam.Offsets)
			go func() {
				got, err := a.b.Committed(ctx(t), a.group, prefix, []seam.TP{in})
				if err != nil {
					t.Error(err)
				}
				looked <- got
			}()
			select {
			case got := <-looked:
				t.Fatalf("%s was not waited for: %v", id, got)
			case <-time.After(20 * fenceAfter): // it has looked for the dead by then
			}
			ok(t, x.End(ctx(t), true))
			if got := <-looked; got[in].At != 5 {
				t.Fatal(got)
			}
		}
	})
}

func TestInstanceOfATransactionalID(t *testing.T) {
	for id, want := range map[string]string{
		"app-i1-0":        "i1",
		"app-9f-2c-11-17": "9f-2c-11",
		"app-i1":          "",
		"app-i1-":         "",
		"app-i1-x":        "",
		"app--1":          "",
		"other-i1-0":      "",
	} {
		got, ok := instanceOf(id, "app-")
		if got != want || ok != (want != "") {
			t.Errorf("%s: %q, %v", id, got, ok)
		}
	}
}

// An instance is gone for good, and brokers have lost a marker of its last
// transaction: whoever waits for the offsets writes it, or says who may.
func TestWhoWaitsForLongLooksForLostMarkers(t *testing.T) {
	for _, code := range []int16{0, kerr.ClusterAuthorizationFailed.Code} {
		c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "out"))
		ok(t, err)
		t.Cleanup(c.Close)
		var markers []kmsg.WriteTxnMarkersRequestMarker
		answer := func(key kmsg.Key, fill func(kmsg.Request, kmsg.Response)) {
			c.ControlKey(key.Int16(), func(req kmsg.Request) (kmsg.Response, error, bool) {
				c.KeepControl()
				resp := req.ResponseKind()
				fill(req, resp)
				return resp, nil, true
			})
		}
		answer(kmsg.ListTransactions, func(_ kmsg.Request, r kmsg.Response) {
			for _, id := range []string{"app-gone-0", "other"} {
				x := kmsg.NewListTransactionsResponseTransactionState()
				x.TransactionalID = id
				resp := r.(*kmsg.ListTransactionsResponse)
				resp.TransactionStates = append(resp.TransactionStates, x)
			}
		})
		answer(kmsg.DescribeTransactions, func(req kmsg.Request, r kmsg.Response) {
			x := kmsg.NewDescribeTransactionsResponseTransactionState()
			x.TransactionalID, x.State, x.ProducerID, x.ProducerEpoch = req.(*kmsg.DescribeTransactionsRequest).TransactionalIDs[0], "CompleteCommit", 7, 3
			r.(*kmsg.DescribeTransactionsResponse).TransactionStates = []kmsg.DescribeTransactionsResponseTransactionState{x}
		})
		answer(kmsg.DescribeProducers, func(_ kmsg.Request, r kmsg.Response) {
			x := kmsg.NewDescribeProducersResponseTopicPartitionActiveProducer()
			x.ProducerID, x.ProducerEpoch, x.CurrentTxnStartOffset = 7, 2, 0
			p := kmsg.NewDescribeProducersResponseTopicPartition()
			p.ActiveProducers = append(p.ActiveProducers, x)
			r.(*kmsg.DescribeProducersResponse).Topics = []kmsg.DescribeProducersResponseTopic{{Topic: "out", Partitions: []kmsg.DescribeProducersResponseTopicPartition{p}}}
		})
		answer(kmsg.WriteTxnMarkers, func(req kmsg.Request, r kmsg.Response) {
			markers = append(markers, req.(*kmsg.WriteTxnMarkersRequest).Markers...)
			p := kmsg.NewWriteTxnMarkersResponseMarkerTopicPartition()
			p.ErrorCode = code
			r.(*kmsg.WriteTxnMarkersResponse).Markers = []kmsg.WriteTxnMarkersResponseMarker{{ProducerID: 7,
				Topics: []kmsg.WriteTxnMarkersResponseMarkerTopic{{Topic: "out", Partitions: []kmsg.WriteTxnMarkersResponseMarkerTopicPartition{p}}}}}
		})
		core, logs := observer.New(zap.WarnLevel)
		cfg := world{addrs: c.ListenAddrs()}.config(t)
		cfg.Logger, cfg.Topics = zap.New(core), []string{"out"}
		env, closeEnv, err := NewEnv(cfg)
		ok(t, err)
		w := &waiting{admin: env.Broker.(*broker).admin, group: "app", prefix: "app-"}
		w.complain(ctx(t), complainAfter)
		closeEnv()
		if len(markers) != 1 || markers[0].ProducerEpoch != 2 || !markers[0].Committed {
			t.Errorf("markers %+v", markers)
		}
		held := logs.FilterMessageSnippet("hold up the committed offsets").Len()
		if told := logs.FilterMessageSnippet("had lost a marker").Len(); (told == 1) != (code == 0) || (held == 1) != (code != 0) {
			t.Errorf("with code %d: %v", code, logs.All())
		}
	}
}
