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

// transactions is seam.Txn. What it does to the broker is what the real client
// does: two producers in turn, Produce requests by partition and
// TxnOffsetCommit in parallel, lost requests tried again, the first error kept.
type transactions struct {
	consumer
	open, other *transaction
	err         error // the first one
}

// A transaction is what one of the producers has under way; it is
// seam.Transaction.
type transaction struct {
	of *transactions
	ticket
	offsets  ticket // of the id, for offsets alone
	parts    []*outbox
	begun    bool
	used     bool // something was produced
	prepared bool
	user     *co // inside a call
}

// An outbox holds what is produced to a partition that was added.
type outbox struct {
	tp   seam.TP
	recs []*kgo.Record
	sent int // are acknowledged
}

// Txn implements seam.Broker.
func (l *link) Txn(ctx context.Context, id string) (seam.Txn, error) {
	t := &transactions{consumer: consumer{l: l}}
	var err error
	if t.open, err = t.producer(ctx, id); err != nil {
		return nil, err
	}
	if t.other, err = t.producer(ctx, id+"-b"); err != nil {
		return nil, err
	}
	return t, nil
}

func (t *transactions) producer(ctx context.Context, id string) (p *transaction, err error) {
	p = &transaction{of: t}
	if p.ticket, err = t.l.initProducerID(ctx, id); err != nil {
		return nil, fmt.Errorf("opening transactional id %s: %w", id, err)
	}
	if p.offsets, err = t.l.initProducerID(ctx, id+"-offsets"); err != nil {
		return nil, fmt.Errorf("opening transactional id %s-offsets: %w", id, err)
	}
	return p, nil
}

func (l *link) initProducerID(ctx context.Context, id string) (ticket, error) {
	h := how{what: "InitProducerID", pause: hurry, again: kerr.ConcurrentTransactions}
	return ask(ctx, l, h, func() (ticket, error) {
		pid, epoch, err := l.w.broker.initProducerID(id)
		return ticket{id, pid, epoch}, err
	})
}

// fail keeps the first error for ever.
func (t *transactions) fail(err error) error {
	if t.err == nil {
		t.err = err
	}
	return err
}

// usable guards the promise that calls come from one goroutine at a time.
func (x *transaction) usable() (leave func(), err error) {
	t := x.of
	me := t.l.w.self()
	assert.That(x.user == nil, "%s calls a transaction that %s is inside of", me.name, nameOf(x.user))
	if t.closed {
		return nil, kgo.ErrClientClosed
	}
	if t.err != nil {
		return nil, fmt.Errorf("transactional id %s is lost: %w", x.id, t.err)
	}
	x.user = me
	return func() { x.user = nil }, nil
}

func (x *transaction) part(tp seam.TP) *outbox {
	for _, p := range x.parts {
		if p.tp == tp {
			return p
		}
	}
	return nil
}

func (t *transactions) Add(ctx context.Context, tps []seam.TP) error { return t.open.Add(ctx, tps) }

func (x *transaction) Add(ctx context.Context, tps []seam.TP) error {
	leave, err := x.usable()
	if err != nil {
		return err
	}
	defer leave()
	tps = slices.DeleteFunc(slices.Clone(tps), func(tp seam.TP) bool { return x.part(tp) != nil })
	if len(tps) == 0 {
		return nil
	}
	k, l := x.ticket, x.of.l // a request holds what was true when it was sent
	err = tell(ctx, l, inTxn("AddPartitionsToTxn"), func() error { return l.w.broker.addPartitions(k, tps) })
	if err != nil {
		return x.of.fail(fmt.Errorf("adding partitions to the transaction of %s: %w", x.id, err))
	}
	x.begun = true
	for _, tp := range tps {
		x.parts = append(x.parts, &outbox{tp: tp})
	}
	return nil
}

// inTxn is how requests of a transaction are tried again: also while markers
// of the last one are being written.
func inTxn(what string) how {
	return how{what: what, pause: hurry, giveUp: true, again: kerr.ConcurrentTransactions}
}

func (t *transactions) Produce(recs []*kgo.Record) { t.open.Produce(recs) }

func (x *transaction) Produce(recs []*kgo.Record) {
	leave, err := x.usable()
	if err != nil {
		return
	}
	defer leave()
	var p *outbox
	for _, r := range recs {
		tp := seam.TP{Topic: r.Topic, Partition: r.Partition}
		if p == nil || p.tp != tp {
			p = x.part(tp)
		}
		assert.That(p != nil, "%s produces to %s, which it did not add", x.id, tp)
		p.recs = append(p.recs, r)
		x.used, x.prepared = true, false
	}
	x.some()
}

func (t *transactions) ProduceFirst(ctx context.Context, recs []*kgo.Record) error {
	return t.open.ProduceFirst(ctx, recs)
}

func (x *transaction) ProduceFirst(ctx context.Context, recs []*kgo.Record) error {
	x.Produce(recs)
	leave, err := x.usable()
	if err != nil {
		return err
	}
	defer leave()
	for _, flush := range x.flushes() {
		if err := flush(ctx); err != nil {
			return x.of.fail(err)
		}
	}
	return nil
}

func (t *transactions) Prepare(ctx context.Context, m seam.Member, offs seam.Offsets) error {
	return t.open.Prepare(ctx, m, offs)
}

