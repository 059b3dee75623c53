package kafka

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/semelstream/semel/internal/seam"
	"github.com/semelstream/semel/stream/internal/assign"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/zap"
)

// balancer is our assignor in Kafka's classic, cooperative group protocol.
// Members tell the leader their facts in the user data of the join; the leader
// plans whole tasks, by package assign, and names their partitions.
//
// With patterns the topics change while the group lives, and members hear of
// them one after the other. The leader plans with what it knows itself, its view;
// the others take what they read from the assignment. Members tell their views'
// fingerprints with their facts, and the leader its own with the assignment: who
// differs asks for a new one, once for each view of its own, and whoever hears
// of another view looks again. See view.go.
type balancer struct {
	sub    map[string]int32 // of each topic that is named
	print  uint64
	facts  func() seam.Facts
	log    *zap.Logger
	look   func() // somebody knows other topics
	anchor string // what the client is told to consume, if there are patterns

	mu   sync.Mutex // guards what follows
	view view
	ids  map[seam.TP]int32 // see disguise
	tps  []seam.TP         // by id

	// rejoin asks for a new assignment. It is used once at most: a restarted
	// member is given its old assignment unseen, also when it came with another
	// topology.
	rejoin   func()
	rejoined atomic.Bool
}

var _ kgo.GroupBalancer = (*balancer)(nil)

func newBalancer(cfg seam.GroupConfig, log *zap.Logger) (*balancer, error) {
	b := &balancer{sub: make(map[string]int32), print: fingerprint(cfg.Subs), facts: cfg.Facts, look: cfg.Look, log: log}
	if b.facts == nil {
		b.facts = func() seam.Facts { return seam.Facts{} }
	}
	if b.look == nil {
		b.look = func() {}
	}
	patterns := cfg.HasPatterns()
	if patterns {
		if cfg.Anchor == "" {
			return nil, errors.New("a group with patterns needs an anchor")
		}
		b.anchor, b.ids = cfg.Anchor, make(map[seam.TP]int32)
	}
	b.view = newView(cfg.Subs)
	for n, s := range cfg.Subs {
		if len(s.Topics)+len(s.Patterns) == 0 || s.Tasks < 0 || s.Tasks == 0 && !patterns {
			return nil, fmt.Errorf("sub-topology %d cannot be assigned: it has %d topics and %d tasks", n, len(s.Topics), s.Tasks)
		}
		for _, t := range s.Topics {
			if _, ok := b.sub[t]; ok {
				return nil, fmt.Errorf("topic %s is read by two sub-topologies, %d and %d", t, b.sub[t], n)
			}
			b.sub[t] = int32(n)
		}
	}
	return b, nil
}

// topics are what the client is told to consume; see disguise.
func (b *balancer) topics() []string {
	if b.anchor != "" {
		return []string{b.anchor}
	}
	return b.now().topics()
}

// tasks are the tasks of partitions, in order. A task is there when any of its
// partitions is: they always move together. With patterns the leader may know of
// more tasks than we do.
func (b *balancer) tasks(parts map[string][]int32) []seam.Task {
	var out []seam.Task
	subs := b.now().subs
	for topic, ps := range parts {
		n, ok := b.subOf(topic)
		if !ok {
			continue // of an older topology
		}
		for _, p := range ps {
			if b.anchor != "" || p < subs[n].Tasks {
				out = append(out, seam.Task{Sub: n, Partition: p})
			}
		}
	}
	slices.SortFunc(out, seam.Task.Compare)
	return slices.Compact(out)
}

// subOf is the sub-topology that reads the topic, which need not be known to be
// there.
func (b *balancer) subOf(topic string) (int32, bool) {
	if n, ok := b.sub[topic]; ok {
		return n, true
	}
	n := slices.IndexFunc(b.now().subs, func(s seam.Sub) bool { return s.Reads(topic) })
	return int32(n), n >= 0
}

