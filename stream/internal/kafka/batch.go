package kafka

import (
	"fmt"

	"github.com/semelstream/semel/internal/seam"
	"github.com/twmb/franz-go/pkg/kgo"
)

// batches turns what kgo fetched into batches. The slices of records are
// kgo's own, given away with the poll; nothing is copied.
func (c *consumer) batches(fs kgo.Fetches) []seam.Batch {
	c.out = c.out[:0]
	for i := range fs {
		topics := fs[i].Topics
		for j := range topics {
			ps := topics[j].Partitions
			for k := range ps {
				c.add(topics[j].Topic, &ps[k])
			}
		}
	}
	return c.out
}

// add appends the batch of one partition, if there is news of it.
func (c *consumer) add(topic string, p *kgo.FetchPartition) {
	if p.Err != nil {
		c.fail(topic, p.Partition, p.Err)
	}
	if len(p.Records) == 0 {
		return
	}
	tp := seam.TP{Topic: topic, Partition: p.Partition}
	at, ok := c.assigned[tp]
	if !ok {
		return // cannot be, by kgo's promise; a leak would be processed twice
	}
	first, last := p.Records[0], p.Records[len(p.Records)-1]
	if first.Offset < at {
		// The log was cut off behind our back and kgo went back with it.
		c.failed = append(c.failed, &seam.PartitionError{TP: tp, Err: fmt.Errorf(
			"offset %d came again after position %d: the partition lost records, perhaps by an unclean leader election", first.Offset, at)})
		return
	}
	next, epoch := last.Offset+1, last.LeaderEpoch // the last one may be a control record
	c.assigned[tp] = next
	records, bytes := dataOnly(p.Records)
	c.out = append(c.out, seam.Batch{
		TP:      tp,
		Records: records,
		Bytes:   bytes,
		Next:    next,
		Epoch:   epoch,
		Stable:  p.LastStableOffset,
	})
}

// dataOnly takes control records out, in place, and says how large the others
// are. Most batches have none.
func dataOnly(recs []*kgo.Record) (data []*kgo.Record, bytes int) {
	n := 0
	for i, r := range recs {
		if r.Attrs.IsControl() {
			r.Recycle()
			continue
		}
		bytes += len(r.Key) + len(r.Value)
		if n < i { // a pointer that is written has its price
			recs[n] = r
		}
		n++
	}
	return recs[:n], bytes
}
