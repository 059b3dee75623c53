package model

import (
	"slices"
	"time"

	"github.com/semelstream/semel/internal/seam"
	"github.com/twmb/franz-go/pkg/kgo"
)

// These are for whoever drives a World: they act at once, outside of all
// processes, and nothing goes wrong with them.

// CreateTopic makes a topic, if there is none of that name.
func (w *World) CreateTopic(name string, partitions int32, config map[string]string) {
	w.broker.create(seam.TopicSpec{Name: name, Partitions: partitions, Config: config})
}

// DeleteTopic deletes a topic with what is in it.
func (w *World) DeleteTopic(name string) { w.broker.drop(name) }

// AddPartitions makes a topic larger.
func (w *World) AddPartitions(name string, partitions int32) { w.broker.grow(name, partitions) }

// Topics describes the topics of these names that exist.
func (w *World) Topics(names ...string) map[string]seam.Topic { return w.broker.describe(names) }

// TopicNames are the topics in order.
func (w *World) TopicNames() (names []string) {
	for n := range w.broker.topics {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}

// Produce appends a record as a producer without transactions does, and
// returns its offset. A zero time is now.
func (w *World) Produce(tp seam.TP, key, value []byte, at time.Time, headers ...kgo.RecordHeader) (int64, error) {
	if at.IsZero() {
		at = w.Now()
	}
	r := kgo.Record{Topic: tp.Topic, Partition: tp.Partition, Key: key, Value: value, Timestamp: at, Headers: headers}
	return w.broker.append(tp, []*kgo.Record{&r})
}

// Read returns the committed records of tp from the offset on, as many as
// there are now.
func (w *World) Read(tp seam.TP, from int64) []*kgo.Record {
	l := w.broker.log(tp)
	if l == nil {
		return nil
	}
	recs, _, _ := l.read(max(from, l.start), len(l.entries))
	return recs
}

// End is the high watermark of tp, 0 if there is no such partition.
func (w *World) End(tp seam.TP) int64 {
	if l := w.broker.log(tp); l != nil {
		return l.end()
	}
	return 0
}

// Committed is the committed offset of the group, as it is visible now; false
// if there is none or a transaction that may change it is under way.
func (w *World) Committed(group string, tp seam.TP) (seam.Offset, bool) {
	offs, err := w.broker.offsetFetch(group, []seam.TP{tp})
	if err != nil {
		return seam.Offset{}, false
	}
	o, ok := offs[tp]
	return o, ok
}

// Members are the instances in the group, in order.
func (w *World) Members(group string) (instances []string) {
	for _, m := range w.broker.group(group).members {
		instances = append(instances, m.instance)
	}
	return instances
}

// Settled says that no transaction is open or being ended and no request is
// on its way behind its sender's back.
func (w *World) Settled() bool {
	return len(w.late) == 0 && !slices.ContainsFunc(w.broker.order, func(t *producer) bool { return t.state != txnEmpty })
}
