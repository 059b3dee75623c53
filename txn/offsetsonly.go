package txn

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// An identity is what every request of a transaction carries.
type identity struct {
	id    string
	pid   int64
	epoch int16
}

// offsetsSuffix makes the second transactional id of a Producer.
const offsetsSuffix = "-offsets"

// CommitOffsets commits positions in a transaction that produces nothing, as
// group member m. Nothing was produced since the last End.
//
// The client ends a transaction only if it produced in it, so these have a
// transactional id of their own, this Producer's with "-offsets" after it, and
// are made by hand. An ordinary OffsetCommit would do most of the time, but is
// not fenced by producer: a copy of one that got no answer and was repeated
// can reach the coordinator seconds later, after newer offsets, and take the
// group back to the old ones. Here such a copy has an old epoch and is refused.
//
// The error of a commit that may have happened wraps [ErrUnknownOutcome], and
// any error ends the Producer.
func (p *Producer) CommitOffsets(ctx context.Context, m Member, offs Offsets) error {
	if err := p.usable(); err != nil || len(offs) == 0 {
		return err
	}
	k := &p.offsets
	if err := checkMember(m); err != nil {
		return p.fail(fmt.Errorf("txn: offsets of %s: %w", p.id, err))
	}
	if err := p.sendOffsets(ctx, *k, m, offs); err != nil {
		return p.fail(err)
	}
	if err := endByHand(ctx, p.cl, k); err != nil {
		return p.fail(endError(k.id, true, err))
	}
	return nil
}

// init is InitProducerID, once, for an id that is not the client's own.
func (k *identity) init(ctx context.Context, cl *kgo.Client) error {
	req := kmsg.NewPtrInitProducerIDRequest()
	req.TransactionalID = &k.id
	req.TransactionTimeoutMillis = int32(timeout.Milliseconds())
	req.ProducerID, req.ProducerEpoch = -1, -1
	resp, err := req.RequestWith(ctx, cl)
	if err != nil {
		return err
	}
	if err := kerr.ErrorForCode(resp.ErrorCode); err != nil {
		return withFix(err, k.id)
	}
	k.pid, k.epoch = resp.ProducerID, resp.ProducerEpoch
	return nil
}

// endByHand commits. A repeated request whose first copy came through is
// answered as that was, and the answer carries the next epoch.
func endByHand(ctx context.Context, cl *kgo.Client, k *identity) error {
	req := kmsg.NewPtrEndTxnRequest()
	req.TransactionalID, req.ProducerID, req.ProducerEpoch, req.Commit = k.id, k.pid, k.epoch, true
	return again(ctx, "txn: EndTxn of "+k.id, func() error {
		resp, err := req.RequestWith(ctx, cl)
		if err != nil {
			return err
		}
		if err := kerr.ErrorForCode(resp.ErrorCode); err != nil {
			return withFix(err, k.id)
		}
		if resp.Version >= 5 && resp.ProducerID >= 0 {
			k.pid, k.epoch = resp.ProducerID, resp.ProducerEpoch
		}
		return nil
	})
}

// initBoth fences the former owner of both ids, side by side.
func (p *Producer) initBoth(ctx context.Context) error {
	p.offsets.id = p.id + offsetsSuffix
	second := make(chan error, 1)
	go func() {
		offsets := Scope{Group: p.scope.Group, Logger: p.scope.Logger} // it writes nothing else
		second <- p.initOne(ctx, p.offsets.id, offsets, func() error { return p.offsets.init(ctx, p.cl) })
	}()
	err := p.initOne(ctx, p.id, p.scope, func() (err error) {
		p.pid, p.epoch, err = p.cl.ProducerID(ctx)
		return withFix(err, p.id)
	})
	return errors.Join(err, <-second)
}

// initOne sees the last transaction with an id ended before it takes the id.
func (p *Producer) initOne(ctx context.Context, id string, scope Scope, init func() error) error {
	if err := settle(ctx, p.cl, scope, id); err != nil {
		return err
	}
	return again(ctx, "txn: InitProducerID of "+id, init)
}
