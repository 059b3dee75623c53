package kafka

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/semelstream/semel/internal/seam"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Topics describes those topics that exist.
func (a *admin) Topics(ctx context.Context, names ...string) (map[string]seam.Topic, error) {
	out := make(map[string]seam.Topic, len(names))
	if len(names) == 0 {
		return out, nil
	}
	err := a.again(ctx, "describing topics", func() error {
		clear(out)
		counts, err := a.partitionCounts(ctx, names)
		if err != nil || len(counts) == 0 {
			return err
		}
		configs, err := a.configs(ctx, slices.Sorted(maps.Keys(counts)))
		for name, n := range counts {
			if c, ok := configs[name]; ok {
				out[name] = seam.Topic{Partitions: n, Config: c}
			}
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	a.size.note(out)
	return out, nil
}

// metadata is of named topics, never created by asking.
func (a *admin) metadata(ctx context.Context, names []string) ([]kmsg.MetadataResponseTopic, error) {
	req := kmsg.NewPtrMetadataRequest()
	for _, n := range names {
		t := kmsg.NewMetadataRequestTopic()
		t.Topic = kmsg.StringPtr(n)
		req.Topics = append(req.Topics, t)
	}
	resp, err := req.RequestWith(ctx, a.cl)
	if err != nil {
		return nil, err
	}
	return resp.Topics, nil
}

// partitionCounts leaves topics out that do not exist.
func (a *admin) partitionCounts(ctx context.Context, names []string) (map[string]int32, error) {
	topics, err := a.metadata(ctx, names)
	if err != nil {
		return nil, err
	}
	counts := make(map[string]int32, len(topics))
	for _, t := range topics {
		name := deref(t.Topic)
		switch err := kerr.ErrorForCode(t.ErrorCode); {
		case errors.Is(err, kerr.UnknownTopicOrPartition):
		case errors.Is(err, kerr.LeaderNotAvailable) && len(t.Partitions) > 0, err == nil:
			counts[name] = int32(len(t.Partitions)) // it exists, wherever its leaders are
		default:
			return nil, explain(fmt.Errorf("topic %s: %w", name, err), "Describe", "topic "+name)
		}
	}
	return counts, nil
}

// AllTopics asks one broker. The answer has all topics that the principal may
// describe.
func (a *admin) AllTopics(ctx context.Context) (out map[string]int32, err error) {
	err = a.again(ctx, "listing the topics", func() error {
		resp, err := kmsg.NewPtrMetadataRequest().RequestWith(ctx, a.cl) // no topics: all of them
		if err != nil {
			return err
		}
		out = make(map[string]int32, len(resp.Topics))
		for _, t := range resp.Topics {
			if !t.IsInternal && t.Topic != nil && len(t.Partitions) > 0 {
				out[*t.Topic] = int32(len(t.Partitions))
			}
		}
		return nil
	})
	return out, err
}

// configs leaves topics out that were deleted in between.
func (a *admin) configs(ctx context.Context, names []string) (map[string]map[string]string, error) {
	req := kmsg.NewPtrDescribeConfigsRequest()
	for _, n := range names {
		r := kmsg.NewDescribeConfigsRequestResource()
		r.ResourceType, r.ResourceName = kmsg.ConfigResourceTypeTopic, n
		req.Resources = append(req.Resources, r)
	}
	resp, err := req.RequestWith(ctx, a.cl)
	if err != nil {
		return nil, err
	}
	out := make(map[string]map[string]string, len(resp.Resources))
	for _, r := range resp.Resources {
		switch err := kerr.ErrorForCode(r.ErrorCode); {
		case errors.Is(err, kerr.UnknownTopicOrPartition):
			continue
		case err != nil:
			return nil, explain(fmt.Errorf("configuration of topic %s: %w", r.ResourceName, err), "DescribeConfigs", "topic "+r.ResourceName)
		}
		c := make(map[string]string, len(r.Configs))
		for _, e := range r.Configs {
			if e.Value != nil && !e.IsSensitive {
				c[e.Name] = *e.Value
			}
		}
		out[r.ResourceName] = c
	}
	return out, nil
}

// createTimeoutMillis is how long the broker waits for a topic to be complete.
const createTimeoutMillis = 15_000

// Create makes the topics and waits until their partitions have leaders, so
// that the first transaction does not wait for them.
func (a *admin) Create(ctx context.Context, specs []seam.TopicSpec) error {
	if len(specs) == 0 {
		return nil
	}
	missing := specs
	if err := a.again(ctx, "creating topics", func() (err error) {
		missing, err = a.create(ctx, missing)
		return err
	}); err != nil {
		return err
	}
	return a.again(ctx, "waiting for the leaders of new topics", func() error { return a.haveLeaders(ctx, specs) })
}

// create returns the topics that must be tried again, with one's error.
func (a *admin) create(ctx context.Context, specs []seam.TopicSpec) (missing []seam.TopicSpec, err error) {
	resp, err := createRequest(specs).RequestWith(ctx, a.cl)
	if err != nil {
		return specs, err
	}
	answers := make(map[string]kmsg.CreateTopicsResponseTopic, len(specs))
	for _, t := range resp.Topics {
		answers[t.Topic] = t
	}
	for _, spec := range specs { // in our order: the broker's is another each time
		t := answers[spec.Name]
		terr := kerr.ErrorForCode(t.ErrorCode)
		if terr == nil || errors.Is(terr, kerr.TopicAlreadyExists) {
			continue
		}
		terr = fmt.Errorf("topic %s: %w", spec.Name, terr)
		if msg := deref(t.ErrorMessage); msg != "" {
			terr = fmt.Errorf("%w (%s)", terr, msg)
		}
		missing = append(missing, spec)
		if err == nil || transient(err) && !transient(terr) {
			err = explain(terr, "Create", "topic "+spec.Name)
		}
	}
	return missing, err
}

func createRequest(specs []seam.TopicSpec) *kmsg.CreateTopicsRequest {
	req := kmsg.NewPtrCreateTopicsRequest()
	req.TimeoutMillis = createTimeoutMillis
	for _, s := range specs {
		t := kmsg.NewCreateTopicsRequestTopic()
		t.Topic, t.NumPartitions, t.ReplicationFactor = s.Name, s.Partitions, s.Replication
		if s.Replication == 0 {
			t.ReplicationFactor = -1
		}
		for _, k := range slices.Sorted(maps.Keys(s.Config)) {
			c := kmsg.NewCreateTopicsRequestTopicConfig()
			c.Name, c.Value = k, kmsg.StringPtr(s.Config[k])
			t.Configs = append(t.Configs, c)
		}
		req.Topics = append(req.Topics, t)
	}
	return req
}

func (a *admin) haveLeaders(ctx context.Context, specs []seam.TopicSpec) error {
	names := make([]string, len(specs))
	for i, s := range specs {
		names[i] = s.Name
	}
	topics, err := a.metadata(ctx, names)
	if err != nil {
		return err
	}
	for _, t := range topics {
		err := kerr.ErrorForCode(t.ErrorCode)
		if errors.Is(err, kerr.UnknownTopicOrPartition) {
			err = kerr.LeaderNotAvailable // this broker has not heard of it yet
		}
		for _, p := range t.Partitions {
			if err == nil && (p.Leader < 0 || p.ErrorCode == kerr.LeaderNotAvailable.Code) {
				err = kerr.LeaderNotAvailable
			}
		}
		if err != nil {
			return explain(fmt.Errorf("topic %s: %w", deref(t.Topic), err), "Describe", "topic "+deref(t.Topic))
		}
	}
	return nil
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
