package txn

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/semelstream/semel/internal/assert"
	"github.com/semelstream/semel/internal/seam"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/zap"
)

// The vocabulary is the seam's.
type (
	// A TP is a partition of a topic.
	TP = seam.TP
	// An Offset is a position in a partition: the next offset to read.
	Offset = seam.Offset
	// Offsets are positions by partition.
	Offsets = seam.Offsets
	// A Member is who commits offsets: a group member in its generation.
	Member = seam.Member
	// A ProduceError is a record that could not be written.
	ProduceError = seam.ProduceError
)

// A Producer owns one transactional id and one transaction at a time:
//
//	Init, then again and again: Add, Produce, Add, Produce, ..., Prepare, End
//
// A transaction begins with its first Add. Partitions are added before
// anything is produced to them, in one request for all that are known, because
// a partition that joins by its first record costs about 20 ms per broker.
//
// After any error the transaction is lost and so is the Producer: all later
// calls return the first error again, wrapped in [ErrSpent]. Close it, open a
// new one with the same id, Init it, and let [Committed] say what became of
// the transaction. A Producer never repairs itself: after some failures the
// client below would report success without sending anything.
//
// Calls come from one goroutine; Close may come from any.
type Producer struct {
	id  string
	cl  *kgo.Client
	log *zap.Logger

	scope     Scope
	pid       int64 // who we are at the broker, as of the open transaction
	epoch     int16
	offsets   identity // of transactions that produce nothing
	old       bool     // transaction.version below 2: offsets need AddOffsetsToTxn
	open      bool
	prepared  bool
	produced  int64
	added     map[TP]struct{}     // in the open transaction
	last      map[TP]struct{}     // in the one before, since Init
	committed bool                // the one before
	cut       cut                 // since it was begun
	topics    map[string]struct{} // that were ever added
	fresh     bool                // some of them in the open transaction, see learn
	addedAt   time.Time           // the last of them
	spent     error               // the first error
	witness   *witness

	promise func(*kgo.Record, error) // one for all records, so that none allocates
	lost    atomic.Pointer[ProduceError]
}

// NewProducer makes the client, with [ClientOptions] and then opts; give it
// kgo.SeedBrokers at least. Defaults that opts may change: manual partitioner
// (records carry their partition), linger 5 ms (Prepare does not wait for it),
// no compression, transaction timeout 40 s. Nothing is sent before Init.
func NewProducer(id string, opts ...kgo.Opt) (*Producer, error) {
	if id == "" {
		return nil, errors.New("txn: a producer needs a transactional id: stable across restarts, and of this producer alone")
	}
	all := append(ClientOptions(),
		kgo.TransactionalID(id),
		kgo.TransactionTimeout(timeout),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerLinger(5*time.Millisecond),
		kgo.MaxBufferedRecords(1<<20), // 50,000, the default, blocks bursts
		kgo.ProducerBatchCompression(kgo.NoCompression()),
	)
	p := &Producer{id: id, log: zap.NewNop(), added: map[TP]struct{}{}, last: map[TP]struct{}{}, topics: map[string]struct{}{}}
	p.promise = p.done
	var err error
	if p.cl, p.witness, err = witnessed(append(append(all, kgo.WithHooks(&p.cut)), opts...)); err != nil {
		return nil, fmt.Errorf("txn: producer %s: %w", id, err)
	}
	return p, nil
}

// WithLogger sets where waiting is reported, and returns p.
func (p *Producer) WithLogger(log *zap.Logger) *Producer {
	if log != nil {
		p.log = log.With(zap.String("transactional_id", p.id))
	}
	return p
}

// WithScope says where transactions with this id write, for Init to make sure that the
// last one has ended everywhere, and returns p. Without it Kafka 4.4 can lose
// markers (KAFKA-20734), and with them the difference between a commit and an abort.
func (p *Producer) WithScope(s Scope) *Producer {
	p.scope = s
	return p
}

