package kafka

import (
	"context"
	"errors"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// CommittedTopics asks for all offsets of the group at once. They need not be
// stable: which topics they are of is what counts.
func (a *admin) CommittedTopics(ctx context.Context, group string) (topics []string, err error) {
	err = a.again(ctx, "asking which topics group "+group+" has offsets of", func() (err error) {
		topics, err = a.committedTopics(ctx, group)
		return explain(err, "Read", "group "+group)
	})
	return topics, err
}

func (a *admin) committedTopics(ctx context.Context, group string) ([]string, error) {
	g := kmsg.NewOffsetFetchRequestGroup()
	g.Group = group // no topics: all of them
	req := kmsg.NewPtrOffsetFetchRequest()
	req.Groups = append(req.Groups, g)
	resp, err := req.RequestWith(ctx, a.cl)
	if err != nil {
		return nil, err
	}
	var topics []string
	for _, g := range resp.Groups {
		if err := kerr.ErrorForCode(g.ErrorCode); err != nil && !errors.Is(err, kerr.GroupIDNotFound) {
			return nil, err
		}
		for _, t := range g.Topics {
			if slices.ContainsFunc(t.Partitions, func(p kmsg.OffsetFetchResponseGroupTopicPartition) bool { return p.Offset >= 0 }) {
				topics = append(topics, t.Topic)
			}
		}
	}
	slices.Sort(topics)
	return topics, nil
}
