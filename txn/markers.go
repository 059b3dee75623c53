package txn

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/zap"
)

// Kafka 4.4 loses markers (KAFKA-20734): a coordinator that has a
// transaction to end takes a partition without a leader for a deleted one, and
// is done without it. A killed broker's partitions are without a leader while it
// comes back. What the transaction wrote there stays open: its readers stop, the
// group's offsets stay unstable, and the producer's next transaction there takes
// it along, whichever way that one ends. docs/design/009 has the story.
//
// So whoever takes a transactional id over first asks what became of its last
// transaction, since InitProducerID makes the coordinator forget it, then the
// partitions whether they know, and tells those that do not.

// A Scope is where the transactions of an application write.
type Scope struct {
	Group  string      // whose offsets they commit; "" is none
	Topics []string    // those that do not exist are passed over
	Logger *zap.Logger // is told of markers that were lost; nil is nobody
}

// ErrLostMarkers is in the chain of a refusal to go on where markers are
// missing that this principal may not write.
var ErrLostMarkers = errors.New("a transaction has ended, but brokers have lost the markers that say so")

// WriteLostMarkers looks for ended transactions of all ids that match which are
// still open in partitions of scope, and ends them there as their coordinators
// have. It takes no id from its owner. It returns the ids that it did this for,
// also with an error. An error that wraps [ErrLostMarkers] says which permission is
// missing.
func WriteLostMarkers(ctx context.Context, cl *kgo.Client, scope Scope, match func(id string) bool) (ids []string, err error) {
	var ended []string
	err = again(ctx, "txn: ListTransactions", func() (err error) {
		req := kmsg.NewPtrListTransactionsRequest()
		req.StateFilters = []string{"CompleteCommit", "CompleteAbort"}
		ended, _, err = listed(ctx, cl, req, match)
		return err
	})
	if err != nil {
		return nil, err
	}
	for _, id := range ended {
		f, err := describe(ctx, cl, id)
		if err != nil {
			return ids, err
		}
		wrote, err := f.tell(ctx, cl, scope)
		if wrote {
			ids = append(ids, id)
		}
		if err != nil {
			return ids, err
		}
	}
	return ids, nil
}

// settle ends the last transaction with an id for good: aborts it if it is
// open, waits until the coordinator is done with it, and looks whether the
// partitions know. It fences the owner of an open transaction, no other.
func settle(ctx context.Context, cl *kgo.Client, scope Scope, id string) error {
	var last former
	err := again(ctx, "txn: ending the last transaction of "+id, func() (err error) {
		if last, err = describe(ctx, cl, id); err != nil {
			return err
		}
		switch {
		case last.state == "Ongoing":
			k := identity{id: id}
			return k.init(ctx, cl) // is answered "concurrent transactions" while it aborts
		case strings.HasPrefix(last.state, "Prepare"):
			return kerr.ConcurrentTransactions
		}
		return nil
	})
	if err != nil {
		return err
	}
	_, err = last.tell(ctx, cl, scope)
	return err
}

// A cut says that a connection to a broker has ended: perhaps the broker has, and
// its partitions are without a leader.
type cut struct{ atomic.Bool }

// OnBrokerDisconnect is kgo's hook.
func (c *cut) OnBrokerDisconnect(kgo.BrokerMetadata, net.Conn) { c.Store(true) }

// slowAdd is when the wait for the markers of the last transaction makes one think
// the same.
const slowAdd = 500 * time.Millisecond

// tellLast is what settle does, for a Producer whose new transaction is open: once
// something is produced in it, the two cannot be told apart any more. Where it may
// not write markers of a commit it goes on: the next commit ends the last one too,
// and to stop would be to abort it.
func (p *Producer) tellLast(ctx context.Context) error {
	if len(p.last) == 0 {
		return nil
	}
	tps, err := Scope{Group: p.scope.Group}.partitions(ctx, p.cl)
	if err != nil {
		return err
	}
	tps = slices.AppendSeq(tps, maps.Keys(p.last))
	slices.SortFunc(tps, TP.Compare)
	_, err = tellAll(ctx, p.cl, p.scope, identity{p.id, p.pid, p.epoch}, tps, p.committed)
	if errors.Is(err, ErrLostMarkers) && p.committed {
		p.log.Warn("the next commit has to make up for markers that brokers have lost", zap.Error(err))
		return nil
	}
	return err
}

