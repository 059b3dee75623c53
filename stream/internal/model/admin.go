package model

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/semelstream/semel/internal/seam"
	"github.com/twmb/franz-go/pkg/kerr"
)

// Check implements seam.Admin.
func (l *link) Check(ctx context.Context) error { return ctx.Err() }

// Topics implements seam.Admin.
func (l *link) Topics(ctx context.Context, names ...string) (map[string]seam.Topic, error) {
	return ask(ctx, l, plain("Metadata"), func() (map[string]seam.Topic, error) { return l.w.broker.describe(names), nil })
}

// AllTopics implements seam.Admin.
func (l *link) AllTopics(ctx context.Context) (map[string]int32, error) {
	return ask(ctx, l, plain("Metadata of all topics"), func() (map[string]int32, error) { return l.w.broker.allTopics(), nil })
}

// Create implements seam.Admin.
func (l *link) Create(ctx context.Context, specs []seam.TopicSpec) error {
	return tell(ctx, l, plain("CreateTopics"), func() error {
		for _, s := range specs {
			l.w.broker.create(s)
		}
		return nil
	})
}

// strangersAfter is how many refused fetches it takes until somebody looks
// who stands in the way.
const strangersAfter = 4

// Committed implements seam.Admin.
func (l *link) Committed(ctx context.Context, group, prefix string, tps []seam.TP) (seam.Offsets, error) {
	tps = slices.Clone(tps)
	for try := 1; ; try++ {
		offs, err := ask(ctx, l, plain("OffsetFetch"), func() (seam.Offsets, error) { return l.w.broker.offsetFetch(group, tps) })
		if err == nil {
			return offs, nil
		}
		if !errors.Is(err, kerr.UnstableOffsetCommit) {
			return nil, fmt.Errorf("fetching the offsets of group %s: %w", group, err)
		}
		if try%strangersAfter == 0 {
			if err := l.fenceStrangers(ctx, group, prefix); err != nil {
				return nil, err
			}
		}
		l.w.pause(ctx, backoff, true, "OffsetFetch again")
	}
}

// fenceStrangers takes the ids of instances that are no members of the group,
// if they have an open transaction.
func (l *link) fenceStrangers(ctx context.Context, group, prefix string) error {
	ids, err := ask(ctx, l, plain("ListTransactions"), func() (ids []string, err error) {
		for _, id := range l.w.broker.ongoing() {
			if instance, ok := instanceOf(id, prefix); ok && l.w.broker.group(group).byInstance(instance) == nil {
				ids = append(ids, id)
			}
		}
		return ids, nil
	})
	for _, id := range ids {
		l.w.logf(l.life.p.name, "fences %s, whose instance is no member", id)
		if _, err := l.initProducerID(ctx, id); err != nil {
			return fmt.Errorf("fencing %s, whose instance is no member of group %s: %w", id, group, err)
		}
	}
	return err
}

// instanceOf takes "prefix instance-worker" apart, and the other ids of such a
// producer.
func instanceOf(id, prefix string) (string, bool) {
	rest, ok := strings.CutPrefix(strings.TrimSuffix(strings.TrimSuffix(id, "-offsets"), "-b"), prefix)
	i := strings.LastIndexByte(rest, '-')
	if !ok || i < 0 {
		return "", false
	}
	return rest[:i], true
}

func (l *link) listOffsets(ctx context.Context, tps []seam.TP, of func(*log) int64) (map[seam.TP]int64, error) {
	tps = slices.Clone(tps)
	return ask(ctx, l, plain("ListOffsets"), func() (map[seam.TP]int64, error) { return l.w.broker.offsets(tps, of) })
}

// Ends implements seam.Admin.
func (l *link) Ends(ctx context.Context, tps []seam.TP) (map[seam.TP]int64, error) {
	return l.listOffsets(ctx, tps, (*log).end)
}

// Stable implements seam.Admin.
func (l *link) Stable(ctx context.Context, tps []seam.TP) (map[seam.TP]int64, error) {
	return l.listOffsets(ctx, tps, (*log).stable)
}

// Starts implements seam.Admin.
func (l *link) Starts(ctx context.Context, tps []seam.TP) (map[seam.TP]int64, error) {
	return l.listOffsets(ctx, tps, func(g *log) int64 { return g.start })
}

// Since implements seam.Admin.
func (l *link) Since(ctx context.Context, tps []seam.TP, t time.Time) (map[seam.TP]int64, error) {
	return l.listOffsets(ctx, tps, func(g *log) int64 { return g.since(t) })
}

// Commit implements seam.Admin.
func (l *link) Commit(ctx context.Context, m seam.Member, offs seam.Offsets) error {
	offs = maps.Clone(offs)
	err := tell(ctx, l, plain("OffsetCommit"), func() error { return l.w.broker.offsetCommit(m, offs) })
	if err != nil {
		return fmt.Errorf("committing offsets of group %s: %w", m.Group, err)
	}
	return nil
}

// Purge implements seam.Admin.
func (l *link) Purge(ctx context.Context, before map[seam.TP]int64) error {
	before = maps.Clone(before)
	return tell(ctx, l, plain("DeleteRecords"), func() error { l.w.broker.purge(before); return nil })
}
