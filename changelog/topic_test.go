package changelog_test

import (
	"errors"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/semelstream/semel/changelog"
)

func TestAChangelogIsMadeAsKafkaStreamsMakesIt(t *testing.T) {
	s := changelog.Spec("app", "counts", 12, -1, map[string]string{"segment.ms": "60000"})
	want := map[string]string{"cleanup.policy": "compact", "message.timestamp.type": "CreateTime", "segment.ms": "60000"}
	if s.Name != "app-counts-changelog" || s.Partitions != 12 || s.Replication != -1 || !maps.Equal(s.Config, want) {
		t.Fatalf("%+v", s)
	}
	s = changelog.Spec("app", "counts", 1, 3, map[string]string{"cleanup.policy": "compact,delete"})
	if s.Config["cleanup.policy"] != "compact,delete" || s.Replication != 3 {
		t.Fatalf("the user's word does not count: %+v", s)
	}
}

func TestEachKindOfStoreHasItsChangelog(t *testing.T) {
	for _, c := range []struct {
		config map[string]string
		want   string
	}{
		{changelog.Expiring(30_000), "cleanup.policy=compact,delete message.timestamp.type=CreateTime retention.ms=86430000"},
		{changelog.ExpiringDuplicates(60_000), "cleanup.policy=delete message.timestamp.type=CreateTime retention.ms=86460000"},
		{changelog.Expiring(math.MaxInt64), "cleanup.policy=compact,delete message.timestamp.type=CreateTime retention.ms=-1"},
		{changelog.Versions(60_000), "cleanup.policy=compact message.timestamp.type=CreateTime min.compaction.lag.ms=86460000"},
	} {
		var got []string
		for k, v := range changelog.Spec("app", "s", 1, -1, c.config, nil).Config {
			got = append(got, k+"="+v)
		}
		slices.Sort(got)
		if strings.Join(got, " ") != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

func TestAChangelogThatExistsIsValidated(t *testing.T) {
	plain := changelog.Spec("app", "counts", 2, -1, nil)
	expiring := changelog.Spec("app", "counts", 2, -1, map[string]string{"cleanup.policy": "compact,delete"})
	windows := changelog.Spec("app", "counts", 2, -1, changelog.Expiring(1000))
	duplicates := changelog.Spec("app", "counts", 2, -1, changelog.ExpiringDuplicates(1000))
	versions := changelog.Spec("app", "counts", 2, -1, changelog.Versions(1000))
	day := "86401000" // and the second that is asked for
	for _, c := range []struct {
		spec       changelog.TopicSpec
		partitions int32
		config     string
		want       error
	}{
		{plain, 2, "cleanup.policy=compact", nil},
		{plain, 2, "cleanup.policy=compact retention.ms=604800000", nil}, // of no account
		{plain, 2, "", nil}, // the broker did not tell
		{plain, 2, "cleanup.policy=compact message.timestamp.type=CreateTime", nil},
		{plain, 2, "cleanup.policy=compact message.timestamp.type=LogAppendTime", changelog.ErrTimes},
		{plain, 1, "cleanup.policy=compact", changelog.ErrPartitions},
		{plain, 3, "cleanup.policy=compact", changelog.ErrPartitions},
		{plain, 2, "cleanup.policy=delete retention.ms=604800000", changelog.ErrExpires},
		{plain, 2, "cleanup.policy=compact,delete retention.ms=604800000", changelog.ErrExpires},
		{plain, 2, "cleanup.policy=compact,delete", changelog.ErrExpires},
		{plain, 2, "cleanup.policy=compact,delete retention.ms=-1", nil},
		{plain, 2, "cleanup.policy=compact,delete retention.ms=-1 retention.bytes=-1", nil},
		{plain, 2, "cleanup.policy=compact,delete retention.ms=-1 retention.bytes=1000", changelog.ErrExpires},
		{plain, 2, "cleanup.policy=delete retention.ms=-1", nil},
		{expiring, 2, "cleanup.policy=compact,delete retention.ms=1000", nil},
		{windows, 2, "cleanup.policy=compact,delete retention.ms=" + day, nil},
		{windows, 2, "cleanup.policy=delete retention.ms=" + day, nil},
		{windows, 2, "cleanup.policy=compact,delete retention.ms=86400999", changelog.ErrExpires},
		{windows, 2, "cleanup.policy=compact,delete retention.ms=-1", nil},
		{windows, 2, "cleanup.policy=compact,delete retention.bytes=1000 retention.ms=" + day, changelog.ErrExpires},
		{windows, 2, "cleanup.policy=compact", nil},        // it only grows
		{windows, 2, "cleanup.policy=compact,delete", nil}, // a week
		{duplicates, 2, "cleanup.policy=delete retention.ms=" + day, nil},
		{duplicates, 2, "cleanup.policy=delete retention.ms=1000", changelog.ErrExpires},
		{versions, 2, "cleanup.policy=compact min.compaction.lag.ms=" + day, nil},
		{versions, 2, "cleanup.policy=compact min.compaction.lag.ms=1000", changelog.ErrExpires},
		{versions, 2, "cleanup.policy=compact", changelog.ErrExpires},
		{versions, 2, "cleanup.policy=delete retention.ms=-1", nil}, // it keeps everything
		{versions, 2, "cleanup.policy=delete retention.ms=" + day, changelog.ErrExpires},
		{expiring, 1, "cleanup.policy=compact,delete retention.ms=1000", changelog.ErrPartitions},
	} {
		config := map[string]string{}
		for _, w := range strings.Fields(c.config) {
			k, v, _ := strings.Cut(w, "=")
			config[k] = v
		}
		err := changelog.Validate(c.spec, changelog.Topic{Partitions: c.partitions, Config: config})
		if !errors.Is(err, c.want) || err != nil && c.want == nil {
			t.Errorf("%d partitions, %s: %v, want %v", c.partitions, c.config, err, c.want)
		}
		if err != nil && !strings.HasPrefix(err.Error(), "app-counts-changelog has ") {
			t.Errorf("the topic is not named: %v", err)
		}
	}
}
