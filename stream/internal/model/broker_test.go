package model

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/semelstream/semel/internal/seam"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// These tests send single requests to the broker, in orders that clients
// rarely make.

var (
	tpA = seam.TP{Topic: "t"}
	tpB = seam.TP{Topic: "t", Partition: 1}
	tpI = seam.TP{Topic: "in"}
)

type testBroker struct {
	*broker
	*testing.T
	member seam.Member
}

func brokerFor(t *testing.T) testBroker {
	b := testBroker{newBroker(time.UnixMilli(0)), t, seam.Member{}}
	b.txnTimeout, b.rebalance = int64(10*time.Second), int64(time.Minute)
	b.create(seam.TopicSpec{Name: "t", Partitions: 2})
	b.create(seam.TopicSpec{Name: "in", Partitions: 1})
	cfg := seam.GroupConfig{Group: "g", Instance: "a", Session: 6 * time.Second, Subs: []seam.Sub{{Topics: []string{"in"}, Tasks: 1}}}
	b.member = seam.Member{Group: "g", Instance: "a", ID: b.broker.join(cfg, seam.Facts{})}
	b.member.Generation, _, _ = b.heartbeat(beat{group: "g", id: b.member.ID, instance: "a", seq: 1})
	return b
}

func (b testBroker) open(id string) ticket {
	b.Helper()
	pid, epoch, err := b.initProducerID(id)
	b.must(err, nil)
	return ticket{id, pid, epoch}
}

func (b testBroker) must(got, want error) {
	b.Helper()
	if !errors.Is(got, want) {
		b.Fatalf("got %v, want %v", got, want)
	}
}

// begin writes a record to each partition and the offset 5.
func (b testBroker) begin(k ticket, tps ...seam.TP) {
	b.Helper()
	b.must(b.addPartitions(k, tps), nil)
	for _, tp := range tps {
		_, err := b.produce(k, tp, 0, []*kgo.Record{{Topic: tp.Topic, Partition: tp.Partition, Value: []byte(k.id)}})
		b.must(err, nil)
	}
	b.must(b.txnOffsetCommit(k, b.member, seam.Offsets{tpI: {At: 5}}), nil)
}

func (b testBroker) markers() {
	for len(b.preparing) > 0 {
		b.writeMarker(b.preparing[0], len(b.preparing[0].markers)-1)
	}
}

func (b testBroker) visible(tp seam.TP) (values []string) {
	recs, _, _ := b.log(tp).read(0, 100)
	for _, r := range recs {
		values = append(values, string(r.Value))
	}
	return values
}

func TestMarkersComeAfterTheDecisionOneByOne(t *testing.T) {
	b := brokerFor(t)
	k := b.open("x")
	b.begin(k, tpA, tpB)
	_, err := b.endTxn(k, true)
	b.must(err, nil)
	if b.visible(tpA) != nil || b.visible(tpB) != nil {
		t.Fatal("visible before a marker")
	}
	_, err = b.offsetFetch("g", []seam.TP{tpI})
	b.must(err, kerr.UnstableOffsetCommit)
	b.writeMarker(b.preparing[0], 1)
	if b.visible(tpA) != nil || len(b.visible(tpB)) != 1 {
		t.Fatal("the marker of partition 1 is not what became visible")
	}
	b.writeMarker(b.preparing[0], 1)
	offs, err := b.offsetFetch("g", []seam.TP{tpI})
	b.must(err, nil)
	if offs[tpI].At != 5 {
		t.Fatalf("offsets %v", offs)
	}
	k.epoch++
	b.must(b.addPartitions(k, []seam.TP{tpA}), kerr.ConcurrentTransactions)
	_, _, err = b.initProducerID("x")
	b.must(err, kerr.ConcurrentTransactions)
	b.markers()
	b.must(b.addPartitions(k, []seam.TP{tpA}), nil)
	if len(b.visible(tpA)) != 1 {
		t.Fatal("not visible after the last marker")
	}
}

func TestARepeatedEndTxnIsToldTheDecision(t *testing.T) {
	b := brokerFor(t)
	k := b.open("x")
	b.begin(k, tpA)
	first, err := b.endTxn(k, true)
	b.must(err, nil)
	_, err = b.endTxn(k, true)
	b.must(err, kerr.ConcurrentTransactions)
	b.markers()
	again, err := b.endTxn(k, true)
	b.must(err, nil)
	if first != again || first != k.epoch+1 {
		t.Fatalf("epochs %d and %d after %d", first, again, k.epoch)
	}
	_, err = b.endTxn(k, false)
	b.must(err, kerr.InvalidTxnState)
}