// matched are those of the partitions whose topics match a pattern, by task.
func (b *balancer) matched(parts map[string][]int32) map[seam.Task][]seam.TP {
	out := make(map[seam.Task][]seam.TP)
	for topic, ps := range parts {
		if _, named := b.sub[topic]; named {
			continue
		}
		if n, ok := b.subOf(topic); ok {
			for _, p := range ps {
				t := seam.Task{Sub: n, Partition: p}
				out[t] = append(out[t], seam.TP{Topic: topic, Partition: p})
			}
		}
	}
	for _, tps := range out {
		slices.SortFunc(tps, seam.TP.Compare)
	}
	return out
}

// ProtocolName must be the same for all members of a group.
func (b *balancer) ProtocolName() string { return ownProtocol }

func (b *balancer) IsCooperative() bool { return true }

func (b *balancer) JoinGroupMetadata(topics []string, owned map[string][]int32, generation int32) []byte {
	now := b.now()
	if b.anchor != "" {
		topics = now.topics() // the broker keeps the offsets of what it hears of here
		owned = b.reveal(owned)
	}
	m := kmsg.NewConsumerMemberMetadata()
	m.Version, m.Topics, m.Generation = 3, topics, generation
	for _, t := range slices.Sorted(maps.Keys(owned)) {
		o := kmsg.NewConsumerMemberMetadataOwnedPartition()
		o.Topic, o.Partitions = t, owned[t]
		m.OwnedPartitions = append(m.OwnedPartitions, o)
	}
	m.UserData = encodeFacts(b.print, b.facts())
	if b.anchor != "" {
		m.UserData = appendView(m.UserData, now.print)
	}
	return m.AppendTo(nil)
}

func (b *balancer) ParseSyncAssignment(a []byte) (map[string][]int32, error) {
	var m kmsg.ConsumerMemberAssignment
	if err := m.ReadFrom(a); err != nil {
		return nil, fmt.Errorf("reading the group's assignment: %w", err)
	}
	print, rest, err := decodePrint(m.UserData)
	switch {
	case err != nil:
	case print == b.print:
		b.compare(rest)
	case b.rejoined.CompareAndSwap(false, true):
		b.log.Info("the assignment was made for another topology; asking for a new one")
		b.rejoin()
	}
	parts, err := kgo.ParseConsumerSyncAssignment(a)
	if err != nil || b.anchor == "" {
		return parts, err
	}
	return b.disguise(parts), nil
}

func (b *balancer) MemberBalancer(ms []kmsg.JoinGroupResponseMember) (kgo.GroupMemberBalancer, map[string]struct{}, error) {
	cb, err := kgo.NewConsumerBalancer(b, ms)
	// No topics: the plan is made from Subs alone and needs no metadata.
	return cb, nil, err
}

// Balance is called on the leader.
func (b *balancer) Balance(cb *kgo.ConsumerBalancer, _ map[string]int32) kgo.IntoSyncAssignment {
	now := b.now()
	claims := b.claims(cb)
	ids := make(map[string]string) // member ids by name
	members := make([]assign.Member, 0, len(cb.Members()))
	cb.EachMember(func(m *kmsg.JoinGroupResponseMember, meta *kmsg.ConsumerMemberMetadata) {
		name := memberName(m)
		ids[name] = m.MemberID
		members = append(members, assign.Member{ID: name, Owned: claims.owned(m.MemberID), Facts: b.factsOf(name, meta)})
	})
	plan := assign.Plan(members, now.subs)
	out := make(assignments, 0, len(members))
	for _, m := range members {
		id := ids[m.ID]
		tasks := slices.DeleteFunc(plan[m.ID], func(t seam.Task) bool { return claims.heldByOther(t, id) })
		out = append(out, b.assignment(now, id, tasks))
	}
	return out
}