// former is what a coordinator knows of the last transaction with an id.
type former struct {
	identity
	state string
	parts []string // of a transaction that is not ended
}

// describe asks the coordinator of an id; the state of an unknown one is "".
func describe(ctx context.Context, cl *kgo.Client, id string) (former, error) {
	f := former{identity: identity{id: id}}
	req := kmsg.NewPtrDescribeTransactionsRequest()
	req.TransactionalIDs = []string{id}
	resp, err := req.RequestWith(ctx, cl)
	if err == nil {
		for _, t := range resp.TransactionStates {
			err = kerr.ErrorForCode(t.ErrorCode)
			f.state, f.pid, f.epoch = t.State, t.ProducerID, t.ProducerEpoch
			for _, topic := range t.Topics {
				for _, n := range topic.Partitions {
					f.parts = append(f.parts, TP{Topic: topic.Topic, Partition: n}.String())
				}
			}
		}
	}
	if errors.Is(err, kerr.TransactionalIDNotFound) {
		return former{identity: identity{id: id}}, nil
	}
	if err != nil {
		return f, fmt.Errorf("describing transaction %s: %w", id, withFix(err, id))
	}
	return f, nil
}

// tell ends the transaction in the partitions of scope that do not know yet
// that it has ended.
func (f *former) tell(ctx context.Context, cl *kgo.Client, scope Scope) (wrote bool, err error) {
	if !strings.HasPrefix(f.state, "Complete") {
		return false, nil // there is none, or another one has begun
	}
	tps, err := scope.partitions(ctx, cl)
	if err != nil || len(tps) == 0 {
		return false, err
	}
	return tellAll(ctx, cl, scope, f.identity, tps, f.state == "CompleteCommit")
}

// tellAll ends in tps what producer k has left open there before its epoch.
func tellAll(ctx context.Context, cl *kgo.Client, scope Scope, k identity, tps []TP, commit bool) (wrote bool, err error) {
	lost, err := openBefore(ctx, cl, k, tps)
	if err != nil {
		return false, err
	}
	for _, x := range lost {
		if err := x.write(ctx, cl, commit); err != nil {
			return wrote, x.refused(err, commit)
		}
		wrote = true
		scope.log().Warn("brokers had lost a marker of a transaction that has ended; it is written now",
			zap.String("transactional_id", x.id), zap.Bool("committed", commit), zap.Stringer("partition", x.TP))
	}
	return wrote, nil
}

func (s Scope) log() *zap.Logger {
	if s.Logger == nil {
		return zap.NewNop()
	}
	return s.Logger
}

// offsetsTopic has a group's offsets.
const offsetsTopic = "__consumer_offsets"

// partitions are those of the topics, and that of the group's offsets.
func (s Scope) partitions(ctx context.Context, cl *kgo.Client) (tps []TP, err error) {
	names := slices.Clone(s.Topics)
	if s.Group != "" {
		names = append(names, offsetsTopic)
	}
	if len(names) == 0 {
		return nil, nil
	}
	req := kmsg.NewPtrMetadataRequest()
	for _, name := range names {
		t := kmsg.NewMetadataRequestTopic()
		t.Topic = kmsg.StringPtr(name)
		req.Topics = append(req.Topics, t)
	}
	err = again(ctx, "txn: Metadata", func() error {
		resp, err := req.RequestWith(ctx, cl)
		if err != nil {
			return err
		}
		tps = tps[:0]
		for _, t := range resp.Topics {
			n := int32(len(t.Partitions))
			switch {
			case t.Topic == nil || n == 0:
			case *t.Topic == offsetsTopic:
				tps = append(tps, TP{Topic: offsetsTopic, Partition: javaHash(s.Group) & 0x7fffffff % n})
			default:
				for p := range n {
					tps = append(tps, TP{Topic: *t.Topic, Partition: p})
				}
			}
		}
		return nil
	})
	return tps, err
}

