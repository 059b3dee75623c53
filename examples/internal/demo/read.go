package demo

import (
	"context"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Read calls f with every committed record of a topic up to its end, in order
// within each partition.
func (r *Run) Read(ctx context.Context, topic string, f func(*kgo.Record)) error {
	ends, err := r.admin.ListEndOffsets(ctx, topic)
	if err != nil {
		return err
	}
	left := map[int32]int64{}
	from := map[int32]kgo.Offset{}
	ends.Each(func(o kadm.ListedOffset) {
		if o.Offset > 0 {
			left[o.Partition], from[o.Partition] = o.Offset, kgo.NewOffset().At(0)
		}
	})
	cl, err := kgo.NewClient(kgo.SeedBrokers(r.brokers...), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords(),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: from}))
	if err != nil {
		return err
	}
	defer cl.Close()
	for len(left) > 0 {
		fs := cl.PollFetches(ctx)
		if err := fs.Err(); err != nil {
			return err
		}
		fs.EachRecord(func(k *kgo.Record) {
			if k.Offset+1 >= left[k.Partition] {
				delete(left, k.Partition)
			}
			if !k.Attrs.IsControl() {
				f(k)
			}
		})
	}
	return nil
}
