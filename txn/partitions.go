package txn

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// partitions chooses the partitions of outputs before they reach the client,
// because a partition has to be added to the transaction first.
type partitions struct {
	with    kgo.Partitioner
	create  bool // topics that do not exist
	byTopic map[string]*outTopic
}

type outTopic struct {
	kgo.TopicPartitioner
	n   int
	age time.Time
}

// countAge is how long a partition count is believed, as long as a client's
// own metadata by default.
const countAge = 5 * time.Minute

// newPartitions takes the partitioner that cl was configured with, if it is
// one that looks at nothing but the record.
func newPartitions(cl *kgo.Client) *partitions {
	p := &partitions{with: kgo.StickyKeyPartitioner(nil), byTopic: map[string]*outTopic{}}
	if u, ok := cl.OptValue(kgo.RecordPartitioner).(kgo.Partitioner); ok && u != nil {
		if _, backup := u.ForTopic("").(kgo.TopicBackupPartitioner); !backup {
			p.with = u
		}
	}
	p.create, _ = cl.OptValue(kgo.AllowAutoTopicCreation).(bool)
	return p
}

// refresh starts a transaction: records without keys go to another partition,
// and old counts are asked for again.
func (p *partitions) refresh() {
	for name, t := range p.byTopic {
		if time.Since(t.age) > countAge {
			delete(p.byTopic, name)
		}
		if b, ok := t.TopicPartitioner.(kgo.TopicPartitionerOnNewBatch); ok {
			b.OnNewBatch()
		}
	}
}

// choose is the partition for r.
func (p *partitions) choose(ctx context.Context, cl *kgo.Client, r *kgo.Record) (int32, error) {
	t := p.byTopic[r.Topic]
	if t == nil {
		n, err := partitionCount(ctx, cl, r.Topic, p.create)
		if err != nil {
			return 0, err
		}
		t = &outTopic{TopicPartitioner: p.with.ForTopic(r.Topic), n: n, age: time.Now()}
		p.byTopic[r.Topic] = t
	}
	n := t.Partition(r, t.n)
	if n < 0 || n >= t.n {
		return 0, fmt.Errorf("txn: the partitioner chose partition %d of %d of topic %s: %w", n, t.n, r.Topic, kerr.InvalidPartitions)
	}
	return int32(n), nil
}

// partitionCount asks how many partitions a topic has.
func partitionCount(ctx context.Context, cl *kgo.Client, topic string, create bool) (n int, err error) {
	req := kmsg.NewPtrMetadataRequest()
	t := kmsg.NewMetadataRequestTopic()
	t.Topic = &topic
	req.Topics = append(req.Topics, t)
	req.AllowAutoTopicCreation = create
	err = again(ctx, "txn: metadata of output topic "+topic, func() error {
		resp, err := req.RequestWith(ctx, cl)
		if err != nil {
			return err
		}
		for _, t := range resp.Topics {
			if t.Topic != nil && *t.Topic == topic {
				n = len(t.Partitions)
				return withFix(kerr.ErrorForCode(t.ErrorCode), topic)
			}
		}
		return fmt.Errorf("%w: the answer leaves the topic out", kerr.UnknownTopicOrPartition)
	})
	return n, err
}
