package stream

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Encode makes the Kafka records that r is on a topic with n partitions: one,
// or as many as [Topic.Multicast] says, or none. Kafka's clients leave the
// partition of a record without a key to chance; it is 0 here.
func (t Topic[K, V]) Encode(r Record[K, V], n int) ([]*kgo.Record, error) {
	k := &kgo.Record{Topic: t.Name, Timestamp: r.Time, Headers: toKafka(r.Headers)}
	var err error
	if !r.NoKey {
		if k.Key, err = t.Key.Append([]byte{}, r.Key); err != nil {
			return nil, fmt.Errorf("encoding the key for topic %s: %w", t.Name, err)
		}
	}
	if !r.NoValue {
		if k.Value, err = t.Value.Append([]byte{}, r.Value); err != nil {
			return nil, fmt.Errorf("encoding the value for topic %s: %w", t.Name, err)
		}
	}
	var out []*kgo.Record
	for _, p := range t.partitionsOf(r, k.Key, n) {
		if p < 0 || p >= n {
			return nil, fmt.Errorf("topic %s: its partition function chose partition %d of %d", t.Name, p, n)
		}
		c := *k
		c.Partition = int32(p)
		out = append(out, &c)
	}
	return out, nil
}

func (t Topic[K, V]) partitionsOf(r Record[K, V], key []byte, n int) []int {
	switch {
	case t.many != nil:
		return t.many(r, n)
	case t.one != nil:
		return []int{t.one(r, n)}
	case r.NoKey:
		return []int{0}
	}
	return []int{int(partitionOf(key, int32(n)))}
}

// Decode reads a Kafka record of the topic. Key and value may share memory
// with it.
func (t Topic[K, V]) Decode(k *kgo.Record) (Record[K, V], error) {
	r := Record[K, V]{Time: k.Timestamp, Headers: fromKafka(k.Headers), NoKey: k.Key == nil, NoValue: k.Value == nil}
	var err error
	if !r.NoKey {
		if r.Key, err = t.Key.Decode(k.Key); err != nil {
			return r, fmt.Errorf("decoding the key of %s/%d at offset %d: %w", k.Topic, k.Partition, k.Offset, err)
		}
	}
	if !r.NoValue {
		if r.Value, err = t.Value.Decode(k.Value); err != nil {
			return r, fmt.Errorf("decoding the value of %s/%d at offset %d: %w", k.Topic, k.Partition, k.Offset, err)
		}
	}
	return r, nil
}
