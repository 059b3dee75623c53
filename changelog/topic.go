package changelog

import (
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/semelstream/semel/internal/seam"
)

type (
	// A Topic is a topic as the broker describes it.
	Topic = seam.Topic
	// A TopicSpec is a topic to create.
	TopicSpec = seam.TopicSpec
)

// What [Validate] finds.
var (
	// ErrPartitions is a changelog with more or fewer partitions than its
	// store: rows would be in partitions that nobody restores.
	ErrPartitions = errors.New("another number of partitions")
	// ErrExpires is a changelog that deletes rows by age or size, so that a
	// restored store would have fewer of them than the one that was lost.
	ErrExpires = errors.New("its rows would expire")
)

const (
	cleanupPolicy = "cleanup.policy"
	deletes       = "delete" // in a cleanup policy
	forever       = "-1"
)

// Name is the changelog topic of a store.
func Name(app, store string) string { return app + "-" + store + "-changelog" }

// Spec is the changelog topic of a key-value store, as Kafka Streams makes it.
// The store has as many partitions as its sub-topology has tasks; replication
// -1 is the broker's default; extra are settings on top of what is needed, and
// instead of it.
func Spec(app, store string, partitions int32, replication int16, extra map[string]string) TopicSpec {
	c := map[string]string{cleanupPolicy: "compact", "message.timestamp.type": "CreateTime"}
	maps.Copy(c, extra)
	return TopicSpec{Name: Name(app, store), Partitions: partitions, Replication: replication, Config: c}
}

// Validate says whether the topic that exists can be what spec asks for. The
// error wraps [ErrPartitions] or [ErrExpires]. Rows may expire if spec itself
// says so, and a topic that deletes, but never, is right too. A setting that the
// broker did not tell counts as its default, an unknown policy as right.
func Validate(spec TopicSpec, t Topic) error {
	if t.Partitions != spec.Partitions {
		return fmt.Errorf("%s has %d, needed are %d: %w", spec.Name, t.Partitions, spec.Partitions, ErrPartitions)
	}
	policy := t.Config[cleanupPolicy]
	if !strings.Contains(policy, deletes) || strings.Contains(spec.Config[cleanupPolicy], deletes) {
		return nil
	}
	age, size := t.Config["retention.ms"], t.Config["retention.bytes"]
	if age == forever && (size == forever || size == "") {
		return nil
	}
	return fmt.Errorf("%s has cleanup.policy=%s, retention.ms=%s, retention.bytes=%s: %w", spec.Name, policy, age, size, ErrExpires)
}
