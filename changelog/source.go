package changelog

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semelstream/semel/internal/seam"
)

// A Reader is a [Source] on Kafka. One goroutine calls it, but for Wake.
type Reader struct {
	cl     *kgo.Client
	adm    *kadm.Client
	at     map[TP]int64                    // the next offset of what is assigned
	added  map[string]map[int32]kgo.Offset // not yet given to cl: each call costs a request
	failed []error                         // for the next Polls
	out    []Batch                         // reused by each Poll
	woken  atomic.Bool

	mu     sync.Mutex
	cancel context.CancelFunc // of the Poll that waits
}

var _ Source = (*Reader)(nil)

// NewReader makes a Reader with a client of its own: opts say where the
// brokers are and how to get in. How it reads is not theirs to say: it is not a
// member of a group, reads what is committed, and never resets an offset.
func NewReader(opts ...kgo.Opt) (*Reader, error) {
	cl, err := kgo.NewClient(append(slices.Clip(opts),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		// Without them a position never passes a marker at the end of the log.
		kgo.KeepControlRecords(),
		// The default rewinds by a minute, silently.
		kgo.ConsumeResetOffset(kgo.NoResetOffset()),
		// A partition that is added waits for the idle fetch in flight.
		kgo.FetchMaxWait(100*time.Millisecond),
	)...)
	if err != nil {
		return nil, fmt.Errorf("making a client to read changelogs: %w", err)
	}
	return &Reader{cl: cl, adm: kadm.NewClient(cl), at: map[TP]int64{}, added: map[string]map[int32]kgo.Offset{}}, nil
}

// Assign begins to read tp at the offset.
func (r *Reader) Assign(tp TP, at int64) {
	r.Unassign(tp)
	r.at[tp] = at
	if r.added[tp.Topic] == nil {
		r.added[tp.Topic] = map[int32]kgo.Offset{}
	}
	r.added[tp.Topic][tp.Partition] = kgo.NewOffset().At(at)
}

// Unassign stops; nothing of tps comes out of Poll afterwards.
func (r *Reader) Unassign(tps ...TP) {
	gone := map[string][]int32{}
	for _, tp := range tps {
		if _, ok := r.added[tp.Topic][tp.Partition]; ok {
			delete(r.added[tp.Topic], tp.Partition)
		} else if _, ok := r.at[tp]; ok {
			gone[tp.Topic] = append(gone[tp.Topic], tp.Partition)
		}
		delete(r.at, tp)
	}
	if len(gone) > 0 {
		r.cl.RemoveConsumePartitions(gone)
	}
	r.failed = slices.DeleteFunc(r.failed, func(err error) bool {
		pe, ok := errors.AsType[*seam.PartitionError](err)
		return ok && slices.Contains(tps, pe.TP)
	})
}

// Poll returns what is there, at most max records, and waits up to wait for a
// first one. The batches are good until the next call. An error about one
// partition comes after what was read, and says which.
func (r *Reader) Poll(ctx context.Context, max int, wait time.Duration) ([]Batch, error) {
	if len(r.added) > 0 {
		r.cl.AddConsumePartitions(r.added)
		r.added = map[string]map[int32]kgo.Offset{} // the other one is the client's
	}
	if err := r.failure(); err != nil {
		return nil, err
	}
	pctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	r.wakeable(cancel)
	defer r.wakeable(nil)
	// Wake sets woken before it looks for cancel, and cancel was set before
	// woken is looked at: one of the two sees the other. What came may turn out
	// to be nothing, so that it takes more than one round.
	for out := r.out[:0]; ctx.Err() == nil; {
		out = r.batches(out, r.cl.PollRecords(pctx, max))
		woken := r.woken.Swap(false)
		if r.out = out; len(out) > 0 {
			return out, nil
		}
		if err := r.failure(); err != nil || woken || pctx.Err() != nil && ctx.Err() == nil {
			return nil, err
		}
	}
	return nil, ctx.Err()
}

