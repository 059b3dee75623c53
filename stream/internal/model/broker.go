package model

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/semelstream/semel/internal/assert"
	"github.com/semelstream/semel/internal/seam"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// A broker is the part of Kafka that exactly-once rests on, as plain data:
// each method is a request that acts at once and wholly. It has no goroutine,
// lock or clock; the World moves its time and writes its markers. Maps are
// never ranged over where the order could show.
type broker struct {
	start      time.Time
	now        int64 // virtual ns since start
	next       int64 // when tick has something to do
	txnTimeout int64
	rebalance  int64

	topics    map[string]*topic
	producers map[string]*producer
	order     []*producer // by birth
	preparing []*producer // decided, with markers to write
	groups    map[string]*group
	nextPID   int64
	offsetLog int64 // commits of offsets until now
	nextID    int   // member ids

	eager       bool          // markers are written at once
	changed     func(seam.TP) // a fetch of tp may have more to read
	markerDelay func() int64  // how long the markers of a transaction wait at least
}

type topic struct {
	spec seam.TopicSpec
	logs []*log
}

func newBroker(start time.Time) *broker {
	return &broker{
		start: start, next: math.MaxInt64, nextPID: 1000,
		topics: map[string]*topic{}, producers: map[string]*producer{}, groups: map[string]*group{},
		changed: func(seam.TP) {}, markerDelay: func() int64 { return 0 },
	}
}

func (b *broker) time() time.Time { return b.start.Add(time.Duration(b.now)) }

// alarm makes tick run at t.
func (b *broker) alarm(t int64) { b.next = min(b.next, t) }

// tick times out transactions and members. It is called when time has passed.
func (b *broker) tick() {
	if b.now < b.next {
		return
	}
	b.next = math.MaxInt64
	for _, t := range b.order {
		if t.state != txnOngoing {
			continue
		}
		if b.now > t.deadline {
			t.epoch++
			b.decide(t, false)
		} else {
			b.alarm(t.deadline + 1)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(b.groups)) {
		b.groups[name].tick()
	}
}

func (b *broker) log(tp seam.TP) *log {
	t := b.topics[tp.Topic]
	if t == nil || tp.Partition < 0 || int(tp.Partition) >= len(t.logs) {
		return nil
	}
	return t.logs[tp.Partition]
}

func (b *broker) logs(tps []seam.TP) (ls []*log, err error) {
	for _, tp := range tps {
		l := b.log(tp)
		if l == nil {
			return nil, kerr.UnknownTopicOrPartition
		}
		ls = append(ls, l)
	}
	return ls, nil
}

func (b *broker) create(s seam.TopicSpec) {
	if b.topics[s.Name] != nil {
		return
	}
	assert.That(s.Partitions > 0, "topic %s is created with %d partitions", s.Name, s.Partitions)
	t := &topic{spec: s}
	t.spec.Config = maps.Clone(s.Config)
	if t.spec.Config == nil {
		t.spec.Config = map[string]string{}
	}
	for key, def := range map[string]string{"cleanup.policy": "delete", "max.message.bytes": "1048588", "retention.ms": "604800000"} {
		if _, ok := t.spec.Config[key]; !ok {
			t.spec.Config[key] = def
		}
	}
	for range s.Partitions {
		t.logs = append(t.logs, &log{})
	}
	b.topics[s.Name] = t
}

// grow adds partitions, as an operator would.
func (b *broker) grow(name string, partitions int32) {
	t := b.topics[name]
	for int32(len(t.logs)) < partitions {
		t.logs = append(t.logs, &log{})
	}
	t.spec.Partitions = partitions
}

// drop deletes a topic, and the offsets that groups have of it.
func (b *broker) drop(name string) {
	delete(b.topics, name)
	for _, g := range b.groups {
		maps.DeleteFunc(g.offs, func(tp seam.TP, _ seam.Offset) bool { return tp.Topic == name })
		maps.DeleteFunc(g.offsRecord, func(tp seam.TP, _ int64) bool { return tp.Topic == name })
	}
}

func (b *broker) describe(names []string) map[string]seam.Topic {
	out := map[string]seam.Topic{}
	for _, n := range names {
		if t := b.topics[n]; t != nil {
			out[n] = seam.Topic{Partitions: t.spec.Partitions, Config: maps.Clone(t.spec.Config)}
		}
	}
	return out
}

func (b *broker) allTopics() map[string]int32 {
	out := map[string]int32{}
	for name, t := range b.topics {
		out[name] = t.spec.Partitions
	}
	return out
}

// recordOverhead is about what a record costs besides key, value and headers.
const recordOverhead = 70

// fits says which record is too large for the topic, -1 if none is.
func (b *broker) fits(topic string, recs []*kgo.Record) int {
	limit, _ := strconv.Atoi(b.topics[topic].spec.Config["max.message.bytes"])
	for i, r := range recs {
		size := recordOverhead + len(r.Key) + len(r.Value)
		for _, h := range r.Headers {
			size += len(h.Key) + len(h.Value)
		}
		if size > limit {
			return i
		}
	}
	return -1
}

// append is a producer without transactions.
func (b *broker) append(tp seam.TP, recs []*kgo.Record) (base int64, err error) {
	l := b.log(tp)
	if l == nil {
		return 0, kerr.UnknownTopicOrPartition
	}
	if b.fits(tp.Topic, recs) >= 0 {
		return 0, kerr.MessageTooLarge
	}
	base = l.append(recs)
	b.changed(tp)
	return base, nil
}

// offsets answers ListOffsets: of picks the offset.
func (b *broker) offsets(tps []seam.TP, of func(*log) int64) (map[seam.TP]int64, error) {
	ls, err := b.logs(tps)
	if err != nil {
		return nil, err
	}
	out := make(map[seam.TP]int64, len(tps))
	for i, tp := range tps {
		out[tp] = of(ls[i])
	}
	return out, nil
}

func (b *broker) purge(before map[seam.TP]int64) {
	for _, tp := range seam.SortedTPs(before) {
		if l := b.log(tp); l != nil {
			l.purge(before[tp])
		}
	}
}

func (b *broker) offsetCommit(m seam.Member, offs seam.Offsets) error {
	if err := b.fence(m); err != nil {
		return err
	}
	for tp, o := range offs {
		b.commitOffset(m.Group, tp, o, b.offsetRecord())
	}
	return nil
}

// offsetRecord is the place of the next commit in the log of offsets.
func (b *broker) offsetRecord() int64 {
	b.offsetLog++
	return b.offsetLog
}

// commitOffset makes a committed offset visible. Of two, the one whose commit
// came later counts, in whatever order their transactions end: the coordinator
// compares the places of the commits in its log.
func (b *broker) commitOffset(group string, tp seam.TP, o seam.Offset, record int64) {
	g := b.group(group)
	if record > g.offsRecord[tp] {
		g.offs[tp], g.offsRecord[tp] = o, record
	}
}

// offsetFetch is a fetch of stable offsets.
func (b *broker) offsetFetch(name string, tps []seam.TP) (seam.Offsets, error) {
	out := seam.Offsets{}
	g := b.groups[name]
	for _, tp := range tps {
		if b.pending(name, tp) {
			return nil, kerr.UnstableOffsetCommit
		}
		if g != nil {
			if o, ok := g.offs[tp]; ok {
				out[tp] = o
			}
		}
	}
	return out, nil
}
