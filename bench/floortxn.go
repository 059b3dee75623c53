package main

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// A txnLoop is a transactional loop, apart from how it polls and how it ends a
// transaction.
type txnLoop struct {
	s     spec
	m     *meter
	poll  func(context.Context) kgo.Fetches
	send  func(*kgo.Record)
	begin func() error
	end   func(context.Context) error
}

// run commits whenever the interval is over or all is read.
func (l *txnLoop) run(ctx context.Context) error {
	defer l.m.end()
	l.m.begin()
	l.m.out.send(event{Kind: eventState, Text: "running"})
	for left := l.s.Records; ctx.Err() == nil && (l.s.Records == 0 || left > 0); {
		if err := l.begin(); err != nil {
			return err
		}
		n, took, err := l.fill(ctx, left)
		if err != nil {
			return err
		}
		left -= n
		if err := l.end(context.WithoutCancel(ctx)); err != nil {
			return err
		}
		l.m.commit(n, took())
	}
	return nil
}

// fill sends what comes in one interval, which begins with the first record.
func (l *txnLoop) fill(ctx context.Context, left int64) (n int64, took func() time.Duration, err error) {
	begun := time.Now()
	took = func() time.Duration { return time.Since(begun) }
	for ctx.Err() == nil && (n == 0 || took() < l.s.Commit) {
		wait, cancel := context.WithTimeout(ctx, l.s.Commit)
		fs := l.poll(wait)
		cancel()
		if err := pollError(fs); err != nil {
			return n, took, err
		}
		if n == 0 {
			begun = time.Now()
		}
		fs.EachRecord(l.send)
		n += int64(fs.NumRecords())
		if l.s.Records > 0 && n >= left {
			break
		}
	}
	return n, took, nil
}

// runFloorTxn is the plain loop in transactions, which leave the offsets out:
// less than what exactly-once asks for.
func runFloorTxn(ctx context.Context, s spec, out *events) error {
	from, err := fromStart(ctx, s.Brokers, s.In)
	if err != nil {
		return err
	}
	cl, err := kgo.NewClient(append(floorOptions(s), from, kgo.TransactionalID(s.App))...)
	if err != nil {
		return err
	}
	defer cl.Close()
	l := &txnLoop{s: s, m: newMeter(s, out), begin: cl.BeginTransaction}
	l.poll = func(ctx context.Context) kgo.Fetches { return cl.PollRecords(ctx, maxPoll) }
	l.send = func(r *kgo.Record) {
		r.Topic = s.Out
		cl.Produce(context.Background(), r, nil)
	}
	l.end = func(ctx context.Context) error {
		if err := cl.Flush(ctx); err != nil {
			return err
		}
		return cl.EndTransaction(ctx, kgo.TryCommit)
	}
	return l.run(ctx)
}
