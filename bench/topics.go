package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// makeTopic makes a topic with the broker's default replication and waits
// until it has leaders.
func (c *cluster) makeTopic(ctx context.Context, name string) error {
	return c.makeTopicWith(ctx, name, nil)
}

// makeTableTopic is makeTopic for the source of a table, whose rows stay.
func (c *cluster) makeTableTopic(ctx context.Context, name string) error {
	compact, forever := "compact", "-1"
	return c.makeTopicWith(ctx, name, map[string]*string{"cleanup.policy": &compact, "retention.ms": &forever})
}

func (c *cluster) makeTopicWith(ctx context.Context, name string, configs map[string]*string) error {
	resp, err := c.admin.CreateTopics(ctx, partitions, -1, configs, name)
	if err == nil {
		err = resp.Error()
	}
	if err != nil {
		return fmt.Errorf("making topic %s: %w", name, err)
	}
	return waitUntil(ctx, 10*time.Millisecond, "leaders of topic "+name, func() (bool, error) {
		ends, err := c.admin.ListEndOffsets(ctx, name)
		return err == nil && ends.Error() == nil && len(ends[name]) == partitions, nil
	})
}

// deleteTopics deletes topics that may not exist.
func (c *cluster) deleteTopics(ctx context.Context, names ...string) error {
	resp, err := c.admin.DeleteTopics(ctx, names...)
	if err != nil {
		return fmt.Errorf("deleting topics: %w", err)
	}
	for _, r := range resp.Sorted() {
		if r.Err != nil && !errors.Is(r.Err, kerr.UnknownTopicOrPartition) {
			return fmt.Errorf("deleting topic %s: %w", r.Topic, r.Err)
		}
	}
	return nil
}

// forget deletes what an application has left behind: its output, internal
// topics and group.
func (c *cluster) forget(ctx context.Context, app string, outputs ...string) error {
	all, err := c.admin.ListTopics(ctx)
	if err != nil {
		return err
	}
	names := outputs
	for t := range all {
		if strings.HasPrefix(t, app+"-") && (strings.HasSuffix(t, "-changelog") || strings.HasSuffix(t, "-repartition")) {
			names = append(names, t)
		}
	}
	if err := c.deleteTopics(ctx, names...); err != nil {
		return err
	}
	// A group that is still ending, or never was, is no harm.
	_, _ = c.admin.DeleteGroups(ctx, app)
	return nil
}

// cleanUp deletes all topics whose names begin with prefix, and groups as far
// as they have no members.
func (c *cluster) cleanUp(ctx context.Context, prefix string) error {
	all, err := c.admin.ListTopics(ctx)
	if err != nil {
		return err
	}
	var names []string
	for t := range all {
		if strings.HasPrefix(t, prefix+"-") {
			names = append(names, t)
		}
	}
	if groups, err := c.admin.ListGroups(ctx); err == nil {
		var ours []string
		for g := range groups {
			if strings.HasPrefix(g, prefix+"-") {
				ours = append(ours, g)
			}
		}
		if len(ours) > 0 {
			_, _ = c.admin.DeleteGroups(ctx, ours...)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return c.deleteTopics(ctx, names...)
}

// readAll hands every committed record of a topic to f, up to its end now.
func (c *cluster) readAll(ctx context.Context, topic string, f func(*kgo.Record)) error {
	ends, err := c.admin.ListEndOffsets(ctx, topic)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		return fmt.Errorf("the end of %s: %w", topic, err)
	}
	left, from := map[int32]int64{}, map[int32]kgo.Offset{}
	ends.Each(func(o kadm.ListedOffset) {
		if o.Offset > 0 {
			left[o.Partition], from[o.Partition] = o.Offset, kgo.NewOffset().At(0)
		}
	})
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.brokers...), kgo.DisableClientMetrics(),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.KeepControlRecords(), // the last one is often a marker
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: from}))
	if err != nil {
		return err
	}
	defer cl.Close()
	for len(left) > 0 {
		fs := cl.PollFetches(ctx)
		if err := fs.Err(); err != nil {
			return fmt.Errorf("reading %s: %w", topic, err)
		}
		fs.EachRecord(func(r *kgo.Record) {
			if r.Offset+1 >= left[r.Partition] {
				delete(left, r.Partition)
			}
			if !r.Attrs.IsControl() {
				f(r)
			}
		})
	}
	return nil
}

// waitUntil asks f again and again.
func waitUntil(ctx context.Context, every time.Duration, what string, f func() (bool, error)) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		ok, err := f()
		if ok || err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w", what, ctx.Err())
		}
	}
}
