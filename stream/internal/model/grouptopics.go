package model

import "context"

// CommittedTopics implements seam.Admin.
func (l *link) CommittedTopics(ctx context.Context, group string) ([]string, error) {
	return ask(ctx, l, plain("OffsetFetch of all topics"), func() ([]string, error) { return l.w.broker.committedTopics(group), nil })
}

func (b *broker) committedTopics(group string) (topics []string) {
	g := b.groups[group]
	if g == nil {
		return nil
	}
	for _, tp := range g.offs.Sorted() {
		if len(topics) == 0 || topics[len(topics)-1] != tp.Topic {
			topics = append(topics, tp.Topic)
		}
	}
	return topics
}