// javaHash is Java's String.hashCode of ASCII, by which Kafka chooses the partition of
// a group.
func javaHash(s string) (h int32) {
	for _, c := range []byte(s) {
		h = 31*h + int32(c)
	}
	return h
}

// open is a transaction that is open in a partition.
type open struct {
	TP
	identity
	coordinator int32 // epoch
}

// openBefore are the transactions that producer k has open in tps since an
// epoch before its own. It waits for partitions without a leader, but passes over
// those that may not be looked into.
func openBefore(ctx context.Context, cl *kgo.Client, k identity, tps []TP) (found []open, err error) {
	req := kmsg.NewPtrDescribeProducersRequest()
	for _, tp := range tps {
		if n := len(req.Topics); n == 0 || req.Topics[n-1].Topic != tp.Topic {
			t := kmsg.NewDescribeProducersRequestTopic()
			t.Topic = tp.Topic
			req.Topics = append(req.Topics, t)
		}
		last := &req.Topics[len(req.Topics)-1]
		last.Partitions = append(last.Partitions, tp.Partition)
	}
	err = again(ctx, "txn: DescribeProducers", func() (err error) {
		found = found[:0]
		for _, shard := range cl.RequestSharded(ctx, req) {
			if shard.Err != nil {
				err = worst(err, shard.Err)
				continue
			}
			for _, t := range shard.Resp.(*kmsg.DescribeProducersResponse).Topics {
				for _, p := range t.Partitions {
					err = worst(err, lookedInto(t.Topic, p.Partition, p.ErrorCode))
					found = k.appendOpen(found, TP{Topic: t.Topic, Partition: p.Partition}, p.ActiveProducers)
				}
			}
		}
		return err
	})
	return found, err
}

// appendOpen adds those of a partition.
func (k identity) appendOpen(found []open, tp TP, producers []kmsg.DescribeProducersResponseTopicPartitionActiveProducer) []open {
	for _, x := range producers {
		if x.ProducerID == k.pid && x.ProducerEpoch < int32(k.epoch) && x.CurrentTxnStartOffset >= 0 {
			found = append(found, open{tp, identity{k.id, k.pid, int16(x.ProducerEpoch)}, max(x.CoordinatorEpoch, 0)})
		}
	}
	return found
}

func lookedInto(topic string, partition int32, code int16) error {
	err := partitionError(topic, partition, code)
	if errors.Is(err, kerr.TopicAuthorizationFailed) || errors.Is(err, kerr.UnknownTopicOrPartition) {
		return nil
	}
	return err
}

// write ends the transaction in its partition. The marker has the epoch that is
// open there, so that it cannot end one that began later.
func (o open) write(ctx context.Context, cl *kgo.Client, commit bool) error {
	t := kmsg.NewWriteTxnMarkersRequestMarkerTopic()
	t.Topic, t.Partitions = o.Topic, []int32{o.Partition}
	m := kmsg.NewWriteTxnMarkersRequestMarker()
	m.ProducerID, m.ProducerEpoch, m.Committed, m.CoordinatorEpoch = o.pid, o.epoch, commit, o.coordinator
	m.Topics = append(m.Topics, t)
	req := kmsg.NewPtrWriteTxnMarkersRequest()
	req.Markers = append(req.Markers, m)
	return again(ctx, "txn: WriteTxnMarkers", func() error {
		resp, err := req.RequestWith(ctx, cl)
		if err != nil {
			return err
		}
		for _, m := range resp.Markers {
			for _, t := range m.Topics {
				for _, p := range t.Partitions {
					err = worst(err, partitionError(t.Topic, p.Partition, p.ErrorCode))
				}
			}
		}
		return err
	})
}

// refused says what an operator must know: the usual tool would do harm.
func (o open) refused(err error, commit bool) error {
	if !errors.Is(err, kerr.ClusterAuthorizationFailed) {
		return err
	}
	ended := "aborted"
	if commit {
		ended = "committed"
	}
	return fmt.Errorf("txn: %w [SEMEL-LOST-MARKERS]: the one of %s has %s, and is open in %s (KAFKA-20734): "+
		"grant ClusterAction on the cluster to the application's principal until it has started once, and it writes them; "+
		"do not abort the transaction by hand: %w", ErrLostMarkers, o.id, ended, o.TP, err)
}
