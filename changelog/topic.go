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

// What [Validate] and [ValidateSource] find.
var (
	// ErrPartitions is a changelog with more or fewer partitions than its
	// store: rows would be in partitions that nobody restores.
	ErrPartitions = errors.New("another number of partitions")
	// ErrExpires is a changelog that deletes rows by age, so that a restored
	// store would have fewer rows than the one that was lost.
	ErrExpires = errors.New("its rows would expire")
)

const (
	cleanupPolicy = "cleanup.policy"
	retention     = "retention.ms"
	compacted     = "compact"
	deleted       = "delete"
	forever       = "-1"
)

// Name is the changelog topic of a store.
func Name(app, store string) string { return app + "-" + store + "-changelog" }

// Spec is the changelog topic of a key-value store, as Kafka Streams makes it.
// The store has as many partitions as its sub-topology has tasks; replication
// -1 is the broker's default; extra are settings on top of what is needed, and
// instead of it.
func Spec(app, store string, partitions int32, replication int16, extra map[string]string) TopicSpec {
	c := map[string]string{cleanupPolicy: compacted, "message.timestamp.type": "CreateTime"}
	maps.Copy(c, extra)
	return TopicSpec{Name: Name(app, store), Partitions: partitions, Replication: replication, Config: c}
}

// Validate says whether the topic that exists can be what spec asks for. The
// error wraps [ErrPartitions] or [ErrExpires]. Rows may expire if spec itself
// says so. A setting that the broker did not tell counts as right.
func Validate(spec TopicSpec, t Topic) error {
	if t.Partitions != spec.Partitions {
		return fmt.Errorf("%s has %d, needed are %d: %w", spec.Name, t.Partitions, spec.Partitions, ErrPartitions)
	}
	if has(t, deleted) && !strings.Contains(spec.Config[cleanupPolicy], deleted) {
		return expires(spec.Name, t)
	}
	return nil
}

// ValidateSource says whether a topic that others write can be the changelog
// of a table of it. The error wraps [ErrExpires]. What compacts and expires is
// taken as what its owner wants of the table.
func ValidateSource(name string, t Topic) error {
	if has(t, deleted) && !has(t, compacted) {
		return expires(name, t)
	}
	return nil
}

func has(t Topic, policy string) bool { return strings.Contains(t.Config[cleanupPolicy], policy) }

// expires is the error of a topic that deletes, unless it never does.
func expires(name string, t Topic) error {
	if t.Config[retention] == forever {
		return nil
	}
	return fmt.Errorf("%s has %s=%s, %s=%s: %w", name, cleanupPolicy, t.Config[cleanupPolicy], retention, t.Config[retention], ErrExpires)
}
