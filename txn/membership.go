package txn

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/zap"
)

// revokePatience is how long the group waits for a batch in hand. What is
// revoked is lost to the batch in any case; the wait only spares the next
// owner from waiting for the transaction.
const revokePatience = 30 * time.Second

// A membership is a Session's place in the consumer group: a client that never
// fetches, so that heartbeats do not depend on processing. The group's
// callbacks only note what changed; the Session acts on it at its own pace.
type membership struct {
	cl       *kgo.Client
	group    string
	instance string
	log      *zap.Logger

	mu    sync.Mutex
	owned map[TP]uint64 // partition -> number of the assignment that brought it
	seq   uint64
	turn  uint64        // counts the times that something was taken
	idle  chan struct{} // not nil while the Session has records in hand
	wake  func()        // ends a poll that waits
	err   error         // the group refuses us for good
}

// join enters the group. ctx ends the watch over its errors.
func join(ctx context.Context, cfg Config) (*membership, error) {
	g := &membership{group: cfg.Group, instance: cfg.Instance, log: cfg.Logger, owned: map[TP]uint64{}}
	opts := append(ClientOptions(), kgo.SeedBrokers(cfg.Brokers...))
	opts = append(opts, cfg.Client...)
	opts = append(opts,
		kgo.ConsumerGroup(cfg.Group),
		kgo.ConsumeTopics(cfg.Topics...),
		kgo.Balancers(kgo.CooperativeStickyBalancer()), // unmoved partitions go on through a rebalance
		kgo.DisableAutoCommit(),
		kgo.OnPartitionsAssigned(func(_ context.Context, _ *kgo.Client, m map[string][]int32) { g.assigned(m) }),
		kgo.OnPartitionsRevoked(func(ctx context.Context, _ *kgo.Client, m map[string][]int32) { g.revoked(ctx, m) }),
		kgo.OnPartitionsLost(func(_ context.Context, _ *kgo.Client, m map[string][]int32) { g.take(m) }),
	)
	if cfg.Instance != "" {
		opts = append(opts, kgo.InstanceID(cfg.Instance))
	}
	cl, err := kgo.NewClient(opts...)
	if err != nil {
		return nil, fmt.Errorf("txn: member of group %s: %w", cfg.Group, err)
	}
	cl.PauseFetchTopics(cfg.Topics...)
	g.cl = cl
	go g.watch(ctx)
	return g, nil
}

// watch waits for errors of the group, which come out of polls only.
func (g *membership) watch(ctx context.Context) {
	for ctx.Err() == nil {
		fs := g.cl.PollFetches(ctx)
		if fs.IsClientClosed() {
			return
		}
		fs.EachError(func(_ string, _ int32, err error) {
			if ctx.Err() == nil {
				g.failed(err)
			}
		})
	}
}

func (g *membership) failed(err error) {
	if Judge(err) != OutcomeFatal {
		g.log.Info("the consumer group reports an error and is joined again", zap.String("group", g.group), zap.Error(err))
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.err = fmt.Errorf("txn: group %s: %w", g.group, withFix(err, g.group))
	g.wakeLocked()
}

func (g *membership) assigned(m map[string][]int32) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for topic, ps := range m {
		for _, n := range ps {
			g.seq++
			g.owned[TP{Topic: topic, Partition: n}] = g.seq
		}
	}
	g.wakeLocked()
}

// revoked takes the partitions away and holds the rebalance until the Session
// has nothing in hand, at most revokePatience.
func (g *membership) revoked(ctx context.Context, m map[string][]int32) {
	idle := g.take(m)
	if idle == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, revokePatience)
	defer cancel()
	select {
	case <-idle:
	case <-ctx.Done():
	}
}

// take removes partitions from what is owned, first of all and whatever comes
// after: TxnOffsetCommit is fenced by generation, not by partition. It returns
// what to wait for, if anything.
func (g *membership) take(m map[string][]int32) (idle chan struct{}) {
	if len(m) == 0 {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for topic, ps := range m {
		for _, n := range ps {
			delete(g.owned, TP{Topic: topic, Partition: n})
		}
	}
	g.turn++
	g.wakeLocked()
	return g.idle
}

func (g *membership) wakeLocked() {
	if g.wake != nil {
		g.wake()
	}
}

// waking makes changes of the group end a poll.
func (g *membership) waking(wake func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.wake = wake
}

// now is what is owned, and the group's refusal.
func (g *membership) now() (map[TP]uint64, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return maps.Clone(g.owned), g.err
}

// hold tells the group that records are in hand, unless some were already. It
// calls keep with what is owned; the batch is in hand if keep says so.
func (g *membership) hold(keep func(owned map[TP]uint64) bool) (turn uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if keep(g.owned) && g.idle == nil {
		g.idle = make(chan struct{})
	}
	return g.turn
}

// release says that nothing is in hand any more.
func (g *membership) release() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.idle != nil {
		close(g.idle)
		g.idle = nil
	}
}

// still says whether nothing was taken since turn, and as whom to commit if so.
// The member is read while nothing can be taken: a generation in which a
// partition of the batch belongs to another only comes after take has run.
func (g *membership) still(turn uint64) (Member, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.turn != turn {
		return Member{}, false
	}
	id, generation := g.cl.GroupMetadata()
	return Member{Group: g.group, ID: id, Instance: g.instance, Generation: generation}, true
}
