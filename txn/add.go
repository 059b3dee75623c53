package txn

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Add puts partitions into the transaction, and opens it if none is open.
// Those that are in it already cost nothing. It repeats what passes, above all
// "the markers of your last transaction are not written yet", until ctx ends.
// A transaction in which nothing is produced cannot be ended: it stays open, and
// what is added and produced next is in it. [Producer.CommitOffsets] may be called
// meanwhile.
func (p *Producer) Add(ctx context.Context, tps []TP) error {
	if err := p.usable(); err != nil {
		return err
	}
	req := p.addRequest(tps)
	if req == nil {
		return nil
	}
	if err := p.begin(ctx); err != nil {
		return p.fail(err)
	}
	req.TransactionalID, req.ProducerID, req.ProducerEpoch = p.id, p.pid, p.epoch
	start := time.Now()
	err := again(ctx, "txn: AddPartitionsToTxn of "+p.id, func() error {
		// The client sends v3, the version for clients; it fills the request's
		// second form and would send that one again.
		req.Transactions = nil
		resp, err := req.RequestWith(ctx, p.cl)
		if err != nil {
			return err
		}
		return withFix(addError(resp), p.id)
	})
	if err != nil {
		return p.fail(err)
	}
	p.addedAt = time.Now()
	if p.cut.Swap(false) || p.addedAt.Sub(start) > slowAdd {
		if err := p.tellLast(ctx); err != nil {
			return p.fail(err)
		}
	}
	p.meet(tps)
	for _, t := range req.Topics {
		for _, n := range t.Partitions {
			p.added[TP{Topic: t.Topic, Partition: n}] = struct{}{}
		}
	}
	return nil
}

// addRequest has those of tps that are new; nil if none is.
func (p *Producer) addRequest(tps []TP) *kmsg.AddPartitionsToTxnRequest {
	var fresh []TP
	for _, tp := range tps {
		if _, ok := p.added[tp]; !ok {
			fresh = append(fresh, tp)
		}
	}
	if len(fresh) == 0 {
		return nil
	}
	slices.SortFunc(fresh, TP.Compare)
	req := kmsg.NewPtrAddPartitionsToTxnRequest()
	for _, tp := range slices.Compact(fresh) {
		if n := len(req.Topics); n == 0 || req.Topics[n-1].Topic != tp.Topic {
			t := kmsg.NewAddPartitionsToTxnRequestTopic()
			t.Topic = tp.Topic
			req.Topics = append(req.Topics, t)
		}
		last := &req.Topics[len(req.Topics)-1]
		last.Partitions = append(last.Partitions, tp.Partition)
	}
	return req
}

// begin opens the client's transaction and notes as whom.
func (p *Producer) begin(ctx context.Context) error {
	if p.open {
		return nil
	}
	if err := p.cl.BeginTransaction(); err != nil {
		return fmt.Errorf("txn: begin %s: %w", p.id, err)
	}
	pid, epoch, err := p.cl.ProducerID(ctx)
	if err != nil {
		return fmt.Errorf("txn: begin %s: %w", p.id, err)
	}
	p.open, p.prepared, p.produced = true, false, 0
	p.pid, p.epoch = pid, epoch
	return nil
}

func addError(resp *kmsg.AddPartitionsToTxnResponse) (err error) {
	for _, t := range resp.Topics {
		for _, q := range t.Partitions {
			err = worst(err, partitionError(t.Topic, q.Partition, q.ErrorCode))
		}
	}
	return err
}
