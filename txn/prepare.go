package txn

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Prepare waits until everything produced is written and puts the positions of
// the inputs into the transaction, as group member m. offs may be empty (output
// of timers); m must be a member then too, if offs is not.
//
// An error about a record is a *[ProduceError] and wins over others that came
// before Prepare returned.
func (p *Producer) Prepare(ctx context.Context, m Member, offs Offsets) error {
	if err := p.usable(); err != nil {
		return err
	}
	if err := p.preparable(m, offs); err != nil {
		return p.fail(fmt.Errorf("txn: prepare %s: %w", p.id, err))
	}
	flushed, sent := p.flushAndSend(ctx, m, offs)
	if lost := p.lost.Load(); lost != nil {
		return p.fail(fmt.Errorf("txn: prepare %s: %w", p.id, withFix(lost, lost.Record.Topic)))
	}
	if sent != nil {
		return p.fail(sent)
	}
	if flushed != nil {
		return p.fail(fmt.Errorf("txn: waiting for the records of %s: %w", p.id, flushed))
	}
	p.prepared = true
	return nil
}

// settled is how old the youngest partition of a transaction must be for its
// offsets to be sent while records are on their way.
const settled = 50 * time.Millisecond

// flushAndSend writes the records and sends the offsets: side by side, which
// saves a round trip, unless a partition is so young that its first record may
// not be acknowledged. The leader of such a partition asks the transaction's
// coordinator about it, and a coordinator that is busy with the offsets turns
// the leader away: the record is then tried again, tens of milliseconds later.
// (Measured: 7 % of all commits, also after an AddPartitionsToTxn by hand.)
func (p *Producer) flushAndSend(ctx context.Context, m Member, offs Offsets) (flushed, sent error) {
	k := identity{p.id, p.pid, p.epoch}
	if time.Since(p.addedAt) < settled {
		if flushed = p.cl.Flush(ctx); flushed == nil && p.lost.Load() == nil {
			sent = p.sendOffsets(ctx, k, m, offs)
		}
		return flushed, sent
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan error, 1)
	go func() {
		err := p.sendOffsets(ctx, k, m, offs)
		if err != nil {
			cancel() // the transaction is lost, do not wait for its records
		}
		done <- err
	}()
	flushed = p.cl.Flush(ctx)
	if flushed != nil || p.lost.Load() != nil {
		cancel()
	}
	return flushed, <-done
}

func (p *Producer) preparable(m Member, offs Offsets) error {
	if p.produced == 0 {
		return ErrEmpty
	}
	if len(offs) > 0 {
		return checkMember(m)
	}
	return nil
}

// checkMember refuses what no group fences.
func checkMember(m Member) error {
	if m.Group == "" || m.ID == "" || m.Generation < 0 {
		return fmt.Errorf("%w: member %q, generation %d of group %q", ErrNoMember, m.ID, m.Generation, m.Group)
	}
	return nil
}

// sendOffsets is TxnOffsetCommit v5, repeated as long as it may help: sending
// it twice changes nothing, and a copy that arrives after the transaction is
// refused for its epoch.
func (p *Producer) sendOffsets(ctx context.Context, k identity, m Member, offs Offsets) error {
	if len(offs) == 0 {
		return nil
	}
	if p.old {
		if err := p.addOffsets(ctx, k, m.Group); err != nil {
			return err
		}
	}
	req := offsetsRequest(k, m, offs)
	return again(ctx, "txn: TxnOffsetCommit of "+k.id, func() error {
		resp, err := req.RequestWith(ctx, p.cl)
		if err != nil {
			return err
		}
		return withFix(txnOffsetError(resp), m.Group)
	})
}

func offsetsRequest(k identity, m Member, offs Offsets) *kmsg.TxnOffsetCommitRequest {
	req := kmsg.NewPtrTxnOffsetCommitRequest()
	req.TransactionalID, req.ProducerID, req.ProducerEpoch = k.id, k.pid, k.epoch
	req.Group, req.MemberID, req.Generation = m.Group, m.ID, m.Generation
	if m.Instance != "" {
		req.InstanceID = &m.Instance
	}
	for _, tp := range offs.Sorted() {
		if n := len(req.Topics); n == 0 || req.Topics[n-1].Topic != tp.Topic {
			t := kmsg.NewTxnOffsetCommitRequestTopic()
			t.Topic = tp.Topic
			req.Topics = append(req.Topics, t)
		}
		o := offs[tp]
		q := kmsg.NewTxnOffsetCommitRequestTopicPartition()
		q.Partition, q.Offset, q.LeaderEpoch, q.Metadata = tp.Partition, o.At, o.Epoch, &o.Metadata
		last := &req.Topics[len(req.Topics)-1]
		last.Partitions = append(last.Partitions, q)
	}
	return req
}

func txnOffsetError(resp *kmsg.TxnOffsetCommitResponse) (err error) {
	for _, t := range resp.Topics {
		for _, q := range t.Partitions {
			err = worst(err, partitionError(t.Topic, q.Partition, q.ErrorCode))
		}
	}
	return err
}

// addOffsets is what transaction.version 2 made unnecessary.
func (p *Producer) addOffsets(ctx context.Context, k identity, group string) error {
	req := kmsg.NewPtrAddOffsetsToTxnRequest()
	req.TransactionalID, req.ProducerID, req.ProducerEpoch, req.Group = k.id, k.pid, k.epoch, group
	return again(ctx, "txn: AddOffsetsToTxn of "+k.id, func() error {
		resp, err := req.RequestWith(ctx, p.cl)
		if err != nil {
			return err
		}
		return withFix(kerr.ErrorForCode(resp.ErrorCode), p.id)
	})
}
