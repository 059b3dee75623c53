package kafka

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/semelstream/semel/txn"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/zap"
)

// The assignment protocols of a group say whose it is.
const (
	streamsProtocol = "stream" // Kafka Streams'
	ownProtocol     = "semel"  // ours
)

// What keeps a group from being taken over.
var (
	// ErrRunning is a group with members that live.
	ErrRunning = errors.New("the group has living members")
	// ErrForeign is a group of members that are neither Kafka Streams nor Semel.
	ErrForeign = errors.New("the group is another program's")
	// ErrNoOffsets is a group that has not committed anything.
	ErrNoOffsets = errors.New("the group has no offsets")
)

const (
	// lookAgain is how often to look at the group.
	lookAgain = 200 * time.Millisecond
	// comeBack is how long a member that was made to leave may need to come
	// back if it lives: it learns by its next heartbeat, and those are 3 s apart.
	comeBack = 10 * time.Second
	// sweepTime is how much later than its session a member may go.
	sweepTime = 5 * time.Second
)

// A Takeover makes room for us where Kafka Streams was.
type Takeover struct {
	Group   string
	Session time.Duration // how long a dead member can stay
	Evict   bool          // members are said to be dead: make them leave

	comeBack time.Duration // for tests; 0 is the constant
}

// Run waits until the group has no members of Kafka Streams' any more, or makes
// them leave, and fences the transactional ids that they had. It can be repeated
// whatever became of it, and does nothing to a group that has members of ours.
//
// A broker does not say which members live. One that is dead goes when its
// session ends, so one that is there longer lives. One that was made to leave
// and lives comes back, which costs it a rebalance and nothing else.
//
// Members go first, then producers are fenced. A member that slept through all
// this can commit nothing: its generation is gone and its producer is fenced.
// It may join again, and either finds the group empty, so that we are refused,
// or us in it, so that it is.
func (t Takeover) Run(ctx context.Context, cfg Config) error {
	env, closeEnv, err := NewEnv(cfg)
	if err != nil {
		return err
	}
	defer closeEnv()
	return t.run(ctx, env.Broker.(*broker).admin)
}

func (t Takeover) run(ctx context.Context, a *admin) error {
	topics, err := a.CommittedTopics(ctx, t.Group)
	if err != nil {
		return err
	}
	if len(topics) == 0 {
		return fmt.Errorf("group %s: %w", t.Group, ErrNoOffsets)
	}
	ours, err := t.empty(ctx, a)
	if err != nil {
		return err
	}
	fenced, err := txn.FenceAll(ctx, a.cl, a.scope(t.Group), streamsIDs(t.Group))
	if len(fenced) > 0 {
		a.log.Info("fenced the transactional ids of Kafka Streams", zap.String("group", t.Group), zap.Strings("transactional ids", fenced))
	}
	if err != nil || ours {
		return err
	}
	return t.stillEmpty(ctx, a)
}

// streamsIDs are the transactional ids of an application: its id, the process's
// UUID and the thread; before 2.6 its id and the task. Another application whose
// id begins like this one's has none of them.
func streamsIDs(app string) func(id string) bool {
	form := regexp.MustCompile(`^` + regexp.QuoteMeta(app) + `-([0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}-[0-9]+|[0-9]+_[0-9]+)$`)
	return form.MatchString
}

// empty returns when the group has no members, or members of ours.
func (t Takeover) empty(ctx context.Context, a *admin) (ours bool, err error) {
	started := time.Now()
	first := map[string]bool{} // member ids that were there at the beginning
	for n := 0; ; n++ {
		g, err := a.look(ctx, t.Group)
		switch {
		case err != nil:
			return false, err
		case g.empty():
			return false, nil
		case g.protocol == ownProtocol:
			return true, nil
		case g.protocol != "" && g.protocol != streamsProtocol:
			return false, fmt.Errorf("group %s has members with the protocol %q (%s): %w", t.Group, g.protocol, g.names(), ErrForeign)
		case t.Evict && len(g.members) > 0 && g.protocol != "":
			return false, t.evict(ctx, a, g)
		}
		if n == 0 {
			for _, m := range g.members {
				first[m.MemberID] = true
			}
			a.log.Info("waiting until the sessions of the group's members end", zap.String("group", t.Group), zap.String("members", g.names()), zap.Duration("session", t.Session))
		}
		came := slices.ContainsFunc(g.members, func(m kmsg.DescribeGroupsResponseGroupMember) bool { return !first[m.MemberID] })
		if came || time.Since(started) > t.Session+sweepTime {
			return false, g.running(t.Group)
		}
		if err := sleep(ctx, lookAgain); err != nil {
			return false, fmt.Errorf("waiting until group %s is empty, which has %s: %w", t.Group, g.names(), err)
		}
	}
}

