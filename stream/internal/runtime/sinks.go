package runtime

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semelstream/semel/internal/seam"
)

// A Sink is a topic that tasks of one worker write to.
type Sink struct {
	Topic      string
	Partitions int32
	Max        int // bytes of key, value and headers that the topic takes; 0 is no limit
	parts      []sinkPart
}

// A sinkPart is what the open transaction has of a partition.
type sinkPart struct {
	joined bool // it is in the transaction, or will be before the next Produce
	staged int  // so many records
}

// use notes that a record for partition is staged. A partition must be in the
// transaction before its records go out.
func (s *Sink) use(all *sinks, partition int32) {
	p := &s.parts[partition]
	if !p.joined {
		all.join(s, partition)
	}
	if p.staged == 0 {
		all.fresh = true
	}
	p.staged++
}

// overhead is what a batch of one record needs at most beside key, value and
// headers, and headerOverhead what each header does.
const overhead, headerOverhead = 128, 10

// size is what a record needs in its batch besides overhead.
func size(key, value []byte, headers []kgo.RecordHeader) int {
	n := len(key) + len(value)
	for _, h := range headers {
		n += len(h.Key) + len(h.Value) + headerOverhead
	}
	return n
}

// refuse is the failure of a record of n bytes.
func (s *Sink) refuse(n int) error {
	return &Failure{Op: OpProduce, Operator: "topic " + s.Topic, Err: fault("TOO-LARGE", "a record is too large for its topic",
		"topic "+s.Topic, fmt.Errorf("%d bytes, max.message.bytes leaves room for %d", n, s.Max),
		"raise the topic's max.message.bytes and start again, or make smaller records")}
}

// sinks are the topics that one worker writes to and what of them is in its
// transaction.
type sinks struct {
	app        string
	partitions func(string) int32
	max        func(string) int // largest record; nil is no limit
	byName     map[string]*Sink
	add        []seam.TP // to be added before the next Produce
	fresh      bool      // the first record of a partition was staged since the last Produce
	used       []use     // partitions that are in the transaction or in add
	busy       []use     // those that the last transaction wrote much to
	busyAt     int       // how many records are much
}

// A use is a partition of a sink.
type use struct {
	*Sink
	partition int32
}

// join adds a partition to the transaction and, if it is the first one, those
// that the last transaction wrote much to: it is all but certain that this one
// will. To add each at its first record costs more than the request. The leader
// of a partition asks the coordinator about its first record, and a coordinator
// that is adding another partition meanwhile turns the leader away, who tries
// again tens of milliseconds later.
func (s *sinks) join(k *Sink, partition int32) {
	if len(s.used) == 0 {
		for _, b := range s.busy {
			s.joinOne(b)
		}
	}
	s.joinOne(use{k, partition})
}

func (s *sinks) joinOne(u use) {
	p := &u.parts[u.partition]
	if p.joined {
		return
	}
	p.joined = true
	s.used = append(s.used, u)
	s.add = append(s.add, seam.TP{Topic: u.Topic, Partition: u.partition})
}

// ended forgets what was in the transaction.
func (s *sinks) ended() {
	s.busy = s.busy[:0]
	for _, u := range s.used {
		p := &u.parts[u.partition]
		if p.staged >= s.busyAt {
			s.busy = append(s.busy, u)
		}
		*p = sinkPart{}
	}
	s.used, s.add, s.fresh = s.used[:0], s.add[:0], false
}

// calm forgets which partitions are busy: the tasks that wrote to them may be
// gone.
func (s *sinks) calm() { s.busy = s.busy[:0] }

func newSinks(app string, partitions func(string) int32) *sinks {
	return &sinks{app: app, partitions: partitions, byName: map[string]*Sink{}, busyAt: 1}
}

func (s *sinks) find(topic string) (*Sink, error) {
	if k := s.byName[topic]; k != nil {
		return k, nil
	}
	n := s.partitions(topic)
	if n <= 0 {
		return nil, &MissingTopic{topic}
	}
	k := &Sink{Topic: topic, Partitions: n, parts: make([]sinkPart, n)}
	if s.max != nil {
		if limit := s.max(topic); limit > 0 {
			k.Max = max(limit-overhead, 1)
		}
	}
	s.byName[topic] = k
	return k, nil
}
