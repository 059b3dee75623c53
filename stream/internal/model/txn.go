package model

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/semelstream/semel/internal/assert"
	"github.com/semelstream/semel/internal/seam"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// transaction is seam.Txn. What it does to the broker is what the real client does:
// Produce requests by partition and TxnOffsetCommit in parallel, lost requests
// tried again, the first error kept.
type transaction struct {
	consumer
	ticket
	other    ticket // whose turn is next: two producers in turn, as the real client has them
	offsets  ticket // of the id, for offsets alone
	parts    []*outbox
	begun    bool
	used     bool // something was produced
	prepared bool
	err      error // the first one
}

// An outbox holds what is produced to a partition that was added.
type outbox struct {
	tp   seam.TP
	recs []*kgo.Record
	sent int // are acknowledged
}

// Txn implements seam.Broker.
func (l *link) Txn(ctx context.Context, id string) (seam.Txn, error) {
	k, err := l.initProducerID(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("opening transactional id %s: %w", id, err)
	}
	second, err := l.initProducerID(ctx, id+"-offsets")
	if err != nil {
		return nil, fmt.Errorf("opening transactional id %s-offsets: %w", id, err)
	}
	other, err := l.initProducerID(ctx, id+"-b")
	if err != nil {
		return nil, fmt.Errorf("opening transactional id %s-b: %w", id, err)
	}
	return &transaction{consumer: consumer{l: l}, ticket: k, other: other, offsets: second}, nil
}

func (l *link) initProducerID(ctx context.Context, id string) (ticket, error) {
	h := how{what: "InitProducerID", pause: hurry, again: kerr.ConcurrentTransactions}
	return ask(ctx, l, h, func() (ticket, error) {
		pid, epoch, err := l.w.broker.initProducerID(id)
		return ticket{id, pid, epoch}, err
	})
}

// fail keeps the first error for ever.
func (t *transaction) fail(err error) error {
	if t.err == nil {
		t.err = err
	}
	return err
}

func (t *transaction) usable() (leave func(), err error) {
	if leave, err = t.enter(); err != nil {
		return nil, err
	}
	if t.err != nil {
		leave()
		return nil, fmt.Errorf("transactional id %s is lost: %w", t.id, t.err)
	}
	return leave, nil
}

func (t *transaction) part(tp seam.TP) *outbox {
	for _, p := range t.parts {
		if p.tp == tp {
			return p
		}
	}
	return nil
}

func (t *transaction) Add(ctx context.Context, tps []seam.TP) error {
	leave, err := t.usable()
	if err != nil {
		return err
	}
	defer leave()
	tps = slices.DeleteFunc(slices.Clone(tps), func(tp seam.TP) bool { return t.part(tp) != nil })
	if len(tps) == 0 {
		return nil
	}
	k := t.ticket // a request holds what was true when it was sent
	err = tell(ctx, t.l, inTxn("AddPartitionsToTxn"), func() error { return t.l.w.broker.addPartitions(k, tps) })
	if err != nil {
		return t.fail(fmt.Errorf("adding partitions to the transaction of %s: %w", t.id, err))
	}
	t.begun = true
	for _, tp := range tps {
		t.parts = append(t.parts, &outbox{tp: tp})
	}
	return nil
}

// inTxn is how requests of a transaction are tried again: also while markers
// of the last one are being written.
func inTxn(what string) how {
	return how{what: what, pause: hurry, giveUp: true, again: kerr.ConcurrentTransactions}
}

func (t *transaction) Produce(recs []*kgo.Record) {
	leave, err := t.enter()
	if err != nil {
		return
	}
	defer leave()
	var p *outbox
	for _, r := range recs {
		tp := seam.TP{Topic: r.Topic, Partition: r.Partition}
		if p == nil || p.tp != tp {
			p = t.part(tp)
		}
		assert.That(p != nil || t.err != nil, "%s produces to %s, which it did not add", t.id, tp)
		if p != nil {
			p.recs = append(p.recs, r)
			t.used, t.prepared = true, false
		}
	}
}

