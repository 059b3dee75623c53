package kafka

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/semelstream/semel/internal/seam"
)

// An old application is one as Kafka Streams is: a group with its protocol, and
// offsets.
type oldApp struct {
	t     *testing.T
	w     world
	b     *broker
	group string
	in    seam.TP
}

func (w world) old(t *testing.T) *oldApp {
	b := w.broker(t)
	o := &oldApp{t: t, w: w, b: b, group: uid("old")}
	o.in = tp(w.topic(t, b, 1), 0)
	o.commit(7)
	return o
}

// commit is one without a member, which an empty group takes.
func (o *oldApp) commit(at int64) {
	o.t.Helper()
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Group, req.Generation = o.group, -1
	topic := kmsg.NewOffsetCommitRequestTopic()
	topic.Topic = o.in.Topic
	p := kmsg.NewOffsetCommitRequestTopicPartition()
	p.Offset = at
	topic.Partitions = append(topic.Partitions, p)
	req.Topics = append(req.Topics, topic)
	ok(o.t, o.b.again(ctx(o.t), "committing", func() error {
		resp, err := req.RequestWith(ctx(o.t), o.b.cl)
		if err != nil {
			return err
		}
		return offsetCommitted(resp)
	}))
}

func offsetCommitted(resp *kmsg.OffsetCommitResponse) error {
	return kerr.ErrorForCode(resp.Topics[0].Partitions[0].ErrorCode)
}

// killed joins and never says a word again, as one does that was killed.
func (o *oldApp) killed(protocol string, session time.Duration) {
	o.t.Helper()
	req := kmsg.NewPtrJoinGroupRequest()
	req.Group, req.ProtocolType = o.group, "consumer"
	req.SessionTimeoutMillis, req.RebalanceTimeoutMillis = int32(session.Milliseconds()), int32(session.Milliseconds())
	p := kmsg.NewJoinGroupRequestProtocol()
	p.Name = protocol
	meta := kmsg.NewConsumerMemberMetadata()
	meta.Topics = []string{o.in.Topic}
	p.Metadata = meta.AppendTo(nil)
	req.Protocols = append(req.Protocols, p)
	var joined *kmsg.JoinGroupResponse
	ok(o.t, o.b.again(ctx(o.t), "joining", func() (err error) {
		for range 2 { // the first answer is the member's id
			if joined, err = req.RequestWith(ctx(o.t), o.b.cl); err != nil {
				return err
			}
			req.MemberID = joined.MemberID
			if err = kerr.ErrorForCode(joined.ErrorCode); !errors.Is(err, kerr.MemberIDRequired) {
				return err
			}
		}
		return err
	}))
	sync := kmsg.NewPtrSyncGroupRequest()
	sync.Group, sync.MemberID, sync.Generation = o.group, joined.MemberID, joined.Generation
	sync.ProtocolType, sync.Protocol = kmsg.StringPtr("consumer"), kmsg.StringPtr(protocol)
	a := kmsg.NewSyncGroupRequestGroupAssignment()
	a.MemberID = joined.MemberID
	sync.GroupAssignment = append(sync.GroupAssignment, a)
	resp := must[*kmsg.SyncGroupResponse](o.t)(sync.RequestWith(ctx(o.t), o.b.cl))
	ok(o.t, kerr.ErrorForCode(resp.ErrorCode))
}

// streams is a balancer with Kafka Streams' name.
type streams struct{ kgo.GroupBalancer }

func (streams) ProtocolName() string { return streamsProtocol }

// alive joins and stays.
func (o *oldApp) alive() {
	o.t.Helper()
	joined := make(chan struct{}, 16)
	cl := must[*kgo.Client](o.t)(kgo.NewClient(
		kgo.SeedBrokers(o.w.addrs...), kgo.ClientID("thread-1"), kgo.ConsumerGroup(o.group), kgo.ConsumeTopics(o.in.Topic),
		kgo.Balancers(streams{kgo.RangeBalancer()}), kgo.HeartbeatInterval(200*time.Millisecond), kgo.SessionTimeout(o.w.session()),
		kgo.OnPartitionsAssigned(func(context.Context, *kgo.Client, map[string][]int32) { joined <- struct{}{} }),
	))
	o.t.Cleanup(cl.Close)
	select {
	case <-joined:
	case <-ctx(o.t).Done():
		o.t.Fatal("it did not join")
	}
}

func (o *oldApp) takeOver(evict bool) error {
	return Takeover{Group: o.group, Session: o.w.session(), Evict: evict, comeBack: 3 * time.Second}.run(ctx(o.t), o.b.admin)
}

func (o *oldApp) members() int {
	return len(must[groupLook](o.t)(o.b.look(ctx(o.t), o.group)).members)
}

func TestMembersThatAreDeadAreWaitedFor(t *testing.T) {
	everywhere(t, func(t *testing.T, w world) {
		o := w.old(t)
		o.killed(streamsProtocol, w.session())
		if n := o.members(); n != 1 {
			t.Fatalf("%d members before", n)
		}
		start := time.Now()
		ok(t, o.takeOver(false))
		if d := time.Since(start); d < w.session()/2 {
			t.Errorf("took over after %v, before the session ended", d)
		}
		ok(t, o.takeOver(false)) // again
	})
}

