package kafka

import (
	"context"

	"github.com/semelstream/semel/internal/seam"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/zap"
)

const purgeTimeoutMillis = 10_000

// Purge never fails for what a broker says: records that are not deleted cost
// disk and nothing else, and the next Purge asks for them again.
func (a *admin) Purge(ctx context.Context, before map[seam.TP]int64) error {
	if len(before) == 0 {
		return nil
	}
	for _, shard := range a.cl.RequestSharded(ctx, purgeRequest(before)) {
		if shard.Err != nil {
			a.purgeFailed("", shard.Err)
			continue
		}
		for _, t := range shard.Resp.(*kmsg.DeleteRecordsResponse).Topics {
			for _, p := range t.Partitions {
				if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
					a.purgeFailed(t.Topic, err)
				}
			}
		}
	}
	return ctx.Err()
}

// purgeFailed says it once for each topic.
func (a *admin) purgeFailed(topic string, err error) {
	if transient(err) {
		return
	}
	if _, said := a.said.LoadOrStore(topic, true); !said {
		a.log.Warn("records that are not needed any more could not be deleted; said once for each topic",
			zap.String("topic", topic), zap.Error(explain(err, "Delete", "topic "+topic)))
	}
}

func purgeRequest(before map[seam.TP]int64) *kmsg.DeleteRecordsRequest {
	req := kmsg.NewPtrDeleteRecordsRequest()
	req.TimeoutMillis = purgeTimeoutMillis
	for _, tp := range seam.SortedTPs(before) {
		if n := len(req.Topics); n == 0 || req.Topics[n-1].Topic != tp.Topic {
			t := kmsg.NewDeleteRecordsRequestTopic()
			t.Topic = tp.Topic
			req.Topics = append(req.Topics, t)
		}
		p := kmsg.NewDeleteRecordsRequestTopicPartition()
		p.Partition, p.Offset = tp.Partition, before[tp]
		ps := &req.Topics[len(req.Topics)-1].Partitions
		*ps = append(*ps, p)
	}
	return req
}