// memberName is what ties are broken by: the instance outlives restarts.
func memberName(m *kmsg.JoinGroupResponseMember) string {
	if m.InstanceID != nil {
		return *m.InstanceID
	}
	return "\x00" + m.MemberID // never an instance's name
}

func (b *balancer) factsOf(name string, meta *kmsg.ConsumerMemberMetadata) seam.Facts {
	print, f, rest, err := readFacts(meta.UserData)
	switch {
	case err != nil:
		b.log.Warn("a member's facts cannot be read, it is given tasks without them", zap.String("member", name), zap.Error(err))
	case print != b.print:
		b.log.Warn("a member has another topology; the group's tasks are those of its leader", zap.String("member", name))
	default:
		if view, ok := readView(rest); ok && view != b.now().print {
			b.look()
		}
	}
	return f
}

// assignment names the partitions of tasks.
func (b *balancer) assignment(now view, member string, tasks []seam.Task) kmsg.SyncGroupRequestGroupAssignment {
	parts := make(map[int32][]int32) // by sub-topology
	for _, t := range tasks {
		parts[t.Sub] = append(parts[t.Sub], t.Partition)
	}
	var a kmsg.ConsumerMemberAssignment
	add := func(topic string, ps []int32) {
		if len(ps) > 0 {
			t := kmsg.NewConsumerMemberAssignmentTopic()
			t.Topic, t.Partitions = topic, ps
			a.Topics = append(a.Topics, t)
		}
	}
	for n, s := range now.subs {
		ps := parts[int32(n)]
		for _, topic := range s.Topics {
			add(topic, ps)
		}
		for _, topic := range slices.Sorted(maps.Keys(s.Matched)) {
			add(topic, slices.DeleteFunc(slices.Clone(ps), func(p int32) bool { return p >= s.Matched[topic] }))
		}
	}
	a.UserData = encodePrint(b.print)
	if b.anchor != "" {
		a.UserData = appendView(a.UserData, now.print)
	}
	out := kmsg.NewSyncGroupRequestGroupAssignment()
	out.MemberID, out.MemberAssignment = member, a.AppendTo(nil)
	return out
}

type assignments []kmsg.SyncGroupRequestGroupAssignment

func (a assignments) IntoSyncAssignment() []kmsg.SyncGroupRequestGroupAssignment { return a }

// claims are who says to own which task, and since which generation. A member
// that missed rebalances may still claim what was given to another since.
type claims map[seam.Task]map[string]int32

func (b *balancer) claims(cb *kgo.ConsumerBalancer) claims {
	c := make(claims)
	cb.EachMember(func(m *kmsg.JoinGroupResponseMember, meta *kmsg.ConsumerMemberMetadata) {
		parts := make(map[string][]int32, len(meta.OwnedPartitions))
		for _, o := range meta.OwnedPartitions {
			parts[o.Topic] = append(parts[o.Topic], o.Partitions...)
		}
		for _, t := range b.tasks(parts) {
			if c[t] == nil {
				c[t] = make(map[string]int32, 1)
			}
			c[t][m.MemberID] = meta.Generation
		}
	})
	return c
}

// newest is the generation of the newest claim of t.
func (c claims) newest(t seam.Task) int32 {
	newest := int32(-1)
	for _, g := range c[t] {
		newest = max(newest, g)
	}
	return newest
}

// owned are the tasks of which member has the newest claim.
func (c claims) owned(member string) []seam.Task {
	var out []seam.Task
	for t, by := range c {
		if g, ok := by[member]; ok && g == c.newest(t) {
			out = append(out, t)
		}
	}
	slices.SortFunc(out, seam.Task.Compare)
	return out
}

// heldByOther says that member must wait for t until somebody else gave it
// up: the second rebalance of the cooperative protocol assigns it.
func (c claims) heldByOther(t seam.Task, member string) bool {
	if g, ok := c[t][member]; ok && g == c.newest(t) {
		return false
	}
	return len(c[t]) > 0
}
