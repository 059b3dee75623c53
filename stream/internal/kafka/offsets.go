package kafka

import (
	"context"
	"fmt"
	"time"

	"github.com/semelstream/semel/internal/seam"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// The timestamps of ListOffsets that are none.
const (
	latest   = -1
	earliest = -2
)

// The isolation levels of ListOffsets: its latest is the high watermark, or
// the last stable offset.
const (
	uncommitted int8 = 0
	committed   int8 = 1
)

func (a *admin) Ends(ctx context.Context, tps []seam.TP) (map[seam.TP]int64, error) {
	return a.list(ctx, "the ends", tps, uncommitted, latest)
}

func (a *admin) Stable(ctx context.Context, tps []seam.TP) (map[seam.TP]int64, error) {
	return a.list(ctx, "the stable ends", tps, committed, latest)
}

func (a *admin) Starts(ctx context.Context, tps []seam.TP) (map[seam.TP]int64, error) {
	return a.list(ctx, "the starts", tps, uncommitted, earliest)
}

// Since asks again for the ends of partitions that have no such record.
func (a *admin) Since(ctx context.Context, tps []seam.TP, t time.Time) (map[seam.TP]int64, error) {
	// A negative time would be one of the special ones; records have none.
	out, err := a.list(ctx, "the offsets of a time", tps, uncommitted, max(0, t.UnixMilli()))
	if err != nil {
		return nil, err
	}
	var none []seam.TP
	for _, tp := range seam.SortedTPs(out) {
		if out[tp] < 0 {
			none = append(none, tp)
		}
	}
	ends, err := a.Ends(ctx, none)
	if err != nil {
		return nil, err
	}
	for tp, at := range ends {
		out[tp] = at
	}
	return out, nil
}

// list asks the leaders until each partition has its answer.
func (a *admin) list(ctx context.Context, what string, tps []seam.TP, isolation int8, timestamp int64) (map[seam.TP]int64, error) {
	out := make(map[seam.TP]int64, len(tps))
	missing := tps
	err := a.again(ctx, fmt.Sprintf("listing %s of %d partitions", what, len(tps)), func() (err error) {
		if len(missing) == 0 {
			return nil
		}
		missing, err = a.listOnce(ctx, missing, isolation, timestamp, out)
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// listOnce fills out, and returns what to ask for again with one's error.
func (a *admin) listOnce(ctx context.Context, tps []seam.TP, isolation int8, timestamp int64, out map[seam.TP]int64) (missing []seam.TP, err error) {
	note := func(e error) {
		if err == nil || transient(err) && !transient(e) {
			err = e
		}
	}
	// kgo sends one request to each leader.
	for _, shard := range a.cl.RequestSharded(ctx, listRequest(tps, isolation, timestamp)) {
		if shard.Err != nil {
			note(shard.Err)
			continue
		}
		for _, t := range shard.Resp.(*kmsg.ListOffsetsResponse).Topics {
			for _, p := range t.Partitions {
				tp := seam.TP{Topic: t.Topic, Partition: p.Partition}
				if e := kerr.ErrorForCode(p.ErrorCode); e != nil {
					note(explain(fmt.Errorf("%v: %w", tp, e), "Describe", "topic "+t.Topic))
					continue
				}
				out[tp] = p.Offset
			}
		}
	}
	for _, tp := range tps {
		if _, ok := out[tp]; !ok {
			missing = append(missing, tp)
		}
	}
	if len(missing) > 0 && err == nil {
		err = fmt.Errorf("%v: %w (a broker left it out of its answer)", missing[0], kerr.LeaderNotAvailable)
	}
	return missing, err
}

func listRequest(tps []seam.TP, isolation int8, timestamp int64) *kmsg.ListOffsetsRequest {
	req := kmsg.NewPtrListOffsetsRequest()
	req.ReplicaID, req.IsolationLevel = -1, isolation
	at := make(map[string]int)
	for _, tp := range tps {
		i, ok := at[tp.Topic]
		if !ok {
			i = len(req.Topics)
			at[tp.Topic] = i
			t := kmsg.NewListOffsetsRequestTopic()
			t.Topic = tp.Topic
			req.Topics = append(req.Topics, t)
		}
		p := kmsg.NewListOffsetsRequestTopicPartition()
		p.Partition, p.Timestamp = tp.Partition, timestamp
		req.Topics[i].Partitions = append(req.Topics[i].Partitions, p)
	}
	return req
}
