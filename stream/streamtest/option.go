package streamtest

import (
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semelstream/semel/stream"
)

// An Option changes how a Driver runs.
type Option func(*config)

// Partitions gives every topic n partitions, and so n tasks; the default is 1.
func Partitions(n int) Option { return func(c *config) { c.partitions = n } }

// CommitByHand commits only when Commit is called.
func CommitByHand() Option { return func(c *config) { c.byHand = true } }

// OnError is the app's policy.
func OnError(p stream.ErrorPolicy) Option { return func(c *config) { c.policy = p } }

// Start is wall time at the beginning; the default is 1970.
func Start(t time.Time) Option { return func(c *config) { c.start = t } }

// Topics makes topics that the topology does not name: those of dead letters
// and those that [stream.Stream.Route] chooses.
func Topics(names ...string) Option {
	return func(c *config) { c.topics = append(c.topics, names...) }
}

func kafkaHeaders(h stream.Headers) []kgo.RecordHeader {
	var out []kgo.RecordHeader
	for _, x := range h {
		out = append(out, kgo.RecordHeader{Key: x.Name, Value: x.Value})
	}
	return out
}
