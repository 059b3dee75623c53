package txn

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/zap"
)

// Init fences every other Producer with this id, aborts what the former one
// left open, and returns when that is decided (its markers may still be on the
// way: [Committed] waits for them). It repeats what passes until ctx ends.
//
// It can block for long and must then be waited for, never avoided with
// another id: a transaction that touched a partition which takes no writes
// now (min.insync.replicas) holds its id until that partition is back. Init
// logs which id and which partitions.
func (p *Producer) Init(ctx context.Context) error {
	if err := p.usable(); err != nil {
		return err
	}
	stop := p.watchInit(ctx)
	defer stop()
	if err := p.initBoth(ctx); err != nil {
		return p.fail(err)
	}
	v, err := TransactionVersion(ctx, p.cl)
	if err != nil {
		return p.fail(err)
	}
	p.old = v < 2
	return nil
}

// watchInit reports now and then what Init waits for.
func (p *Producer) watchInit(ctx context.Context) (stop func()) {
	ctx, stop = context.WithCancel(ctx)
	start := time.Now()
	go func() {
		for wait := 2 * time.Second; sleep(ctx, wait) == nil; wait = min(2*wait, time.Minute) {
			state, parts, err := describeTransaction(ctx, p.cl, p.id)
			if ctx.Err() != nil {
				return
			}
			p.log.Warn("waiting for InitProducerID: the former transaction with this id is not ended yet, or its coordinator is away",
				zap.Duration("waited", time.Since(start)), zap.String("state", state), zap.Strings("partitions", parts), zap.Error(err))
		}
	}()
	return stop
}

// describeTransaction asks the coordinator what it knows of an id.
func describeTransaction(ctx context.Context, cl *kgo.Client, id string) (state string, parts []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req := kmsg.NewPtrDescribeTransactionsRequest()
	req.TransactionalIDs = []string{id}
	resp, err := req.RequestWith(ctx, cl)
	if err != nil {
		return "", nil, fmt.Errorf("describing transaction %s: %w", id, err)
	}
	for _, t := range resp.TransactionStates {
		state = t.State
		for _, topic := range t.Topics {
			for _, n := range topic.Partitions {
				parts = append(parts, TP{Topic: topic.Topic, Partition: n}.String())
			}
		}
	}
	return state, parts, nil
}
