package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/semelstream/semel/internal/seam"
	"github.com/semelstream/semel/txn"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/zap"
)

const (
	defaultSession = 45 * time.Second
	// rebalanceTimeout is how long the others wait for a member to give up
	// tasks, and so how long a worker may take for its last commit.
	rebalanceTimeout = 60 * time.Second
	// closeTimeout bounds Close: a join in flight cannot be called back.
	closeTimeout = 5 * time.Second
)

// Group joins the consumer group. The client never fetches: heartbeats do not
// depend on processing, and the committed offsets are fetched by hand
// (committed.go), because kgo's own fetch repeats once a second only.
func (b *broker) Group(_ context.Context, cfg seam.GroupConfig) (seam.Group, error) {
	return b.join(cfg, rebalanceTimeout)
}

func (b *broker) join(cfg seam.GroupConfig, patience time.Duration) (*group, error) {
	if cfg.Session <= 0 {
		cfg.Session = b.cfg.Session
	}
	if cfg.Session <= 0 {
		cfg.Session = defaultSession
	}
	log := b.log.With(zap.String("group", cfg.Group), zap.String("instance", cfg.Instance))
	bal, err := newBalancer(cfg, log)
	if err != nil {
		return nil, err
	}
	g := &group{cfg: cfg, log: log, admin: b.admin, bal: bal, news: make(signal, 1), closing: make(chan struct{}), patience: patience}
	g.ctx, g.stop = context.WithCancel(context.Background())
	bal.rejoin = g.Rejoin
	g.mu.Lock() // callbacks wait until cl is set
	defer g.mu.Unlock()
	if g.cl, err = b.newClient("member", g.options()...); err != nil {
		g.stop()
		return nil, err
	}
	g.cl.PauseFetchTopics(bal.topics()...)
	g.polled = make(chan struct{})
	go g.poll()
	return g, nil
}

func (g *group) options() []kgo.Opt {
	opts := []kgo.Opt{
		kgo.ConsumerGroup(g.cfg.Group),
		kgo.ConsumeTopics(g.bal.topics()...),
		kgo.Balancers(g.bal),
		kgo.SessionTimeout(g.cfg.Session),
		kgo.RebalanceTimeout(g.patience),
		// A member learns of a rebalance by its heartbeat.
		kgo.HeartbeatInterval(min(g.cfg.Session/15, 3*time.Second)),
		kgo.DisableAutoCommit(),
		kgo.OnPartitionsAssigned(g.onAssigned),
		kgo.OnPartitionsRevoked(g.onRevoked),
		kgo.OnPartitionsLost(g.onLost),
		// kgo fetches the committed offsets of what it was assigned, in the
		// background. They are of no use here: nothing is assigned to its fetches.
		kgo.AdjustFetchOffsetsFn(func(context.Context, map[string]map[int32]kgo.Offset) (map[string]map[int32]kgo.Offset, error) {
			return nil, nil
		}),
		kgo.ConsumeResetOffset(kgo.NoResetOffset()),
	}
	if g.cfg.Instance != "" {
		opts = append(opts, kgo.InstanceID(g.cfg.Instance))
	}
	return opts
}

// group turns kgo's callbacks into a queue of changes. A callback holds up the
// group's next step until Done was called or its patience ends.
type group struct {
	cfg      seam.GroupConfig
	log      *zap.Logger
	admin    *admin
	bal      *balancer
	patience time.Duration
	news     signal // something for Next
	closing  chan struct{}
	ctx      context.Context // of poll
	stop     context.CancelFunc
	polled   chan struct{} // closed when poll ended

	mu     sync.Mutex
	cl     *kgo.Client
	queue  []*change
	failed error // fatal
	joined bool  // has a membership that was not lost
	unsafe int   // changes not done although the group has gone on
	closed bool

	// held are the partitions that the group has given us and not taken back.
	held map[string][]int32
}

var _ seam.Group = (*group)(nil)

// change is a Change with what became of it. The group's mu guards it.
type change struct {
	seam.Change
	done   chan struct{}
	isDone bool
	unsafe bool // counted in group.unsafe
}

func (g *group) onAssigned(_ context.Context, _ *kgo.Client, assigned map[string][]int32) {
	parts := g.bal.reveal(assigned)
	g.mu.Lock()
	g.joined = true
	before := g.hold(parts)
	c := seam.Change{Assigned: g.bal.tasks(parts), Matched: g.bal.matched(g.held)}
	g.mu.Unlock()
	// A task that was ours reads more than before: it is opened anew.
	had := g.bal.tasks(before)
	c.Revoked = slices.DeleteFunc(slices.Clone(c.Assigned), func(t seam.Task) bool { return !slices.Contains(had, t) })
	if len(c.Assigned) > 0 {
		g.tell(c)
	}
}

