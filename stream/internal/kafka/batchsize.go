package kafka

import (
	"strconv"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semelstream/semel/internal/seam"
)

// batchSizes are how large a batch each topic takes, as far as topics were
// described. A broker's limit is on batches, not on records, and refuses one
// that is larger for good: the client must know the limit of each topic. Its
// own default would also refuse records that a topic with a higher limit
// takes.
type batchSizes struct{ byTopic sync.Map }

const (
	defaultBatchBytes = 1_000_012 // kgo's own
	minBatchBytes     = 512       // what kgo allows
	maxBatchBytes     = 64 << 20  // one request has room for it
)

// note keeps the limits of topics that were described.
func (s *batchSizes) note(topics map[string]seam.Topic) {
	for name, t := range topics {
		if n, err := strconv.Atoi(t.Config["max.message.bytes"]); err == nil {
			s.byTopic.Store(name, int32(min(max(n, minBatchBytes), maxBatchBytes)))
		}
	}
}

// of is the limit of a topic.
func (s *batchSizes) of(topic string) int32 {
	if n, ok := s.byTopic.Load(topic); ok {
		return n.(int32)
	}
	return defaultBatchBytes
}

// option makes a producer keep to the limits. It asks when it first meets a
// partition.
func (s *batchSizes) option() kgo.Opt { return kgo.ProducerBatchMaxBytesFn(s.of) }