func (x *transaction) Prepare(ctx context.Context, m seam.Member, offs seam.Offsets) error {
	leave, err := x.usable()
	if err != nil {
		return err
	}
	defer leave()
	assert.That(x.used, "%s prepares a transaction in which nothing was produced", x.id)
	assert.That(len(offs) == 0 || m.ID != "", "%s commits offsets as no member", x.id)
	steps := x.flushes()
	if len(offs) > 0 {
		steps = append(steps, func(ctx context.Context) error { return x.sendOffsets(ctx, x.ticket, m, offs) })
	}
	if w := x.of.l.w; !w.cfg.Instant { // they are sent at once, and arrive in any order
		w.rand.Shuffle(len(steps), func(i, j int) { steps[i], steps[j] = steps[j], steps[i] })
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return x.of.fail(err)
		}
	}
	x.prepared = true
	return nil
}

func (x *transaction) flushes() (steps []func(context.Context) error) {
	for _, p := range x.parts {
		if len(p.recs) > p.sent {
			steps = append(steps, func(ctx context.Context) error { return x.flush(ctx, p) })
		}
	}
	return steps
}

func (x *transaction) flush(ctx context.Context, p *outbox) error {
	l := x.of.l
	b, recs := l.w.broker, p.recs[p.sent:]
	if b.topics[p.tp.Topic] != nil {
		if i := b.fits(p.tp.Topic, recs); i >= 0 { // clients check it themselves
			return &seam.ProduceError{Record: recs[i], Err: kerr.MessageTooLarge}
		}
	}
	// A request may act when the records are no longer ours.
	frame, k, seq := recs, x.ticket, p.sent
	if !l.w.cfg.Instant {
		frame = copyRecords(recs)
	}
	base, err := ask(ctx, l, inTxn("Produce"), func() (int64, error) { return b.produce(k, p.tp, seq, frame) })
	if err != nil {
		return &seam.ProduceError{Record: recs[0], Err: err}
	}
	for i, r := range recs {
		r.Offset = base + int64(i)
	}
	p.sent = len(p.recs)
	return nil
}

// some writes some of what was produced, as a client does that does not wait
// for Prepare. What is refused then is sent again.
func (x *transaction) some() {
	w := x.of.l.w
	if w.cfg.Instant {
		return
	}
	for _, p := range x.parts {
		if len(p.recs) == p.sent || w.rand.IntN(2) == 0 {
			continue
		}
		recs := p.recs[p.sent:]
		base, err := w.broker.produce(x.ticket, p.tp, p.sent, copyRecords(recs))
		if err != nil {
			continue
		}
		for i, r := range recs {
			r.Offset = base + int64(i)
		}
		p.sent = len(p.recs)
	}
}

func (x *transaction) sendOffsets(ctx context.Context, k ticket, m seam.Member, offs seam.Offsets) error {
	offs = maps.Clone(offs)
	l := x.of.l
	err := tell(ctx, l, inTxn("TxnOffsetCommit"), func() error { return l.w.broker.txnOffsetCommit(k, m, offs) })
	if err != nil {
		return fmt.Errorf("committing offsets of group %s in the transaction of %s: %w", m.Group, x.id, err)
	}
	return nil
}

func (t *transactions) CommitOffsets(ctx context.Context, m seam.Member, offs seam.Offsets) error {
	return t.open.CommitOffsets(ctx, m, offs)
}

func (x *transaction) CommitOffsets(ctx context.Context, m seam.Member, offs seam.Offsets) error {
	leave, err := x.usable()
	if err != nil {
		return err
	}
	defer leave()
	assert.That(!x.used, "%s commits offsets alone in a transaction in which something was produced", x.id)
	if len(offs) == 0 {
		return nil
	}
	if err := x.sendOffsets(ctx, x.offsets, m, offs); err != nil {
		return x.of.fail(err)
	}
	k, l := x.offsets, x.of.l
	epoch, err := ask(ctx, l, inTxn("EndTxn"), func() (int16, error) { return l.w.broker.endTxn(k, true) })
	if err != nil {
		return x.of.fail(fmt.Errorf("outcome unknown: committing the transaction of %s: %w", k.id, err))
	}
	x.offsets.epoch = epoch
	return nil
}

func (t *transactions) End(ctx context.Context, commit bool) error {
	begun := t.open.begun
	err := t.open.End(ctx, commit)
	if err == nil && begun {
		t.Turn()
	}
	return err
}

func (t *transactions) Open() seam.Transaction { return t.open }

func (t *transactions) Turn() seam.Transaction {
	t.open, t.other = t.other, t.open
	return t.open
}

func (x *transaction) End(ctx context.Context, commit bool) error {
	leave, err := x.usable()
	if err != nil {
		return err
	}
	defer leave()
	if !x.begun {
		return nil
	}
	assert.That(!commit || x.prepared, "%s commits without Prepare", x.id)
	if !x.used { // the real client would send nothing, and leave it open
		return x.of.fail(fmt.Errorf("aborting the transaction of %s, in which nothing was produced: %w", x.id, kerr.InvalidTxnState))
	}
	k, l := x.ticket, x.of.l
	epoch, err := ask(ctx, l, inTxn("EndTxn"), func() (int16, error) { return l.w.broker.endTxn(k, commit) })
	if err != nil {
		what := "aborting"
		if commit {
			what = "outcome unknown: committing"
		}
		return x.of.fail(fmt.Errorf("%s the transaction of %s: %w", what, x.id, err))
	}
	x.epoch = epoch
	x.begun, x.used, x.prepared, x.parts = false, false, false, x.parts[:0]
	return nil
}