func TestAZombieNeverComesBack(t *testing.T) {
	b := brokerFor(t)
	zombie := b.open("x")
	b.begin(zombie, tpA)
	_, _, err := b.initProducerID("x")
	b.must(err, kerr.ConcurrentTransactions)
	refused := func() {
		t.Helper()
		_, err := b.endTxn(zombie, true)
		b.must(err, kerr.ProducerFenced)
		_, err = b.endTxn(zombie, false)
		b.must(err, kerr.ProducerFenced)
		_, err = b.produce(zombie, tpA, 1, []*kgo.Record{{Topic: "t"}})
		b.must(err, kerr.InvalidProducerEpoch)
		b.must(b.txnOffsetCommit(zombie, b.member, seam.Offsets{tpI: {At: 6}}), kerr.InvalidProducerEpoch)
		b.must(b.addPartitions(zombie, []seam.TP{tpA}), kerr.ProducerFenced)
	}
	refused()
	b.markers()
	refused()
	owner := b.open("x")
	refused()
	b.begin(owner, tpA)
	refused()
	_, err = b.endTxn(owner, true)
	b.must(err, nil)
	b.markers()
	refused()
	if got := b.visible(tpA); len(got) != 1 {
		t.Fatalf("visible %q", got)
	}
}

func TestATransactionTimesOut(t *testing.T) {
	b := brokerFor(t)
	k := b.open("x")
	b.begin(k, tpA)
	b.now = b.next
	b.tick()
	if len(b.preparing) != 0 {
		t.Fatal("too early")
	}
	b.now = int64(10*time.Second) + 1
	b.tick()
	b.markers()
	if b.visible(tpA) != nil || b.log(tpA).stable() != 2 {
		t.Fatal("it was not aborted")
	}
	_, err := b.produce(k, tpA, 1, []*kgo.Record{{Topic: "t"}})
	b.must(err, kerr.InvalidProducerEpoch)
	_, err = b.endTxn(k, true)
	b.must(err, kerr.InvalidTxnState)
}

func TestARepeatedProduceWritesOnce(t *testing.T) {
	b := brokerFor(t)
	k := b.open("x")
	b.must(b.addPartitions(k, []seam.TP{tpA}), nil)
	recs := []*kgo.Record{{Topic: "t", Value: []byte("1")}, {Topic: "t", Value: []byte("2")}}
	first, err := b.produce(k, tpA, 0, recs)
	b.must(err, nil)
	again, err := b.produce(k, tpA, 0, recs)
	b.must(err, nil)
	next, err := b.produce(k, tpA, 2, recs[:1])
	b.must(err, nil)
	if first != 0 || again != 0 || next != 2 || b.log(tpA).end() != 3 {
		t.Fatalf("offsets %d, %d, %d, end %d", first, again, next, b.log(tpA).end())
	}
}

func TestTheLogDoesNotShareBytesWithTheProducer(t *testing.T) {
	b := brokerFor(t)
	r := &kgo.Record{Topic: "t", Key: []byte("k"), Value: []byte("v"), Headers: []kgo.RecordHeader{{Key: "h", Value: []byte("x")}}}
	_, err := b.append(tpA, []*kgo.Record{r})
	b.must(err, nil)
	r.Key[0], r.Value[0], r.Headers[0].Value[0] = '!', '!', '!'
	got, _, _ := b.log(tpA).read(0, 1)
	if string(got[0].Key) != "k" || string(got[0].Value) != "v" || string(got[0].Headers[0].Value) != "x" {
		t.Fatalf("the log changed with the producer's buffers: %v", got[0])
	}
	got[0].Value = nil
	if again, _, _ := b.log(tpA).read(0, 1); again[0].Value == nil {
		t.Fatal("the log changed with the reader's record")
	}
}

func TestAMemberThatGivesNothingUpIsPutOut(t *testing.T) {
	b := brokerFor(t)
	beatAs := func(id, instance string, seq int, owns ...seam.Task) []seam.Task {
		_, tasks, err := b.heartbeat(beat{group: "g", id: id, instance: instance, seq: seq, owns: owns})
		b.must(err, nil)
		return tasks
	}
	g := b.group("g")
	g.subs[0].Tasks = 2
	g.plan()
	all := beatAs(b.member.ID, "a", 2)
	if len(all) != 2 {
		t.Fatalf("a has %v", all)
	}
	id := b.broker.join(seam.GroupConfig{Group: "g", Instance: "b", Session: time.Hour, Subs: g.subs}, seam.Facts{})
	g.byInstance("a").session = int64(time.Hour)
	for seq := 3; b.now < int64(time.Minute); seq++ {
		if got := beatAs(id, "b", seq); len(got) != 0 {
			t.Fatalf("b has %v, which a has not given up", got)
		}
		if kept := beatAs(b.member.ID, "a", seq, all...); len(kept) != 1 {
			t.Fatalf("a should have one task: %v", kept)
		}
		b.now += int64(time.Second)
		b.tick()
	}
	b.now += int64(time.Second)
	b.tick()
	b.must(b.fence(b.member), kerr.UnknownMemberID)
	if got := beatAs(id, "b", 1000); len(got) != 2 {
		t.Fatalf("b has %v", got)
	}
}

func TestALateHeartbeatGivesNothingUp(t *testing.T) {
	b := brokerFor(t)
	task := seam.Task{}
	b.heartbeat(beat{group: "g", id: b.member.ID, instance: "a", seq: 3, owns: []seam.Task{task}})
	b.group("g").byInstance("a").target = nil // a plan gives it to somebody else
	b.heartbeat(beat{group: "g", id: b.member.ID, instance: "a", seq: 2})
	if m := b.group("g").byInstance("a"); !slices.Contains(m.owned, task) {
		t.Fatal("an old heartbeat gave up a task")
	}
}
