package txn

import (
	"context"
	"errors"
	"fmt"

	"github.com/semelstream/semel/internal/assert"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/zap"
)

// A Tx is one transaction, used by one goroutine.
type Tx struct {
	s     *Session
	ctx   context.Context // for Produce, which has none
	out   []*output       // not sent yet
	sent  int
	err   error // the first
	ended bool
}

type output struct {
	r     *kgo.Record
	acked func(*kgo.Record, error)
}

// sendAt is how many records are gathered before partitions are added and the
// records sent: adding costs a round trip for each new partition otherwise.
const sendAt = 512

var (
	errOpen  = errors.New("txn: a transaction is open already")
	errEnded = errors.New("txn: the transaction has ended")
)

// Begin opens a transaction. One may be open at a time.
func (s *Session) Begin() (*Tx, error) { return s.begin(s.ctx) }

func (s *Session) begin(ctx context.Context) (*Tx, error) {
	if s.tx != nil {
		return nil, errOpen
	}
	if err := s.openProducer(ctx); err != nil {
		return nil, err
	}
	s.parts.refresh()
	s.tx = &Tx{s: s, ctx: ctx}
	return s.tx, nil
}

// Produce adds r to the transaction. Its partition is chosen by the
// partitioner in [Config].Client, by default by the key's hash as Java clients
// do. Errors reach acked, if it is not nil, and in any case Commit.
func (t *Tx) Produce(r *kgo.Record, acked func(*kgo.Record, error)) {
	if t.ended || t.err != nil {
		if acked != nil {
			acked(r, errors.Join(t.err, errEnded))
		}
		return
	}
	t.out = append(t.out, &output{r, acked})
	if len(t.out) >= sendAt {
		t.send(t.ctx)
	}
}

// send adds the partitions of what was gathered and produces it.
func (t *Tx) send(ctx context.Context) {
	if len(t.out) == 0 || t.err != nil {
		return
	}
	tps := make([]TP, len(t.out))
	for i, o := range t.out {
		n, err := t.s.parts.choose(ctx, t.s.prod.Client(), o.r)
		if err != nil {
			t.fail(err)
			return
		}
		o.r.Partition = n
		tps[i] = TP{Topic: o.r.Topic, Partition: n}
	}
	if err := t.s.prod.Add(ctx, tps); err != nil {
		t.fail(err)
		return
	}
	for _, o := range t.out {
		t.s.prod.produce(o.r, o.acked)
	}
	t.sent += len(t.out)
	t.out = t.out[:0]
}

func (t *Tx) fail(err error) {
	if t.err == nil {
		t.err = err
	}
	t.drop(err)
}

// drop tells the owners of what was not sent.
func (t *Tx) drop(err error) {
	for _, o := range t.out {
		if o.acked != nil {
			o.acked(o.r, err)
		}
	}
	t.out = nil
}

// Done says that r and all before it in its partition are processed, so
// that their offsets belong to this transaction. Run does it for the batch.
func (t *Tx) Done(r *kgo.Record) {
	h := t.s.hand[TP{Topic: r.Topic, Partition: r.Partition}]
	if t.ended || h == nil {
		return // rewound: it comes again
	}
	h.done = max(h.done, r.Offset+1)
}

// Commit reports whether the transaction committed; false with a nil error
// means that it aborted cleanly and its input will be read again. With an
// error of which [Judge] says [OutcomeUnknown] the Session could not find out
// (the context ended, say); it goes on from the truth all the same. Other
// errors need a person, or are the context's.
func (t *Tx) Commit(ctx context.Context) (bool, error) {
	if t.ended {
		return false, errEnded
	}
	t.send(ctx)
	if t.err != nil {
		return t.lost(ctx, t.err)
	}
	s := t.s
	s.commits++
	mark := fmt.Sprintf("semel %016x %d", s.nonce, s.commits)
	offs, whole := s.offsets(mark)
	m, ours := s.group.still(s.turn)
	if len(s.hand) > 0 && !ours {
		return false, t.Abort(ctx)
	}
	var err error
	if t.sent == 0 {
		err = s.prod.CommitOffsets(ctx, m, offs)
	} else if err = s.prod.Prepare(ctx, m, offs); err == nil {
		err = s.prod.End(ctx, true)
	}
	switch {
	case err == nil:
		t.over()
		s.committed(whole)
		return true, nil
	case Judge(err) == OutcomeUnknown:
		return t.decide(ctx, err, offs)
	}
	return t.lost(ctx, err)
}

