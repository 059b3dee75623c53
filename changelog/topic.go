package changelog

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"strconv"
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
	// ErrExpires is a changelog that deletes rows by age or size, or compacts
	// versions, earlier than its store forgets them, so that a restored store
	// would have fewer than the one that was lost.
	ErrExpires = errors.New("its rows would expire")
	// ErrTimes is a changelog in which the broker writes times of its own over
	// those of the rows.
	ErrTimes = errors.New("its rows would lose their times")
)

const (
	timestampType  = "message.timestamp.type"
	createTime     = "CreateTime"
	cleanupPolicy  = "cleanup.policy"
	retentionMs    = "retention.ms"
	retentionBytes = "retention.bytes"
	compactionLag  = "min.compaction.lag.ms"
	deletes        = "delete" // in a cleanup policy
	compacts       = "compact"
	forever        = "-1"
	// What a broker does that was told nothing else.
	defaultRetention = 7 * 24 * 3600 * 1000
)

// MoreRetention is how much longer than its store, in ms, a changelog keeps
// rows that expire: a day, as in Kafka Streams. A broker deletes by the time of
// day what the store forgets by stream time, which may be behind.
const MoreRetention = 24 * 3600 * 1000

// Name is the changelog topic of a store.
func Name(app, store string) string { return app + "-" + store + "-changelog" }

// Spec is the changelog topic of a store, as Kafka Streams makes it. The store
// has as many partitions as its sub-topology has tasks; replication -1 is the
// broker's default. Config are settings on top of those of a key-value store,
// and instead of them, the later ones first: what the kind of store needs, as
// of [Expiring], [ExpiringDuplicates] and [Versions], then the user's.
func Spec(app, store string, partitions int32, replication int16, config ...map[string]string) TopicSpec {
	c := map[string]string{cleanupPolicy: compacts, timestampType: createTime}
	for _, more := range config {
		maps.Copy(c, more)
	}
	return TopicSpec{Name: Name(app, store), Partitions: partitions, Replication: replication, Config: c}
}

// Expiring is the configuration for stores whose rows expire after retain ms:
// windows and sessions.
func Expiring(retain int64) map[string]string {
	return map[string]string{cleanupPolicy: compacts + "," + deletes, retentionMs: longer(retain, forever)}
}

// ExpiringDuplicates is that for stores in which no key comes twice: there is
// nothing to compact.
func ExpiringDuplicates(retain int64) map[string]string {
	return map[string]string{cleanupPolicy: deletes, retentionMs: longer(retain, forever)}
}

// Versions is the configuration for stores that remember the versions of the
// last history ms: compaction, which leaves one of a key, has to wait.
func Versions(history int64) map[string]string {
	return map[string]string{compactionLag: longer(history, strconv.FormatInt(math.MaxInt64, 10))}
}

// longer is ms and MoreRetention, or endless if that is too long for a number.
func longer(ms int64, endless string) string {
	if ms > math.MaxInt64-MoreRetention {
		return endless
	}
	return strconv.FormatInt(ms+MoreRetention, 10)
}

// Validate says whether the topic that exists can be what spec asks for. The
// error wraps [ErrPartitions], [ErrExpires] or [ErrTimes]. A topic may delete rows by age if
// spec does so too, and not earlier; one that deletes, but never, is right for
// every store. One that compacts does not do so earlier than spec. A setting
// that the broker did not tell counts as its default, an unknown policy as
// right.
func Validate(spec TopicSpec, t Topic) error {
	if t.Partitions != spec.Partitions {
		return fmt.Errorf("%s has %d, needed are %d: %w", spec.Name, t.Partitions, spec.Partitions, ErrPartitions)
	}
	if is := t.Config[timestampType]; is != "" && spec.Config[timestampType] == createTime && is != createTime {
		return fmt.Errorf("%s has %s=%s, needed is %s=%s: %w", spec.Name, timestampType, is, timestampType, createTime, ErrTimes)
	}
	for _, key := range tooEarly(spec.Config, t.Config) {
		return fmt.Errorf("%s has %s=%s, %s=%s, needed are %s=%s, %s=%s: %w", spec.Name,
			cleanupPolicy, t.Config[cleanupPolicy], key, t.Config[key], cleanupPolicy, spec.Config[cleanupPolicy], key, orForever(spec.Config[key]), ErrExpires)
	}
	return nil
}

func orForever(v string) string {
	if v == "" {
		return forever
	}
	return v
}

// tooEarly are the settings by which a topic loses rows earlier than it should.
func tooEarly(spec, is map[string]string) (keys []string) {
	policy := is[cleanupPolicy]
	if strings.Contains(policy, deletes) {
		expires := strings.Contains(spec[cleanupPolicy], deletes)
		switch need := spec[retentionMs]; {
		case expires && need == "": // the user's word
		case !expires && is[retentionMs] != forever, number(is[retentionMs], defaultRetention) < number(need, math.MaxInt64):
			keys = append(keys, retentionMs)
		}
		if size := is[retentionBytes]; size != "" && size != forever && (!expires || spec[retentionBytes] == "" && spec[retentionMs] != "") {
			keys = append(keys, retentionBytes)
		}
	}
	if strings.Contains(policy, compacts) && number(is[compactionLag], 0) < number(spec[compactionLag], 0) {
		keys = append(keys, compactionLag)
	}
	return keys
}

// number is a setting; unset is the default.
func number(v string, unset int64) int64 {
	switch n, err := strconv.ParseInt(v, 10, 64); {
	case err != nil:
		return unset
	case n < 0:
		return math.MaxInt64
	default:
		return n
	}
}