func TestMembersThatAreDeadAreMadeToLeave(t *testing.T) {
	everywhere(t, func(t *testing.T, w world) {
		o := w.old(t)
		o.killed(streamsProtocol, time.Minute)
		ok(t, o.takeOver(true))
		if n := o.members(); n != 0 {
			t.Errorf("%d members after", n)
		}
	})
}

func TestMembersThatLiveAreNotTakenOver(t *testing.T) {
	everywhere(t, func(t *testing.T, w world) {
		o := w.old(t)
		o.alive()
		for _, evict := range []bool{false, true} {
			start := time.Now()
			err := o.takeOver(evict)
			t.Logf("after %v: %v", time.Since(start), err)
			if !errors.Is(err, ErrRunning) {
				t.Fatalf("evict %v: got %v, want ErrRunning", evict, err)
			}
			if !strings.Contains(err.Error(), "thread-1 at ") {
				t.Errorf("who lives is not told: %v", err)
			}
		}
	})
}

func TestGroupsOfOtherProgramsAreLeftAlone(t *testing.T) {
	everywhere(t, func(t *testing.T, w world) {
		o := w.old(t)
		o.killed("range", time.Minute)
		if err := o.takeOver(true); !errors.Is(err, ErrForeign) {
			t.Fatalf("got %v, want ErrForeign", err)
		}
		if n := o.members(); n != 1 {
			t.Errorf("%d members after", n)
		}
	})
}

func TestAGroupThatIsOursAlreadyStaysAsItIs(t *testing.T) {
	everywhere(t, func(t *testing.T, w world) {
		o := w.old(t)
		o.killed(ownProtocol, time.Minute)
		ok(t, o.takeOver(true))
		if n := o.members(); n != 1 {
			t.Errorf("%d members after", n)
		}
	})
}

func TestAGroupWithoutOffsetsIsNotTakenOver(t *testing.T) {
	everywhere(t, func(t *testing.T, w world) {
		o := w.old(t)
		o.group = uid("misspelt")
		if err := o.takeOver(false); !errors.Is(err, ErrNoOffsets) {
			t.Fatalf("got %v, want ErrNoOffsets", err)
		}
	})
}

// What is fenced are the producers of this application and of no other, with an
// open transaction and without.
func TestTheOldProducersAreFenced(t *testing.T) {
	everywhere(t, func(t *testing.T, w world) {
		o := w.old(t)
		const process = "-0f8fad5b-d9cb-469f-a165-70867728950e-1"
		open1, other := w.txn(t, w.broker(t), o.group+process), w.txn(t, w.broker(t), o.group+"-eu"+process)
		idle := must[*kgo.Client](t)(kgo.NewClient(kgo.SeedBrokers(w.addrs...), kgo.TransactionalID(o.group+process+"1")))
		defer idle.Close()
		ok(t, writes(t, idle, rec(o.in.Topic, 0, "before")))
		open(t, open1, rec(o.in.Topic, 0, "never"))
		ok(t, open1.Prepare(ctx(t), seam.Member{}, nil))
		open(t, other, rec(o.in.Topic, 0, "other"))
		ok(t, o.takeOver(false))
		if err := open1.End(ctx(t), true); err == nil {
			t.Error("the open transaction was committed")
		}
		if err := writes(t, idle, rec(o.in.Topic, 0, "never")); err == nil {
			t.Error("a fenced producer has begun another transaction")
		}
		ok(t, other.Prepare(ctx(t), seam.Member{}, nil))
		ok(t, other.End(ctx(t), true))
		c := must[seam.Consumer](t)(o.b.Consumer(ctx(t)))
		defer c.Close()
		c.Assign(o.in, 0)
		end := must[map[seam.TP]int64](t)(o.b.Stable(ctx(t), []seam.TP{o.in}))[o.in]
		if got := read(t, c, o.in, end); !slices.Equal(got, []string{"before", "other"}) {
			t.Errorf("committed is %q", got)
		}
	})
}

// writes is a whole transaction of a plain producer.
func writes(t *testing.T, cl *kgo.Client, r *kgo.Record) error {
	if err := cl.BeginTransaction(); err != nil {
		return err
	}
	err := cl.ProduceSync(ctx(t), r).FirstErr()
	return errors.Join(err, cl.EndTransaction(ctx(t), kgo.TransactionEndTry(err == nil)))
}

func TestTransactionalIDsOfKafkaStreams(t *testing.T) {
	match := streamsIDs("a.b")
	for id, want := range map[string]bool{
		"a.b-0f8fad5b-d9cb-469f-a165-70867728950e-1":  true,
		"a.b-0F8FAD5B-d9cb-469f-a165-70867728950e-12": true,
		"a.b-0_17": true, // before exactly_once_v2
		"a.b-eu-0f8fad5b-d9cb-469f-a165-70867728950e-1": false,
		"acb-0f8fad5b-d9cb-469f-a165-70867728950e-1":    false,
		"a.b-0f8fad5b-d9cb-469f-a165-70867728950e":      false,
		"a.b-@0f8fad5b-d9cb-469f-a165-70867728950e-0":   false, // ours
		"a.b-eu-0_17": false,
	} {
		if got := match(id); got != want {
			t.Errorf("%s: %v", id, got)
		}
	}
}
