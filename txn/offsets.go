package txn

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// stablePause is how soon unstable offsets are asked for again. The client's
// own group member waits a second.
const stablePause = 5 * time.Millisecond

// Committed are the group's offsets once no transaction that could change
// them is under way; partitions without an offset are not in the result. It
// asks again until then, and whenever a coordinator is away, until ctx ends.
//
// If a transaction stands in the way, blocked (if not nil) is called after each
// try that found it there, with the number of such tries: the place to fence
// whoever left it open. cl was made with [ClientOptions].
func Committed(ctx context.Context, cl *kgo.Client, group string, tps []TP, blocked func(tries int)) (Offsets, error) {
	if len(tps) == 0 {
		return Offsets{}, nil
	}
	req := offsetFetch(group, tps)
	var offs Offsets
	what := "txn: OffsetFetch of group " + group
	for tries := 1; ; tries++ {
		err := again(ctx, what, func() error {
			resp, err := req.RequestWith(ctx, cl)
			if err != nil {
				return err
			}
			offs, err = fetchedOffsets(resp, group, tps)
			if errors.Is(err, kerr.UnstableOffsetCommit) {
				return errUnstable
			}
			return withFix(err, group)
		})
		if !errors.Is(err, errUnstable) {
			return offs, err
		}
		if blocked != nil {
			blocked(tries)
		}
		if err := sleep(ctx, stablePause); err != nil {
			return nil, fmt.Errorf("%s: %w (last: %w)", what, err, kerr.UnstableOffsetCommit)
		}
	}
}

// errUnstable leaves the loop of [again], which has other pauses.
var errUnstable = errors.New("unstable offsets")

// offsetFetch asks for the offsets of one group, as v8 and later want it.
func offsetFetch(group string, tps []TP) *kmsg.OffsetFetchRequest {
	g := kmsg.NewOffsetFetchRequestGroup()
	g.Group = group
	at := map[string]int{}
	for _, tp := range tps {
		i, ok := at[tp.Topic]
		if !ok {
			t := kmsg.NewOffsetFetchRequestGroupTopic()
			t.Topic = tp.Topic
			i = len(g.Topics)
			at[tp.Topic] = i
			g.Topics = append(g.Topics, t)
		}
		g.Topics[i].Partitions = append(g.Topics[i].Partitions, tp.Partition)
	}
	req := kmsg.NewPtrOffsetFetchRequest()
	req.RequireStable = true // EndTxn answers before the offsets are moved
	req.Groups = append(req.Groups, g)
	return req
}

// fetchedOffsets reads an answer: every partition asked for must be in it.
func fetchedOffsets(resp *kmsg.OffsetFetchResponse, group string, tps []TP) (Offsets, error) {
	if resp.Version < 8 || resp.Version > 9 {
		return nil, fmt.Errorf("%w: the client speaks OffsetFetch v%d, only v8 and v9 will do: make it with txn.ClientOptions", kerr.UnsupportedVersion, resp.Version)
	}
	offs, answered := Offsets{}, map[TP]bool{}
	var worstErr error
	for _, g := range resp.Groups {
		if g.Group != group {
			continue
		}
		if err := kerr.ErrorForCode(g.ErrorCode); errors.Is(err, kerr.GroupIDNotFound) {
			return Offsets{}, nil
		} else if err != nil {
			return nil, err
		}
		for _, t := range g.Topics {
			for _, q := range t.Partitions {
				tp := TP{Topic: t.Topic, Partition: q.Partition}
				answered[tp] = true
				worstErr = worst(worstErr, partitionError(t.Topic, q.Partition, q.ErrorCode))
				if q.Offset >= 0 {
					offs[tp] = fetchedOffset(q)
				}
			}
		}
	}
	if worstErr != nil {
		return nil, worstErr
	}
	for _, tp := range tps {
		if !answered[tp] {
			return nil, fmt.Errorf("%s: %w: the answer leaves it out", tp, kerr.NetworkException)
		}
	}
	return offs, nil
}

func fetchedOffset(q kmsg.OffsetFetchResponseGroupTopicPartition) Offset {
	o := Offset{At: q.Offset, Epoch: q.LeaderEpoch}
	if q.Metadata != nil {
		o.Metadata = *q.Metadata
	}
	return o
}

// CommitOffsets commits offsets outside a transaction, as group member m and
// fenced by its generation alone: at-least-once. A copy of a request that got
// no answer can still reach the coordinator after newer offsets and take the
// group back; exactly-once needs [Producer.CommitOffsets]. It repeats what
// passes until ctx ends. cl was made with [ClientOptions].
func CommitOffsets(ctx context.Context, cl *kgo.Client, m Member, offs Offsets) error {
	if len(offs) == 0 {
		return nil
	}
	what := "txn: OffsetCommit of group " + m.Group
	if err := checkMember(m); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	req := offsetCommit(m, offs)
	return again(ctx, what, func() error {
		resp, err := req.RequestWith(ctx, cl)
		if err != nil {
			return err
		}
		return withFix(offsetCommitError(resp), m.Group)
	})
}

func offsetCommit(m Member, offs Offsets) *kmsg.OffsetCommitRequest {
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Group, req.MemberID, req.Generation = m.Group, m.ID, m.Generation
	if m.Instance != "" {
		req.InstanceID = &m.Instance
	}
	for _, tp := range offs.Sorted() {
		if n := len(req.Topics); n == 0 || req.Topics[n-1].Topic != tp.Topic {
			t := kmsg.NewOffsetCommitRequestTopic()
			t.Topic = tp.Topic
			req.Topics = append(req.Topics, t)
		}
		o := offs[tp]
		q := kmsg.NewOffsetCommitRequestTopicPartition()
		q.Partition, q.Offset, q.LeaderEpoch, q.Metadata = tp.Partition, o.At, o.Epoch, &o.Metadata
		last := &req.Topics[len(req.Topics)-1]
		last.Partitions = append(last.Partitions, q)
	}
	return req
}

func offsetCommitError(resp *kmsg.OffsetCommitResponse) (err error) {
	for _, t := range resp.Topics {
		for _, q := range t.Partitions {
			err = worst(err, partitionError(t.Topic, q.Partition, q.ErrorCode))
		}
	}
	return err
}
