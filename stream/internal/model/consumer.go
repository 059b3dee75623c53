package model

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/semelstream/semel/internal/assert"
	"github.com/semelstream/semel/internal/seam"
	"github.com/twmb/franz-go/pkg/kgo"
)

// consumer is seam.Consumer.
type consumer struct {
	l      *link
	at     []position // by partition
	first  int        // whose turn it is to be read first
	woken  bool
	parked *co // in Poll
	user   *co // inside a call
	closed bool
	out    []seam.Batch // reused by each Poll, as the real one does
}

type position struct {
	seam.TP
	next int64
}

// Consumer implements seam.Broker.
func (l *link) Consumer(ctx context.Context) (seam.Consumer, error) {
	l.w.self()
	return &consumer{l: l}, ctx.Err()
}

// enter guards the promise that calls come from one goroutine at a time.
func (c *consumer) enter() (leave func(), err error) {
	me := c.l.w.self()
	assert.That(c.user == nil, "%s calls a consumer that %s is inside of", me.name, nameOf(c.user))
	if c.closed {
		return nil, kgo.ErrClientClosed
	}
	c.user = me
	return func() { c.user = nil }, nil
}

func nameOf(c *co) string {
	if c == nil {
		return "nobody"
	}
	return c.name
}

func (c *consumer) find(tp seam.TP) (int, bool) {
	return slices.BinarySearchFunc(c.at, tp, func(p position, tp seam.TP) int { return p.TP.Compare(tp) })
}

func (c *consumer) Assign(tp seam.TP, at int64) {
	leave, err := c.enter()
	if err != nil {
		return
	}
	defer leave()
	i, ok := c.find(tp)
	if !ok {
		c.at = slices.Insert(c.at, i, position{TP: tp})
	}
	c.at[i].next = at
}

func (c *consumer) Unassign(tps ...seam.TP) {
	leave, err := c.enter()
	if err != nil {
		return
	}
	defer leave()
	for _, tp := range tps {
		if i, ok := c.find(tp); ok {
			c.at = slices.Delete(c.at, i, i+1)
		}
	}
}

func (c *consumer) Wake() {
	c.woken = true
	if c.parked != nil {
		c.l.w.rouse(c.parked)
	}
}

func (c *consumer) Close() { c.closed = true; c.Wake() }

func (c *consumer) Poll(ctx context.Context, max int, wait time.Duration) ([]seam.Batch, error) {
	leave, err := c.enter()
	if err != nil {
		return nil, err
	}
	defer leave()
	until := c.l.w.after(wait)
	for {
		batches, err := c.fetch(ctx, max)
		if err != nil || len(batches) > 0 {
			return batches, err
		}
		if c.woken || c.closed {
			c.woken = false
			return nil, nil
		}
		if c.l.w.broker.now >= until {
			return nil, nil
		}
		c.park(ctx, until, wait <= 0)
	}
}

// park waits until there may be something to read. A poll that only looks is
// busy: its worker has something else to do.
func (c *consumer) park(ctx context.Context, until int64, busy bool) {
	w := c.l.w
	if slices.ContainsFunc(c.at, func(p position) bool { return w.broker.more(p.TP, p.next) }) {
		return // it came while the last answer was on its way
	}
	c.parked = w.self()
	w.polls = append(w.polls, c)
	defer func() {
		c.parked = nil
		w.polls = slices.DeleteFunc(w.polls, func(o *consumer) bool { return o == c })
	}()
	w.wait(ctx, until, busy, "poll")
}

// changed wakes those who wait for tp.
func (w *World) changed(tp seam.TP) {
	for _, c := range w.polls {
		if _, ok := c.find(tp); ok && c.parked != nil {
			w.rouse(c.parked)
		}
	}
}

// fetch is one Fetch request for all partitions. A lost one is not an error:
// clients try again by themselves.
func (c *consumer) fetch(ctx context.Context, max int) ([]seam.Batch, error) {
	if len(c.at) == 0 {
		return nil, ctx.Err()
	}
	c.first++
	at := append(slices.Clone(c.at[c.first%len(c.at):]), c.at[:c.first%len(c.at)]...)
	answer := new([]seam.Batch)
	err := c.l.call(ctx, "Fetch", func() (err error) {
		*answer, err = c.l.w.broker.fetch(at, max)
		return err
	})
	if errors.Is(err, errLost) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for _, b := range *answer {
		i, _ := c.find(b.TP)
		c.at[i].next = b.Next
	}
	c.out = append(c.out[:0], *answer...)
	return c.out, nil
}

// fetch reads at most max records of the partitions, in order.
func (b *broker) fetch(at []position, max int) (out []seam.Batch, err error) {
	for _, p := range at {
		if max <= 0 {
			break
		}
		l, err := b.logs([]seam.TP{p.TP})
		if err != nil {
			return nil, &seam.PartitionError{TP: p.TP, Err: err}
		}
		recs, next, err := l[0].read(p.next, max)
		if err != nil {
			return nil, &seam.PartitionError{TP: p.TP, Err: err}
		}
		if next == p.next {
			continue
		}
		max -= len(recs)
		bytes := 0
		for _, r := range recs {
			bytes += len(r.Key) + len(r.Value)
		}
		out = append(out, seam.Batch{TP: p.TP, Records: recs, Bytes: bytes, Next: next, Epoch: 0, Stable: l[0].stable()})
	}
	return out, nil
}

// more says whether a fetch at the position would be answered at once.
func (b *broker) more(tp seam.TP, at int64) bool {
	l := b.log(tp)
	return l == nil || l.stable() > at || at > l.end() || at < l.start
}