func (g *group) onRevoked(_ context.Context, _ *kgo.Client, assigned map[string][]int32) {
	parts := g.bal.reveal(assigned)
	g.mu.Lock()
	g.drop(parts)
	c := seam.Change{Revoked: g.bal.tasks(parts), Matched: g.bal.matched(g.held)}
	left := g.bal.tasks(g.held)
	g.mu.Unlock()
	// A task of which something is left reads less than before.
	c.Assigned = slices.DeleteFunc(slices.Clone(c.Revoked), func(t seam.Task) bool { return !slices.Contains(left, t) })
	if len(c.Revoked) > 0 {
		g.tell(c)
	}
}

// hold notes partitions that are ours now, and returns those from before.
func (g *group) hold(parts map[string][]int32) (before map[string][]int32) {
	before, g.held = g.held, make(map[string][]int32, len(g.held)+len(parts))
	for topic, ps := range before {
		g.held[topic] = slices.Clone(ps)
	}
	for topic, ps := range parts {
		g.held[topic] = append(g.held[topic], ps...)
	}
	return before
}

func (g *group) drop(parts map[string][]int32) {
	for topic, ps := range parts {
		g.held[topic] = slices.DeleteFunc(g.held[topic], func(p int32) bool { return slices.Contains(ps, p) })
		if len(g.held[topic]) == 0 {
			delete(g.held, topic)
		}
	}
}

// onLost comes with an empty map, too, when a join failed.
func (g *group) onLost(_ context.Context, _ *kgo.Client, assigned map[string][]int32) {
	parts := g.bal.reveal(assigned)
	g.mu.Lock()
	g.joined = false
	g.drop(parts)
	g.mu.Unlock()
	if tasks := g.bal.tasks(parts); len(tasks) > 0 {
		g.tell(seam.Change{Revoked: tasks, Lost: true})
	}
}

// tell queues a change and waits for its Done.
//
// If the wait is over first, the group goes on, and what was revoked may soon
// be somebody else's although our worker still writes for it. Its commit would
// not be fenced: that is by generation, and we are a member of the next one.
// So there is no valid Member until the late Done.
func (g *group) tell(news seam.Change) {
	c := &change{Change: news, done: make(chan struct{}), unsafe: news.Lost}
	c.Done = func() { g.done(c) }
	g.mu.Lock()
	if g.closed {
		g.mu.Unlock()
		return
	}
	if c.unsafe {
		g.unsafe++
	}
	g.queue = append(g.queue, c)
	g.mu.Unlock()
	g.news.Notify()

	t := time.NewTimer(g.patience)
	defer t.Stop()
	select {
	case <-c.done:
	case <-g.closing:
	case <-t.C:
		g.overdue(c)
	}
}

func (g *group) done(c *change) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if c.isDone {
		return
	}
	c.isDone = true
	if c.unsafe {
		g.unsafe--
	}
	close(c.done)
}

func (g *group) overdue(c *change) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if c.isDone {
		return
	}
	g.log.Warn("tasks were not given up in time; the group goes on without waiting, and commits are refused until they are",
		zap.Int("revoked", len(c.Revoked)), zap.Int("assigned", len(c.Assigned)), zap.Bool("lost", c.Lost), zap.Duration("waited", g.patience))
	if len(c.Revoked) > 0 && !c.unsafe {
		c.unsafe = true
		g.unsafe++
	}
}

// Next returns changes in the order in which they came.
func (g *group) Next(ctx context.Context) (seam.Change, error) {
	for {
		if c, err := g.next(); c != nil || err != nil {
			if err != nil {
				return seam.Change{}, err
			}
			return c.Change, nil
		}
		select {
		case <-g.news:
		case <-ctx.Done():
			return seam.Change{}, ctx.Err()
		}
	}
}

func (g *group) next() (*change, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.queue) > 0 {
		c := g.queue[0]
		g.queue = g.queue[1:]
		return c, nil
	}
	if g.closed {
		return nil, errGroupClosed
	}
	return nil, g.failed
}

var errGroupClosed = errors.New("the group membership was closed")

// nobody is no member of any group: a broker answers UNKNOWN_MEMBER_ID, or
// ILLEGAL_GENERATION where there is no such group. An empty member with
// generation -1 would not do: Kafka accepts a transaction's offsets from it.
const nobody, noGeneration = "semel-not-a-member", 1<<31 - 1

