package txn

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/zap"
)

// Config says what to read and as whom to write. Group, TransactionalID,
// Brokers and Topics are required.
type Config struct {
	Group           string        // consumer group; all Sessions of an application share it
	TransactionalID string        // unique per Session, stable across restarts
	Brokers, Topics []string      // seed addresses; topics to read
	Instance        string        // static member id: a restart within the session timeout moves no partitions; default none
	Interval        time.Duration // longest time between commits; default 100ms
	Client          []kgo.Opt     // anything else: TLS, SASL, a partitioner for the output
	Logger          *zap.Logger   // default zap.NewNop()

	// AllowTransactionV1 accepts clusters that [CheckCluster] refuses.
	AllowTransactionV1 bool
}

// A Session is one member of a consumer group and its transactional producer.
// It reads committed records only, a partition without a committed offset from
// its start.
//
// Its methods and those of its Tx are called by one goroutine.
type Session struct {
	cfg    Config
	log    *zap.Logger
	ctx    context.Context // ends with Close
	cancel context.CancelFunc

	group *membership
	prod  *Producer // nil after an error: the next Poll opens a new one
	parts *partitions

	reading map[TP]uint64 // what prod's client consumes, by the assignment it is from
	hand    map[TP]*held  // what was polled since the last Commit or Abort
	turn    uint64        // the group's turn when the first of hand came
	tx      *Tx           // the open one
	nonce   uint64        // with commits, marks this Session's offsets
	commits uint64

	// dangling says that the last producer left a transaction open, which
	// holds up readers and the group's offsets until the next one's Init.
	dangling bool
}

// held is what of a partition was polled and not yet committed or aborted.
type held struct {
	last int64 // offset of the last record with data, -1 if none
	next int64 // position after all, control records included
	done int64 // position after the last record that is Done, -1 if none
	// leader epoch of the last record
	epoch int32
}

// Open connects, checks that the cluster is fit, and fences an earlier Session
// with the same id, aborting what it left open.
func Open(ctx context.Context, cfg Config) (*Session, error) {
	cfg, err := cfg.complete()
	if err != nil {
		return nil, err
	}
	s := &Session{cfg: cfg, log: cfg.Logger, nonce: rand.Uint64()}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.forget()
	if err := s.openProducer(ctx); err != nil {
		s.cancel()
		return nil, err
	}
	if !cfg.AllowTransactionV1 {
		if err := CheckCluster(ctx, s.prod.Client()); err != nil {
			s.closeProducer()
			s.cancel()
			return nil, err
		}
	}
	if s.group, err = join(s.ctx, cfg); err != nil {
		s.closeProducer()
		s.cancel()
		return nil, err
	}
	s.parts = newPartitions(s.group.cl)
	return s, nil
}

func (cfg Config) complete() (Config, error) {
	missing := ""
	switch {
	case cfg.Group == "":
		missing = "Group"
	case cfg.TransactionalID == "":
		missing = "TransactionalID"
	case len(cfg.Brokers) == 0:
		missing = "Brokers"
	case len(cfg.Topics) == 0:
		missing = "Topics"
	}
	if missing != "" {
		return cfg, fmt.Errorf("txn: Config.%s is required", missing)
	}
	if cfg.Interval <= 0 {
		cfg.Interval = 100 * time.Millisecond
	}
	if cfg.Logger == nil {
		cfg.Logger = zap.NewNop()
	}
	return cfg, nil
}

// openProducer opens and initializes a producer if there is none.
func (s *Session) openProducer(ctx context.Context) error {
	if s.prod != nil {
		return nil
	}
	opts := append([]kgo.Opt{kgo.SeedBrokers(s.cfg.Brokers...)}, s.cfg.Client...)
	opts = append(opts,
		kgo.RecordPartitioner(kgo.ManualPartitioner()), // Tx chooses before it adds
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.KeepControlRecords(), // else positions never pass a trailing marker
		kgo.ConsumeResetOffset(kgo.NoResetOffset()),
		kgo.FetchMaxWait(100*time.Millisecond), // an added partition waits for the idle fetch
	)
	p, err := NewProducer(s.cfg.TransactionalID, opts...)
	if err != nil {
		return err
	}
	if err := p.WithLogger(s.log).WithScope(s.scope()).Init(ctx); err != nil {
		p.Close()
		return err
	}
	s.prod, s.dangling = p, false
	return nil
}

// scope is where lost markers would hold the Session up. Its outputs are the
// handler's affair.
func (s *Session) scope() Scope { return Scope{Group: s.cfg.Group, Logger: s.log} }

// closeProducer gives the producer up, with everything it was reading.
func (s *Session) closeProducer() {
	if s.prod != nil {
		s.dangling = s.prod.open || s.prod.spent != nil
		s.prod.Close()
		s.prod = nil
	}
	s.forget()
}

// forget drops what was polled and what is being read.
func (s *Session) forget() {
	s.reading, s.hand = map[TP]uint64{}, map[TP]*held{}
	if s.group != nil {
		s.group.release()
	}
}

// rewind makes everything that was polled and not committed come again.
func (s *Session) rewind() {
	if s.prod != nil && len(s.reading) > 0 {
		s.prod.Client().RemoveConsumePartitions(byTopic(s.reading))
	}
	s.forget()
}

// farewell bounds the abort of a Session that ends.
const farewell = 5 * time.Second

// Close aborts an open transaction and leaves the group; a static member
// ([Config].Instance) keeps its partitions for the session timeout.
func (s *Session) Close() error {
	if s.tx != nil {
		ctx, cancel := context.WithTimeout(context.Background(), farewell)
		_ = s.tx.Abort(ctx) // it is open, and that is all that Abort asks for
		cancel()
	}
	s.group.release()
	s.closeProducer()
	if s.dangling {
		s.endDangling()
	}
	s.cancel()
	closeClient(s.group.cl, s.log)
	return nil
}

// endDangling spares others the wait for the transaction timeout.
func (s *Session) endDangling() {
	ctx, cancel := context.WithTimeout(context.Background(), farewell)
	defer cancel()
	for _, id := range []string{s.cfg.TransactionalID, s.cfg.TransactionalID + offsetsSuffix} {
		if err := Fence(ctx, s.group.cl, s.scope(), id); err != nil {
			s.log.Warn("an open transaction is left behind; it ends with the next start or its timeout",
				zap.String("transactional_id", id), zap.Error(err))
		}
	}
}

// Fatal marks an error of a handler as one that no repetition will cure.
func Fatal(err error) error {
	if err == nil {
		return nil
	}
	return &fatal{err}
}

type fatal struct{ err error }

func (f *fatal) Error() string        { return f.err.Error() }
func (f *fatal) Unwrap() error        { return f.err }
func (f *fatal) Is(target error) bool { return target == errFatal }

// ErrRewound says that the group took partitions away while records were in
// hand: Abort the transaction, if one is open, and drop what was polled; all
// that is still ours will be read again.
var ErrRewound = errors.New("txn: the group rebalanced, records in hand will be read again")