func (r *Reader) wakeable(cancel context.CancelFunc) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cancel = cancel
	if cancel != nil && r.woken.Load() {
		cancel()
	}
}

// Wake makes a Poll that waits, or else the next one, return. Any goroutine
// may call it.
func (r *Reader) Wake() {
	r.woken.Store(true)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cancel != nil {
		r.cancel()
	}
}

// Close ends the client.
func (r *Reader) Close() { r.cl.Close() }

// batches appends what was fetched, without control records, and keeps errors.
func (r *Reader) batches(out []Batch, fs kgo.Fetches) []Batch {
	fs.EachPartition(func(p kgo.FetchTopicPartition) {
		tp := TP{Topic: p.Topic, Partition: p.Partition}
		at, assigned := r.at[tp]
		switch {
		case p.Err == nil || errors.Is(p.Err, context.Canceled) || errors.Is(p.Err, context.DeadlineExceeded):
		case p.Topic == "":
			r.failed = append(r.failed, fmt.Errorf("fetching: %w", p.Err))
		case assigned:
			r.failed = append(r.failed, &seam.PartitionError{TP: tp, Err: p.Err})
		}
		if !assigned || len(p.Records) == 0 {
			return
		}
		first, last := p.Records[0], p.Records[len(p.Records)-1]
		if first.Offset < at {
			r.failed = append(r.failed, &seam.PartitionError{TP: tp, Err: fmt.Errorf("offset %d came after position %d: %w", first.Offset, at, ErrDisorder)})
			return
		}
		r.at[tp] = last.Offset + 1
		out = append(out, Batch{
			TP: tp, Next: last.Offset + 1, Epoch: last.LeaderEpoch, Stable: p.LastStableOffset,
			Records: slices.DeleteFunc(p.Records, func(r *kgo.Record) bool { return r.Attrs.IsControl() }),
		})
	})
	return out
}

// failure is the oldest error not yet returned.
func (r *Reader) failure() error {
	if len(r.failed) == 0 {
		return nil
	}
	err := r.failed[0]
	r.failed = r.failed[1:]
	return err
}

// Jobs are the restores of targets up to the ends that their partitions have
// now. What a target's rows belong to must be known before: see [Job.End].
func (r *Reader) Jobs(ctx context.Context, targets map[TP]Target) ([]*Job, error) {
	tps := seam.SortedTPs(targets)
	topics := map[string]bool{}
	for _, tp := range tps {
		topics[tp.Topic] = true
	}
	names := slices.Sorted(maps.Keys(topics))
	ends, err := r.adm.ListEndOffsets(ctx, names...)
	if err != nil {
		return nil, fmt.Errorf("asking for the ends of changelogs: %w", err)
	}
	starts, err := r.adm.ListStartOffsets(ctx, names...)
	if err != nil {
		return nil, fmt.Errorf("asking for the starts of changelogs: %w", err)
	}
	jobs := make([]*Job, len(tps))
	for i, tp := range tps {
		j := &Job{TP: tp, Target: targets[tp], Restart: func(ctx context.Context) (int64, error) { return r.start(ctx, tp) }}
		if j.End, err = offset(ends, tp); err == nil {
			j.Start, err = offset(starts, tp)
		}
		if err != nil {
			return nil, err
		}
		jobs[i] = j
	}
	return jobs, nil
}

func (r *Reader) start(ctx context.Context, tp TP) (int64, error) {
	starts, err := r.adm.ListStartOffsets(ctx, tp.Topic)
	if err != nil {
		return 0, err
	}
	return offset(starts, tp)
}

func offset(l kadm.ListedOffsets, tp TP) (int64, error) {
	o, ok := l.Lookup(tp.Topic, tp.Partition)
	switch {
	case !ok:
		return 0, fmt.Errorf("changelog %s: there is no such partition", tp)
	case o.Err != nil:
		return 0, fmt.Errorf("changelog %s: %w", tp, o.Err)
	}
	return o.Offset, nil
}
