package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// The floors are pass-throughs with nothing but franz-go: what anything on top
// of it is measured against. All of them produce the record that they fetched,
// to the partition it came from.

// maxPoll is how many records a floor takes at once.
const maxPoll = 20_000

// floorOptions are the fetch and produce settings of Semel's own clients.
func floorOptions(s spec) []kgo.Opt {
	return append(clientOptions(s),
		kgo.SeedBrokers(s.Brokers...),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.FetchMaxWait(100*time.Millisecond),
		kgo.FetchMaxBytes(16<<20),
		kgo.FetchMaxPartitionBytes(4<<20),
		kgo.MetadataMinAge(50*time.Millisecond),
	)
}

// fromStart are all partitions of a topic from their beginning.
func fromStart(ctx context.Context, brokers []string, topic string) (kgo.Opt, error) {
	cl, err := kgo.NewClient(kgo.SeedBrokers(brokers...))
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	topics, err := kadm.NewClient(cl).ListTopics(ctx, topic)
	if err != nil {
		return nil, err
	}
	from := map[int32]kgo.Offset{}
	for p := range topics[topic].Partitions {
		from[p] = kgo.NewOffset().AtStart()
	}
	if len(from) == 0 {
		return nil, fmt.Errorf("there is no topic %s", topic)
	}
	return kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: from}), nil
}

// runFloor is the plain loop: an idempotent producer, no transaction, no
// offsets. What the broker has acknowledged is done.
func runFloor(ctx context.Context, s spec, out *events) error {
	from, err := fromStart(ctx, s.Brokers, s.In)
	if err != nil {
		return err
	}
	cl, err := kgo.NewClient(append(floorOptions(s), from)...)
	if err != nil {
		return err
	}
	defer cl.Close()
	m := newMeter(s, out)
	defer m.end()
	var read, told int64
	var acked atomic.Int64
	var failed atomic.Pointer[error]
	done := func(_ *kgo.Record, err error) {
		if err != nil {
			first := err // or err itself would be allocated each time
			failed.CompareAndSwap(nil, &first)
		}
		acked.Add(1)
	}
	m.begin()
	out.send(event{Kind: eventState, Text: "running"})
	for ctx.Err() == nil && (s.Records == 0 || read < s.Records) {
		fs := cl.PollRecords(ctx, maxPoll)
		if err := pollError(fs); err != nil {
			return err
		}
		fs.EachRecord(func(r *kgo.Record) {
			r.Topic = s.Out
			cl.Produce(context.Background(), r, done)
		})
		read += int64(fs.NumRecords())
		now := acked.Load()
		m.commit(now-told, 0)
		told = now
	}
	if err := cl.Flush(context.Background()); err != nil {
		return err
	}
	m.commit(read-told, 0)
	if err := failed.Load(); err != nil {
		return *err
	}
	return nil
}

// pollError is what is wrong with a poll but for the end of its context.
func pollError(fs kgo.Fetches) error {
	for _, e := range fs.Errors() {
		if !errors.Is(e.Err, context.DeadlineExceeded) && !errors.Is(e.Err, context.Canceled) {
			return fmt.Errorf("reading %s/%d: %w", e.Topic, e.Partition, e.Err)
		}
	}
	return nil
}
