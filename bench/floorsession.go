package main

import (
	"context"
	"errors"

	"github.com/twmb/franz-go/pkg/kgo"
)

// runFloorSession is exactly-once as franz-go itself offers it: a
// GroupTransactSession, with the offsets in the transaction.
func runFloorSession(ctx context.Context, s spec, out *events) error {
	sess, err := kgo.NewGroupTransactSession(append(floorOptions(s),
		kgo.TransactionalID(s.App),
		kgo.ConsumerGroup(s.App),
		kgo.ConsumeTopics(s.In),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
	)...)
	if err != nil {
		return err
	}
	defer sess.Close()
	l := &txnLoop{s: s, m: newMeter(s, out), begin: sess.Begin}
	l.poll = func(ctx context.Context) kgo.Fetches { return sess.PollRecords(ctx, maxPoll) }
	l.send = func(r *kgo.Record) {
		r.Topic = s.Out
		sess.Produce(context.Background(), r, nil)
	}
	l.end = func(ctx context.Context) error {
		committed, err := sess.End(ctx, kgo.TryCommit)
		if err == nil && !committed {
			err = errors.New("a transaction aborted, by a rebalance or for an error before")
		}
		return err
	}
	return l.run(ctx)
}