// evict makes the members leave and waits for those that live to come back.
func (t Takeover) evict(ctx context.Context, a *admin, g groupLook) error {
	req := kmsg.NewPtrLeaveGroupRequest()
	req.Group = t.Group
	for _, member := range g.members {
		m := kmsg.NewLeaveGroupRequestMember()
		m.MemberID, m.InstanceID = member.MemberID, member.InstanceID
		m.Reason = kmsg.StringPtr("the application is taken over")
		req.Members = append(req.Members, m)
	}
	if err := a.leave(ctx, req); err != nil {
		return err
	}
	a.log.Info("made the members leave; looking whether one comes back", zap.String("group", t.Group), zap.String("members", g.names()))
	wait := comeBack
	if t.comeBack > 0 {
		wait = t.comeBack
	}
	for start := time.Now(); time.Since(start) < wait; {
		if err := t.stillEmpty(ctx, a); err != nil {
			return err
		}
		if err := sleep(ctx, lookAgain); err != nil {
			return fmt.Errorf("looking whether members of group %s come back: %w", t.Group, err)
		}
	}
	return nil
}

func (t Takeover) stillEmpty(ctx context.Context, a *admin) error {
	g, err := a.look(ctx, t.Group)
	if err != nil || g.empty() || g.protocol == ownProtocol {
		return err
	}
	return g.running(t.Group)
}

// leave is repeated until each member has left or was gone.
func (a *admin) leave(ctx context.Context, req *kmsg.LeaveGroupRequest) error {
	return a.again(ctx, "making the members of group "+req.Group+" leave", func() error {
		resp, err := req.RequestWith(ctx, a.cl)
		if err != nil {
			return err
		}
		if err := kerr.ErrorForCode(resp.ErrorCode); err != nil {
			return explain(err, "Read", "group "+req.Group)
		}
		for _, m := range resp.Members {
			if err := kerr.ErrorForCode(m.ErrorCode); err != nil && !errors.Is(err, kerr.UnknownMemberID) {
				return err
			}
		}
		return nil
	})
}

// A groupLook is a group as it was a moment ago.
type groupLook struct {
	protocol string // empty while the group rebalances, and of other kinds than classic
	members  []kmsg.DescribeGroupsResponseGroupMember
	others   bool // members of a group that is not classic, which are not told
}

func (g groupLook) empty() bool { return len(g.members) == 0 && !g.others }

func (g groupLook) running(group string) error {
	return fmt.Errorf("group %s has %s: %w", group, g.names(), ErrRunning)
}

// names are the members with where they run.
func (g groupLook) names() string {
	if g.others {
		return "members of the protocol of groups that brokers assign (group.protocol)"
	}
	var s []string
	for _, m := range g.members {
		s = append(s, m.ClientID+" at "+strings.TrimPrefix(m.ClientHost, "/"))
	}
	slices.Sort(s)
	return strings.Join(s, ", ")
}

func (a *admin) look(ctx context.Context, group string) (g groupLook, err error) {
	err = a.again(ctx, "describing group "+group, func() (err error) {
		g, err = a.lookOnce(ctx, group)
		return explain(err, "Describe", "group "+group)
	})
	return g, err
}

func (a *admin) lookOnce(ctx context.Context, group string) (groupLook, error) {
	req := kmsg.NewPtrDescribeGroupsRequest()
	req.Groups = []string{group}
	resp, err := req.RequestWith(ctx, a.cl)
	if err != nil {
		return groupLook{}, err
	}
	for _, g := range resp.Groups {
		if err := kerr.ErrorForCode(g.ErrorCode); err != nil && !errors.Is(err, kerr.GroupIDNotFound) {
			return groupLook{}, err
		}
		if g.Group == group && len(g.Members) > 0 {
			return groupLook{protocol: g.Protocol, members: g.Members}, nil
		}
	}
	// A group of another kind looks as if it were not there.
	others, err := a.otherKind(ctx, group)
	return groupLook{others: others}, err
}

// otherKind says that the group is one that brokers assign, with members.
func (a *admin) otherKind(ctx context.Context, group string) (bool, error) {
	for _, shard := range a.cl.RequestSharded(ctx, kmsg.NewPtrListGroupsRequest()) {
		if shard.Err != nil {
			return false, shard.Err
		}
		resp := shard.Resp.(*kmsg.ListGroupsResponse)
		if err := kerr.ErrorForCode(resp.ErrorCode); err != nil {
			return false, err
		}
		for _, g := range resp.Groups {
			classic := g.GroupType == "" || strings.EqualFold(g.GroupType, "classic")
			idle := strings.EqualFold(g.GroupState, "Empty") || strings.EqualFold(g.GroupState, "Dead")
			if g.Group == group && !classic && !idle {
				return true, nil
			}
		}
	}
	return false, nil
}
