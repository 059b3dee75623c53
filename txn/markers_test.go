package txn

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/semelstream/semel/internal/ownkafka"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

// A broker dies between the records and the markers of three transactions, and
// its partitions are without a leader when their coordinators want to write
// there. That Kafka then loses the markers is the first thing to be seen.
func TestMarkersThatKafkaLosesAreWritten(t *testing.T) {
	c := ownkafka.New(t, "-n", "3", "-o", "broker.session.timeout.ms=3000")
	w := newWorld(t, c.Addrs)
	const dying = 3
	outage := func(which string) *onBroker { return w.onBroker(t, which, dying) }
	committed, aborted, goesOn := outage("committed"), outage("aborted"), outage("goes on")
	for _, o := range []*onBroker{committed, aborted, goesOn} {
		w.must(o.produce(o.p, "before"))
	}
	c.Kill(dying)
	w.must(goesOn.p.End(w.ctx, true)) // its coordinator tries for as long as the partition has its leader
	w.until("partitions without a leader", func() bool { return committed.leader() == -1 })
	w.must(committed.p.End(w.ctx, true))
	w.must(aborted.p.End(w.ctx, false))
	next := make(chan error, 1)
	go func() { next <- goesOn.produce(goesOn.p, "next") }() // in the outage, as an application goes on
	w.until("the end of all transactions", func() bool {
		return strings.HasPrefix(committed.last().state, "Complete") && strings.HasPrefix(aborted.last().state, "Complete") && goesOn.last().state == "Ongoing"
	})
	c.Start(dying)

	for _, o := range []*onBroker{committed, aborted} {
		lost, err := openBefore(w.ctx, w.ask, o.last().identity, []TP{o.out})
		w.must(err)
		if len(lost) != 1 {
			t.Fatalf("%s: open are %v: if Kafka loses no markers any more (KAFKA-20734), docs/design/009 is history", o.id, lost)
		}
	}
	p := aborted.again()
	w.must(aborted.produce(p, "next"))
	w.must(p.End(w.ctx, true))
	aborted.expect("next")
	w.must(<-next)
	w.must(goesOn.p.End(w.ctx, false))
	goesOn.expect("before")
	committed.again()
	committed.expect("before")
}

// onBroker writes to a partition that has one replica, on a broker of choice, which is
// not where its coordinator is.
type onBroker struct {
	*world
	id    string
	out   TP
	p     *Producer
	scope Scope
}

func (w *world) onBroker(t *testing.T, which string, broker int32) *onBroker {
	t.Helper()
	o := &onBroker{world: w}
	w.until("a coordinator elsewhere", func() bool {
		o.id = name(strings.ReplaceAll(which, " ", "-"))
		found := w.adm.FindTxnCoordinators(w.ctx, o.id)[o.id]
		return found.Err == nil && found.NodeID != broker
	})
	topic := w.topic("out", 6)
	w.until("the leaders of a new topic", func() bool {
		m, err := w.adm.Metadata(w.ctx, topic)
		w.must(err)
		for _, p := range m.Topics[topic].Partitions {
			if p.Leader == broker {
				o.out = TP{Topic: topic, Partition: p.Partition}
			}
		}
		return o.out.Topic != ""
	})
	o.scope = Scope{Topics: []string{topic}}
	o.p = o.again()
	return o
}

func (o *onBroker) again() *Producer {
	p := o.bareProducer(o.id).WithScope(o.scope)
	o.must(p.Init(o.ctx))
	return p
}

func (o *onBroker) produce(p *Producer, value string) error {
	if err := p.Add(o.ctx, []TP{o.out}); err != nil {
		return err
	}
	p.Produce([]*kgo.Record{rec(o.out.Topic, o.out.Partition, "k", value)})
	return p.Prepare(o.ctx, Member{}, nil)
}

func (o *onBroker) leader() int32 {
	m, err := o.adm.Metadata(o.ctx, o.out.Topic)
	o.must(err)
	return m.Topics[o.out.Topic].Partitions[o.out.Partition].Leader
}

func (o *onBroker) last() (f former) {
	o.must(again(o.ctx, "the test", func() (err error) {
		f, err = describe(o.ctx, o.ask, o.id)
		return err
	}))
	return f
}

func (o *onBroker) expect(want string) {
	o.Helper()
	var got []string
	for _, r := range o.committed(o.out.Topic) {
		got = append(got, string(r.Value))
	}
	if s := strings.Join(got, " "); s != want {
		o.Errorf("%s: committed values %q, want %q", o.id, s, want)
	}
}

