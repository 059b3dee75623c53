package kafka

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/semelstream/semel/internal/seam"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	// fetchMaxWait is how long the broker holds a fetch that has nothing to
	// say. A partition that is added waits for the one in flight; the price of
	// 100 ms is ten idle fetches a second for each broker.
	fetchMaxWait = 100 * time.Millisecond
	// Together these bound what a client buffers for each broker.
	fetchMaxBytes          = 16 << 20
	fetchMaxPartitionBytes = 4 << 20
)

// consumeOptions make a client read partitions that are assigned by hand.
func consumeOptions() []kgo.Opt {
	return []kgo.Opt{
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		// Without them a position never passes a marker at the end of the log.
		kgo.KeepControlRecords(),
		kgo.FetchMaxWait(fetchMaxWait),
		kgo.FetchMaxBytes(fetchMaxBytes),
		kgo.FetchMaxPartitionBytes(fetchMaxPartitionBytes),
		// The default rewinds by a minute, silently.
		kgo.ConsumeResetOffset(kgo.NoResetOffset()),
	}
}

// Consumer opens a client that only reads.
func (b *broker) Consumer(context.Context) (seam.Consumer, error) {
	cl, err := b.newClient("reader", consumeOptions()...)
	if err != nil {
		return nil, err
	}
	return newConsumer(cl), nil
}

// consumer reads the partitions that it was assigned.
type consumer struct {
	cl       *kgo.Client
	assigned map[seam.TP]int64               // the next offset that may come
	added    map[string]map[int32]kgo.Offset // not yet given to cl
	out      []seam.Batch                    // reused by each Poll
	failed   []error                         // for the next Polls
	woken    atomic.Bool

	mu     sync.Mutex
	cancel context.CancelFunc // of the Poll that waits
}

var _ seam.Consumer = (*consumer)(nil)

func newConsumer(cl *kgo.Client) *consumer {
	return &consumer{cl: cl, assigned: make(map[seam.TP]int64), added: make(map[string]map[int32]kgo.Offset)}
}

// Assign keeps the partition until the next Poll: each call to kgo costs a
// metadata request, and a worker assigns many partitions in a row.
func (c *consumer) Assign(tp seam.TP, at int64) {
	c.Unassign(tp)
	c.assigned[tp] = at
	if c.added[tp.Topic] == nil {
		c.added[tp.Topic] = make(map[int32]kgo.Offset)
	}
	c.added[tp.Topic][tp.Partition] = kgo.NewOffset().At(at)
}

// Unassign throws away what is buffered, of all partitions: kgo fetches the
// others' again.
func (c *consumer) Unassign(tps ...seam.TP) {
	var gone map[string][]int32
	for _, tp := range tps {
		if _, ok := c.assigned[tp]; !ok {
			continue
		}
		delete(c.assigned, tp)
		if _, ok := c.added[tp.Topic][tp.Partition]; ok {
			delete(c.added[tp.Topic], tp.Partition)
			continue // kgo has not heard of it
		}
		if gone == nil {
			gone = make(map[string][]int32)
		}
		gone[tp.Topic] = append(gone[tp.Topic], tp.Partition)
	}
	if gone != nil {
		c.cl.RemoveConsumePartitions(gone)
	}
	c.failed = dropErrors(c.failed, c.assigned)
}

// dropErrors forgets errors of partitions that are assigned no more.
func dropErrors(errs []error, assigned map[seam.TP]int64) []error {
	kept := errs[:0]
	for _, err := range errs {
		if pe, ok := errors.AsType[*seam.PartitionError](err); ok {
			if _, ok := assigned[pe.TP]; !ok {
				continue
			}
		}
		kept = append(kept, err)
	}
	return kept
}

// Poll takes what is buffered without looking at a clock, and waits only if
// that is nothing.
func (c *consumer) Poll(ctx context.Context, max int, wait time.Duration) ([]seam.Batch, error) {
	if len(c.added) > 0 {
		c.cl.AddConsumePartitions(c.added)
		c.added = make(map[string]map[int32]kgo.Offset) // the other one is kgo's
	}
	if err := c.failure(); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	out := c.batches(c.cl.PollRecords(nil, max)) //nolint:staticcheck // nil means: do not wait
	if len(out) > 0 || len(c.failed) > 0 {
		c.woken.Store(false)
	} else {
		out = c.await(ctx, max, wait)
	}
	if len(out) > 0 {
		return out, nil // errors come with the next Poll
	}
	if err := c.failure(); err != nil {
		return nil, err
	}
	return nil, ctx.Err()
}

// failure is the oldest error not yet reported.
func (c *consumer) failure() error {
	if len(c.failed) == 0 {
		return nil
	}
	err := c.failed[0]
	c.failed = c.failed[1:]
	return err
}

// await polls until something comes, the time is over or somebody wakes us.
// What came may turn out to be nothing (an error that kgo retries), so it
// polls again for the rest of the time.
func (c *consumer) await(ctx context.Context, max int, wait time.Duration) []seam.Batch {
	pctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	c.mu.Lock()
	c.cancel = cancel
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		c.cancel = nil
		c.mu.Unlock()
	}()
	// Wake sets woken before it looks for cancel, and we set cancel before we
	// look at woken: one of the two sees the other.
	for !c.woken.Swap(false) && pctx.Err() == nil {
		if out := c.batches(c.cl.PollRecords(pctx, max)); len(out) > 0 || len(c.failed) > 0 {
			return out
		}
	}
	return nil
}

// Wake may be called from any goroutine.
func (c *consumer) Wake() {
	c.woken.Store(true)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cancel != nil {
		c.cancel()
	}
}

func (c *consumer) Close() {
	c.Wake()
	c.cl.Close()
}

// fail notes an error of a fetch. What kgo retries by itself is none.
func (c *consumer) fail(topic string, partition int32, err error) {
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return // of the poll itself
	case topic == "":
		c.failed = append(c.failed, fmt.Errorf("fetching: %w", err))
		return
	case transient(err) && !errors.Is(err, kerr.UnknownTopicID):
		return // an unknown topic id that gets here is a topic that was made anew
	}
	err = explain(err, "Read", "topic "+topic)
	if partition >= 0 {
		if _, ok := c.assigned[seam.TP{Topic: topic, Partition: partition}]; ok {
			c.failed = append(c.failed, &seam.PartitionError{TP: seam.TP{Topic: topic, Partition: partition}, Err: err})
		}
		return
	}
	for _, tp := range seam.SortedTPs(c.assigned) { // about the whole topic
		if tp.Topic == topic {
			c.failed = append(c.failed, &seam.PartitionError{TP: tp, Err: err})
		}
	}
}
