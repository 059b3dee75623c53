package runtime

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semelstream/semel/internal/seam"
)

// Unprocessed asks what of topics the group of an app has not processed: the
// offset of the first committed record behind the committed offset, or behind the
// partition's start where there is none, of each partition that has one. Topics
// that do not exist have none.
//
// It reads: the last stable offset alone does not tell, since what lies before it
// may be the marker of a transaction, which nobody processes.
func Unprocessed(ctx context.Context, b seam.Broker, app string, topics ...string) (map[seam.TP]int64, error) {
	found, err := b.Topics(ctx, topics...)
	if err != nil {
		return nil, fmt.Errorf("describing topics: %w", err)
	}
	var tps []seam.TP
	for _, topic := range slices.Sorted(maps.Keys(found)) {
		for p := range found[topic].Partitions {
			tps = append(tps, seam.TP{Topic: topic, Partition: p})
		}
	}
	first := map[seam.TP]int64{}
	if len(tps) == 0 {
		return first, nil
	}
	from, err := b.Starts(ctx, tps)
	if err != nil {
		return nil, err
	}
	done, err := b.Committed(ctx, app, txnPrefix(app), tps)
	if err != nil {
		return nil, err
	}
	for _, tp := range tps {
		from[tp] = max(from[tp], done[tp].At)
	}
	err = readStable(ctx, b, from, func(tp seam.TP, r *kgo.Record) (enough bool) {
		first[tp] = r.Offset
		return true
	})
	return first, err
}

// readPoll is how many records readStable takes at a time.
const readPoll = 10_000

// readStable reads partitions to their last stable offsets, or to the record of
// which f says that it is enough. It ends by position, since what is last may be
// a marker.
func readStable(ctx context.Context, b seam.Broker, from map[seam.TP]int64, f func(seam.TP, *kgo.Record) (enough bool)) error {
	tps := seam.SortedTPs(from)
	stable, err := b.Stable(ctx, tps)
	if err != nil {
		return err
	}
	tps = slices.DeleteFunc(tps, func(tp seam.TP) bool { return from[tp] >= stable[tp] })
	if len(tps) == 0 {
		return nil
	}
	c, err := b.Consumer(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	reading := map[seam.TP]bool{}
	for _, tp := range tps {
		reading[tp] = true
		c.Assign(tp, from[tp])
	}
	for len(reading) > 0 {
		batches, err := c.Poll(ctx, readPoll, time.Second)
		if err != nil {
			return err
		}
		var over []seam.TP
		for _, b := range batches {
			if reading[b.TP] && (slices.ContainsFunc(b.Records, func(r *kgo.Record) bool { return f(b.TP, r) }) || b.Next >= stable[b.TP]) {
				delete(reading, b.TP)
				over = append(over, b.TP)
			}
		}
		c.Unassign(over...) // batches are no more ours
	}
	return nil
}