// committed lets go of what was in hand; what was not done comes again.
func (s *Session) committed(whole bool) {
	if !whole {
		s.rewind()
		return
	}
	s.hand = map[TP]*held{}
	s.group.release()
}

// lost ends a transaction that certainly has no effect.
func (t *Tx) lost(ctx context.Context, err error) (bool, error) {
	t.over()
	if t.sent > 0 || t.s.prod.spent != nil {
		t.s.closeProducer()
	} else {
		t.s.rewind()
	}
	switch Judge(err) {
	case OutcomeFatal:
		return false, err
	case OutcomeNone:
		if ctx.Err() != nil {
			return false, err
		}
	}
	t.s.log.Info("the transaction aborted, its input is read again",
		zap.String("transactional_id", t.s.cfg.TransactionalID), zap.Stringer("outcome", Judge(err)), zap.Error(err))
	return false, nil
}

// decide finds out what became of a commit without an answer: InitProducerID
// ends the matter, and the stable offsets, which are part of the transaction,
// say how. Its own mark tells them from those of a member that processed the
// same records after us.
func (t *Tx) decide(ctx context.Context, cause error, offs Offsets) (bool, error) {
	t.over()
	s := t.s
	s.log.Info("the commit has no answer; asking for its outcome",
		zap.String("transactional_id", s.cfg.TransactionalID), zap.Error(cause))
	s.closeProducer()
	if err := s.openProducer(ctx); err != nil {
		return false, fmt.Errorf("%w; finding out: %w", cause, err)
	}
	now, err := Committed(ctx, s.prod.Client(), s.cfg.Group, offs.Sorted(), s.reportBlocked)
	if err != nil {
		return false, fmt.Errorf("%w; finding out: %w", cause, err)
	}
	switch truth(offs, now) {
	case OutcomeNone:
		return true, nil
	case OutcomeAbort:
		return false, nil
	}
	return false, fmt.Errorf("%w; it had no offsets, or other members have moved them on since", cause)
}

// truth compares what a transaction would have committed with what is
// committed: none (it committed), abort or unknown.
func truth(want, now Offsets) Outcome {
	verdict := OutcomeUnknown
	for tp, o := range want {
		c, ok := now[tp]
		if ok && c.Metadata == o.Metadata {
			assert.That(c.At == o.At, "%s: committed offset %d, its transaction said %d", tp, c.At, o.At)
			return OutcomeNone
		}
		if !ok || c.At < o.At {
			verdict = OutcomeAbort
		}
	}
	return verdict
}

// Abort undoes the transaction; its input will be read again. Nothing of it
// is or will be visible, even if the brokers cannot be reached now: then the
// next use of the transactional id, or the transaction timeout, ends it there.
func (t *Tx) Abort(ctx context.Context) error {
	if t.ended {
		return errEnded
	}
	t.over()
	if t.sent == 0 && t.s.prod.spent == nil {
		t.s.rewind()
		return nil
	}
	if err := t.s.prod.End(ctx, false); err != nil {
		t.s.log.Info("the abort did not come through; the next producer's start does it",
			zap.String("transactional_id", t.s.cfg.TransactionalID), zap.Error(err))
		t.s.closeProducer()
		return nil
	}
	t.s.rewind()
	return nil
}

// over closes the Tx itself.
func (t *Tx) over() {
	t.ended = true
	t.s.tx = nil
	t.drop(errEnded)
}
