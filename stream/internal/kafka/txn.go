package kafka

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/semelstream/semel/internal/seam"
	"github.com/semelstream/semel/txn"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Txn opens the client of a worker: it reads the worker's partitions and
// produces. With AtLeastOnce it has no transactional id.
func (b *broker) Txn(ctx context.Context, id string) (seam.Txn, error) {
	if b.cfg.AtLeastOnce {
		return b.plain(id)
	}
	opts := []kgo.Opt{b.size.option()}
	if b.cfg.TransactionTimeout > 0 {
		opts = append(opts, kgo.TransactionTimeout(b.cfg.TransactionTimeout))
	}
	t := &eos{}
	for i, suffix := range [...]string{"", secondSuffix} {
		role := id + suffix
		mine := opts
		if i == 0 {
			mine = append(append(mine, consumeOptions()...), kgo.WithPools(&recordPool{}))
		}
		clients.Lock()
		p, err := txn.NewProducer(role, b.options(role, mine...)...)
		clients.Unlock()
		if err != nil {
			t.closeProducers()
			return nil, fmt.Errorf("transactional id %q: %w", role, err)
		}
		t.p[i] = p.WithLogger(b.log).WithScope(b.scope(b.cfg.AppID))
	}
	if err := t.init(ctx); err != nil {
		t.closeProducers()
		return nil, err
	}
	t.consumer = newConsumer(t.p[0].Client())
	return t, nil
}

// secondSuffix makes the transactional id of the second producer.
const secondSuffix = "-b"

// eos is exactly-once: two of package txn's producers in turn, the first of
// them on the client that also consumes. A producer cannot begin its next
// transaction before the markers of the last one are written; the other one
// can, and it need not even wait for the last one's end. The commits stay one
// after the other, and so do the records of a partition. Markers may come in
// another order: what reads them waits for all.
type eos struct {
	*consumer
	p   [2]*txn.Producer
	cur int // whose transaction is open or next
}

var _ seam.Txn = (*eos)(nil)

// init fences the former owner of both ids.
func (t *eos) init(ctx context.Context) error {
	second := make(chan error, 1)
	go func() { second <- t.p[1].Init(ctx) }()
	return errors.Join(t.p[0].Init(ctx), <-second)
}

func (t *eos) Add(ctx context.Context, tps []seam.TP) error { return t.p[t.cur].Add(ctx, tps) }

func (t *eos) Produce(recs []*kgo.Record) { t.p[t.cur].Produce(recs) }

func (t *eos) ProduceFirst(ctx context.Context, recs []*kgo.Record) error {
	return t.p[t.cur].ProduceFirst(ctx, recs)
}

func (t *eos) Prepare(ctx context.Context, m seam.Member, offs seam.Offsets) error {
	return t.p[t.cur].Prepare(ctx, m, offs)
}

func (t *eos) CommitOffsets(ctx context.Context, m seam.Member, offs seam.Offsets) error {
	return t.p[t.cur].CommitOffsets(ctx, m, offs)
}

func (t *eos) End(ctx context.Context, commit bool) error {
	err := t.p[t.cur].End(ctx, commit)
	if err == nil {
		t.cur ^= 1
	}
	return err
}

func (t *eos) Open() seam.Transaction { return t.p[t.cur] }

func (t *eos) Turn() seam.Transaction {
	t.cur ^= 1
	return t.Open()
}

func (t *eos) Close() {
	t.Wake()
	t.closeProducers()
}

func (t *eos) closeProducers() {
	for _, p := range t.p {
		if p != nil {
			p.Close()
		}
	}
}

// plain is at-least-once: the same steps without a transaction. What was
// produced is visible at once, and offsets are committed after it, so that a
// crash between the two repeats.
type plain struct {
	*consumer
	done func(*kgo.Record, error) // one for all records

	mu    sync.Mutex
	first error // of Produce; it ends the client's use
}

var _ seam.Txn = (*plain)(nil)

func (b *broker) plain(id string) (*plain, error) {
	cl, err := b.newClient(id, append(consumeOptions(),
		kgo.WithPools(&recordPool{}),
		b.size.option(),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		// As txn.NewProducer has them, so that only the transaction differs.
		kgo.ProducerLinger(5*time.Millisecond),
		kgo.ProducerBatchCompression(kgo.NoCompression()),
		kgo.MaxBufferedRecords(1<<20),
	)...)
	if err != nil {
		return nil, err
	}
	t := &plain{consumer: newConsumer(cl)}
	t.done = func(r *kgo.Record, err error) {
		if err != nil {
			t.note(r, err)
		}
	}
	return t, nil
}

func (t *plain) note(r *kgo.Record, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.first == nil {
		t.first = &seam.ProduceError{Record: r, Err: explain(err, "Write", "topic "+r.Topic)}
	}
}

func (t *plain) produceError() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.first
}

func (t *plain) Add(context.Context, []seam.TP) error { return t.produceError() }

func (t *plain) Produce(recs []*kgo.Record) {
	for _, r := range recs {
		t.cl.Produce(context.Background(), r, t.done)
	}
}

// ProduceFirst has nothing to wait for.
func (t *plain) ProduceFirst(_ context.Context, recs []*kgo.Record) error {
	t.Produce(recs)
	return t.produceError()
}

func (t *plain) Prepare(ctx context.Context, m seam.Member, offs seam.Offsets) error {
	if err := t.cl.Flush(ctx); err != nil {
		return fmt.Errorf("waiting for records to be written: %w", err)
	}
	if err := t.produceError(); err != nil || len(offs) == 0 {
		return err
	}
	return txn.CommitOffsets(ctx, t.cl, m, offs)
}

func (t *plain) CommitOffsets(ctx context.Context, m seam.Member, offs seam.Offsets) error {
	return t.Prepare(ctx, m, offs)
}

func (t *plain) End(context.Context, bool) error { return t.produceError() }

func (t *plain) Open() seam.Transaction { return t }

func (t *plain) Turn() seam.Transaction { return t }