// Member is the membership of this moment.
func (g *group) Member() seam.Member {
	g.mu.Lock()
	cl, valid := g.cl, g.joined && g.unsafe == 0 && !g.closed
	g.mu.Unlock()
	if valid {
		if id, generation := cl.GroupMetadata(); id != "" && generation >= 0 {
			return seam.Member{Group: g.cfg.Group, ID: id, Instance: g.cfg.Instance, Generation: generation}
		}
	}
	return seam.Member{Group: g.cfg.Group, ID: nobody, Generation: noGeneration}
}

// Rejoin makes the leader plan anew, with the facts of now.
func (g *group) Rejoin() {
	g.mu.Lock()
	cl := g.cl
	g.mu.Unlock()
	cl.ForceRebalance()
}

// Update takes a new view of what matches the patterns.
func (g *group) Update(subs []seam.Sub) {
	if g.bal.update(subs) {
		g.Rejoin()
	}
}

// poll drains what kgo has to say; there are never records.
func (g *group) poll() {
	defer close(g.polled)
	for g.ctx.Err() == nil {
		fs := g.cl.PollFetches(g.ctx)
		if fs.IsClientClosed() {
			return
		}
		fs.EachError(func(_ string, _ int32, err error) {
			if gs, ok := errors.AsType[*kgo.ErrGroupSession](err); ok {
				g.judge(gs.Err)
			}
		})
	}
}

// judge tells errors that end the membership from those after which kgo joins
// again.
func (g *group) judge(err error) {
	switch {
	case errors.Is(err, kerr.FencedInstanceID):
		err = fmt.Errorf("group %s, instance %s: %w: another process uses the same instance id, perhaps with a copy of this state directory; stop one of them", g.cfg.Group, g.cfg.Instance, err)
	case errors.Is(err, kerr.InconsistentGroupProtocol):
		err = fmt.Errorf("group %s: %w: members with another assignment protocol are in the group; stop them, or use another application id", g.cfg.Group, err)
	case errors.Is(err, kerr.InvalidSessionTimeout):
		err = fmt.Errorf("group %s: %w: the broker does not allow a session timeout of %v; see its group.min.session.timeout.ms and group.max.session.timeout.ms", g.cfg.Group, err, g.cfg.Session)
	case txn.Judge(err) == txn.OutcomeFatal:
		err = fmt.Errorf("group %s: %w", g.cfg.Group, explain(err, "Read", "group "+g.cfg.Group))
	default:
		g.log.Warn("the group membership was interrupted; joining again", zap.Error(err))
		return
	}
	g.mu.Lock()
	if g.failed == nil {
		g.failed = err
	}
	g.mu.Unlock()
	g.news.Notify()
}

// Close ends the membership. A static member that does not leave keeps its
// tasks until its session ends, or it is back.
func (g *group) Close(leave bool) {
	g.mu.Lock()
	if g.closed {
		g.mu.Unlock()
		return
	}
	g.closed = true
	g.mu.Unlock()
	close(g.closing)
	g.stop()
	g.news.Notify()

	done := make(chan struct{})
	go func() {
		defer close(done)
		g.cl.Close()
		<-g.polled
	}()
	t := time.NewTimer(closeTimeout)
	defer t.Stop()
	select {
	case <-done:
	case <-t.C:
		g.log.Warn("the group client is still waiting for a join; it ends later", zap.Duration("waited", closeTimeout))
	}
	if leave && g.cfg.Instance != "" { // others leave by closing
		g.leave()
	}
}

// leave is by the instance's name; kgo never leaves for a static member.
func (g *group) leave() {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	req := kmsg.NewPtrLeaveGroupRequest()
	req.Group = g.cfg.Group
	m := kmsg.NewLeaveGroupRequestMember()
	m.InstanceID = &g.cfg.Instance
	m.Reason = kmsg.StringPtr("the application stops")
	req.Members = append(req.Members, m)
	err := g.admin.again(ctx, "leaving group "+g.cfg.Group, func() error {
		resp, err := req.RequestWith(ctx, g.admin.cl)
		if err != nil {
			return err
		}
		if err := kerr.ErrorForCode(resp.ErrorCode); err != nil {
			return err
		}
		for _, m := range resp.Members {
			if err := kerr.ErrorForCode(m.ErrorCode); err != nil && !errors.Is(err, kerr.UnknownMemberID) {
				return err
			}
		}
		return nil
	})
	if err != nil {
		g.log.Warn("could not leave the group; the tasks stay here until the session ends", zap.Error(err), zap.Duration("session", g.cfg.Session))
	}
}