func (t *transaction) Prepare(ctx context.Context, m seam.Member, offs seam.Offsets) error {
	leave, err := t.usable()
	if err != nil {
		return err
	}
	defer leave()
	assert.That(t.used, "%s prepares a transaction in which nothing was produced", t.id)
	assert.That(len(offs) == 0 || m.ID != "", "%s commits offsets as no member", t.id)
	steps := t.flushes()
	if len(offs) > 0 {
		steps = append(steps, func(ctx context.Context) error { return t.sendOffsets(ctx, t.ticket, m, offs) })
	}
	if !t.l.w.cfg.Instant { // they are sent at once, and arrive in any order
		t.l.w.rand.Shuffle(len(steps), func(i, j int) { steps[i], steps[j] = steps[j], steps[i] })
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return t.fail(err)
		}
	}
	t.prepared = true
	return nil
}

func (t *transaction) flushes() (steps []func(context.Context) error) {
	for _, p := range t.parts {
		if len(p.recs) > p.sent {
			steps = append(steps, func(ctx context.Context) error { return t.flush(ctx, p) })
		}
	}
	return steps
}

func (t *transaction) flush(ctx context.Context, p *outbox) error {
	b, recs := t.l.w.broker, p.recs[p.sent:]
	if b.topics[p.tp.Topic] != nil {
		if i := b.fits(p.tp.Topic, recs); i >= 0 { // clients check it themselves
			return &seam.ProduceError{Record: recs[i], Err: kerr.MessageTooLarge}
		}
	}
	// A request may act when the records are no longer ours.
	frame, k, seq := recs, t.ticket, p.sent
	if !t.l.w.cfg.Instant {
		frame = copyRecords(recs)
	}
	base, err := ask(ctx, t.l, inTxn("Produce"), func() (int64, error) { return b.produce(k, p.tp, seq, frame) })
	if err != nil {
		return &seam.ProduceError{Record: recs[0], Err: err}
	}
	for i, r := range recs {
		r.Offset = base + int64(i)
	}
	p.sent = len(p.recs)
	return nil
}

func (t *transaction) sendOffsets(ctx context.Context, k ticket, m seam.Member, offs seam.Offsets) error {
	offs = maps.Clone(offs)
	err := tell(ctx, t.l, inTxn("TxnOffsetCommit"), func() error { return t.l.w.broker.txnOffsetCommit(k, m, offs) })
	if err != nil {
		return fmt.Errorf("committing offsets of group %s in the transaction of %s: %w", m.Group, t.id, err)
	}
	return nil
}

func (t *transaction) CommitOffsets(ctx context.Context, m seam.Member, offs seam.Offsets) error {
	leave, err := t.usable()
	if err != nil {
		return err
	}
	defer leave()
	assert.That(!t.begun, "%s commits offsets alone in an open transaction", t.id)
	if len(offs) == 0 {
		return nil
	}
	if err := t.sendOffsets(ctx, t.offsets, m, offs); err != nil {
		return t.fail(err)
	}
	k := t.offsets
	epoch, err := ask(ctx, t.l, inTxn("EndTxn"), func() (int16, error) { return t.l.w.broker.endTxn(k, true) })
	if err != nil {
		return t.fail(fmt.Errorf("outcome unknown: committing the transaction of %s: %w", k.id, err))
	}
	t.offsets.epoch = epoch
	return nil
}

func (t *transaction) End(ctx context.Context, commit bool) error {
	leave, err := t.usable()
	if err != nil {
		return err
	}
	defer leave()
	if !t.begun {
		return nil
	}
	assert.That(!commit || t.prepared, "%s commits without Prepare", t.id)
	if !t.used { // the real client would send nothing, and leave it open
		return t.fail(fmt.Errorf("aborting the transaction of %s, in which nothing was produced: %w", t.id, kerr.InvalidTxnState))
	}
	k := t.ticket
	epoch, err := ask(ctx, t.l, inTxn("EndTxn"), func() (int16, error) { return t.l.w.broker.endTxn(k, commit) })
	if err != nil {
		what := "aborting"
		if commit {
			what = "outcome unknown: committing"
		}
		return t.fail(fmt.Errorf("%s the transaction of %s: %w", what, t.id, err))
	}
	t.epoch = epoch
	t.ticket, t.other = t.other, t.ticket
	t.begun, t.used, t.prepared, t.parts = false, false, false, t.parts[:0]
	return nil
}