// lossy is an embedded broker whose coordinators call a producer's last transaction
// committed, while it seems to be open in one partition. WriteTxnMarkers is answered
// with code.
func lossy(t *testing.T, code int16) (o *one, last former, lost TP, markers *[]kmsg.WriteTxnMarkersRequestMarker) {
	w := onFake(t)
	o = newOne(w)
	w.must(o.step(o.p, "a", 5))
	w.must(o.p.End(w.ctx, true))
	last, err := describe(w.ctx, w.ask, o.id)
	w.must(err)
	last.state, lost, markers = "CompleteCommit", TP{Topic: o.out, Partition: 1}, new([]kmsg.WriteTxnMarkersRequestMarker)
	answer := func(key kmsg.Key, with func(kmsg.Request, kmsg.Response)) {
		w.fake.ControlKey(key.Int16(), func(req kmsg.Request) (kmsg.Response, error, bool) {
			w.fake.KeepControl()
			resp := req.ResponseKind()
			with(req, resp)
			return resp, nil, true
		})
	}
	answer(kmsg.ListTransactions, func(_ kmsg.Request, resp kmsg.Response) {
		x := kmsg.NewListTransactionsResponseTransactionState()
		x.TransactionalID = o.id
		resp.(*kmsg.ListTransactionsResponse).TransactionStates = []kmsg.ListTransactionsResponseTransactionState{x}
	})
	answer(kmsg.DescribeTransactions, func(req kmsg.Request, resp kmsg.Response) {
		for _, id := range req.(*kmsg.DescribeTransactionsRequest).TransactionalIDs {
			x := kmsg.NewDescribeTransactionsResponseTransactionState()
			x.TransactionalID, x.ErrorCode = id, kerr.TransactionalIDNotFound.Code
			if id == o.id {
				x.ErrorCode, x.State, x.ProducerID, x.ProducerEpoch = 0, last.state, last.pid, last.epoch
			}
			r := resp.(*kmsg.DescribeTransactionsResponse)
			r.TransactionStates = append(r.TransactionStates, x)
		}
	})
	answer(kmsg.DescribeProducers, func(req kmsg.Request, resp kmsg.Response) {
		for _, t := range req.(*kmsg.DescribeProducersRequest).Topics {
			for _, n := range t.Partitions {
				x := kmsg.NewDescribeProducersResponseTopicPartitionActiveProducer()
				x.ProducerID, x.ProducerEpoch, x.CoordinatorEpoch = last.pid, int32(last.epoch), -1
				if (TP{Topic: t.Topic, Partition: n}) == lost {
					x.ProducerEpoch, x.CurrentTxnStartOffset = int32(last.epoch-1), 0
				}
				p := kmsg.NewDescribeProducersResponseTopicPartition()
				p.Partition, p.ActiveProducers = n, append(p.ActiveProducers, x)
				at := kmsg.NewDescribeProducersResponseTopic()
				at.Topic, at.Partitions = t.Topic, append(at.Partitions, p)
				r := resp.(*kmsg.DescribeProducersResponse)
				r.Topics = append(r.Topics, at)
			}
		}
	})
	answer(kmsg.WriteTxnMarkers, func(req kmsg.Request, resp kmsg.Response) {
		for _, m := range req.(*kmsg.WriteTxnMarkersRequest).Markers {
			*markers = append(*markers, m)
			p := kmsg.NewWriteTxnMarkersResponseMarkerTopicPartition()
			p.Partition, p.ErrorCode = m.Topics[0].Partitions[0], code
			t := kmsg.NewWriteTxnMarkersResponseMarkerTopic()
			t.Topic, t.Partitions = m.Topics[0].Topic, append(t.Partitions, p)
			a := kmsg.NewWriteTxnMarkersResponseMarker()
			a.ProducerID, a.Topics = m.ProducerID, append(a.Topics, t)
			r := resp.(*kmsg.WriteTxnMarkersResponse)
			r.Markers = append(r.Markers, a)
		}
	})
	return o, last, lost, markers
}

// The marker says what the coordinator says, with the epoch that is open.
func TestALostMarkerHasTheEpochThatIsOpen(t *testing.T) {
	o, last, lost, markers := lossy(t, 0)
	core, logs := observer.New(zap.WarnLevel)
	scope := Scope{Group: o.member().Group, Topics: []string{o.out, "missing"}, Logger: zap.New(core)}
	wrote, err := WriteLostMarkers(o.ctx, o.ask, scope, func(id string) bool { return id == o.id })
	if err != nil || !slices.Equal(wrote, []string{o.id}) {
		t.Fatal(wrote, err)
	}
	if len(*markers) != 1 {
		t.Fatal(*markers)
	}
	m := (*markers)[0]
	if m.ProducerID != last.pid || m.ProducerEpoch != last.epoch-1 || !m.Committed || m.CoordinatorEpoch != 0 || m.TransactionVersion != 0 ||
		len(m.Topics) != 1 || m.Topics[0].Topic != lost.Topic || !slices.Equal(m.Topics[0].Partitions, []int32{lost.Partition}) {
		t.Errorf("%+v", m)
	}
	if logs.FilterField(zap.String("transactional_id", o.id)).Len() != 1 {
		t.Error("nothing is told of it")
	}
}

func TestWhoMayWriteNoMarkersIsToldWhatToDo(t *testing.T) {
	o, _, lost, _ := lossy(t, kerr.ClusterAuthorizationFailed.Code)
	err := o.bareProducer(o.id).WithScope(Scope{Topics: []string{o.out}}).Init(o.ctx)
	if !errors.Is(err, ErrLostMarkers) || Judge(err) != OutcomeFatal {
		t.Fatal(err)
	}
	for _, want := range []string{"SEMEL-LOST-MARKERS", o.id, lost.String(), "has committed", "ClusterAction", "do not abort"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in %v", want, err)
		}
	}
}

// A partition without a leader is waited for, one that may not be looked into is
// passed over.
func TestPartitionsThatMayNotBeLookedInto(t *testing.T) {
	for _, c := range []struct {
		code *kerr.Error
		want error
	}{
		{kerr.TopicAuthorizationFailed, nil},
		{kerr.UnknownTopicOrPartition, nil},
		{kerr.NotLeaderForPartition, kerr.NotLeaderForPartition},
	} {
		if err := lookedInto("t", 0, c.code.Code); !errors.Is(err, c.want) {
			t.Errorf("%v: %v", c.code, err)
		}
	}
}

func TestGroupsPartitionIsChosenAsKafkaDoes(t *testing.T) {
	for s, want := range map[string]int32{"": 0, "abc": 96354, "polygenelubricants": -2147483648} {
		if h := javaHash(s); h != want {
			t.Errorf("%q hashes to %d, want %d", s, h, want)
		}
	}
}