// ID is the transactional id.
func (p *Producer) ID() string { return p.id }

// Client is the client below. It may be used for anything but producing and
// transactions: options of NewProducer decide how it consumes.
func (p *Producer) Client() *kgo.Client { return p.cl }

// Produce takes records with explicit partitions, all of which were added. It
// returns no error; the first one comes out of Prepare. It waits only while
// the client's buffer is full. The records belong to the Producer until End
// has returned, their Offset is set once Prepare has returned nil.
func (p *Producer) Produce(recs []*kgo.Record) {
	if p.spent != nil {
		return // Prepare says why
	}
	assert.That(p.open, "produce to transaction %s before Add", p.id)
	p.prepared = false
	p.produced += int64(len(recs))
	for _, r := range recs {
		p.cl.Produce(context.Background(), r, p.promise)
	}
}

// ProduceFirst is [Producer.Produce] of few records that waits until they are
// written. The leader of a partition asks the transaction's coordinator about its
// first record, and does so again for each request that comes meanwhile; of more
// than two such questions the broker refuses one, and all that was sent after it is
// sent again. So where much goes to a partition that is new to the transaction, one
// record goes ahead.
func (p *Producer) ProduceFirst(ctx context.Context, recs []*kgo.Record) error {
	if err := p.usable(); err != nil || len(recs) == 0 {
		return err
	}
	assert.That(p.open, "produce to transaction %s before Add", p.id)
	var left atomic.Int64
	left.Store(int64(len(recs)))
	written := make(chan struct{})
	for _, r := range recs {
		p.produce(r, func(*kgo.Record, error) {
			if left.Add(-1) == 0 {
				close(written)
			}
		})
	}
	hurry, enough := context.WithCancel(ctx)
	defer enough()
	go func() { _ = p.cl.Flush(hurry) }() // else they would linger
	select {
	case <-written:
	case <-ctx.Done():
		return p.fail(fmt.Errorf("txn: waiting for the first records of %s: %w", p.id, ctx.Err()))
	}
	if lost := p.lost.Load(); lost != nil {
		return p.fail(fmt.Errorf("txn: producing in %s: %w", p.id, withFix(lost, lost.Record.Topic)))
	}
	return nil
}

// produce is Produce for one record with a promise of the caller's, or nil.
func (p *Producer) produce(r *kgo.Record, acked func(*kgo.Record, error)) {
	p.prepared = false
	p.produced++
	if acked == nil {
		p.cl.Produce(context.Background(), r, p.promise)
		return
	}
	p.cl.Produce(context.Background(), r, func(r *kgo.Record, err error) {
		p.done(r, err)
		acked(r, err)
	})
}

// done runs in the client's goroutines, once per record.
func (p *Producer) done(r *kgo.Record, err error) {
	if err != nil && p.lost.Load() == nil {
		p.lost.CompareAndSwap(nil, &ProduceError{Record: r, Err: err})
	}
}

// fail latches the first error.
func (p *Producer) fail(err error) error {
	if p.spent == nil {
		p.spent = err
	}
	return err
}

// usable is nil while nothing has failed.
func (p *Producer) usable() error {
	if p.spent == nil {
		return nil
	}
	return fmt.Errorf("txn: %s: %w: %w", p.id, ErrSpent, p.spent)
}

// closePatience bounds Close: a client's goroutines may hang in a connection.
const closePatience = 10 * time.Second

// Close ends the client; what it has open at the broker is aborted by the next
// Init with the id, or by the transaction timeout. It does not hang.
func (p *Producer) Close() { closeClient(p.cl, p.log) }

func closeClient(cl *kgo.Client, log *zap.Logger) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		cl.CloseAllowingRebalance()
	}()
	t := time.NewTimer(closePatience)
	defer t.Stop()
	select {
	case <-done:
	case <-t.C:
		log.Warn("a Kafka client does not end; it is left behind", zap.Duration("waited", closePatience))
	}
}
