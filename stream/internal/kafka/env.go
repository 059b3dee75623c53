// Package kafka is the world behind the seams of internal/seam as it is in
// production: Apache Kafka by franz-go, the wall clock, goroutines.
//
// A process has one membership client ([seam.Group]), one client per worker
// that consumes and is a transactional producer ([seam.Txn]), a client that
// reads changelogs ([seam.Consumer]), and one for everything else
// ([seam.Admin]). The transactional protocol itself is package txn's.
//
// Files: consumer.go and batch.go read; txn.go writes; group.go, balancer.go
// and facts.go are membership; admin.go, topics.go, offsets.go, committed.go
// and purge.go ask the cluster; acl.go explains refusals; takeover.go empties the
// group of another program.
package kafka

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/semelstream/semel/internal/seam"
	"github.com/semelstream/semel/txn"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/zap"
)

// Config says which cluster, as whom, and how.
type Config struct {
	AppID   string    // for client ids in the brokers' logs
	Brokers []string  // seeds, host:port
	Client  []kgo.Opt // the user's: TLS, SASL, compression; they win over ours
	Logger  *zap.Logger
	// Topics are those that the app's transactions may write, where markers that
	// the brokers have lost are looked for; see txn.Scope.
	Topics []string
	// AllowTransactionV1 goes on where transaction.version is below 2.
	AllowTransactionV1 bool
	// AtLeastOnce produces and commits without transactions.
	AtLeastOnce bool
	// TransactionTimeout is after how long the broker aborts an abandoned
	// transaction; 0 means package txn's default. It must be longer than the
	// longest failover of the cluster.
	TransactionTimeout time.Duration
	// Session is the group session timeout when a GroupConfig has none; 0
	// means 45 s.
	Session time.Duration
}

// NewEnv makes the world of one process, and a function that closes what
// Broker's Txn, Consumer and Group did not open themselves. It does not reach
// for the network yet.
func NewEnv(cfg Config) (seam.Env, func(), error) {
	if len(cfg.Brokers) == 0 {
		return seam.Env{}, nil, errors.New("no brokers are configured: give at least one host:port")
	}
	if cfg.Logger == nil {
		cfg.Logger = zap.NewNop()
	}
	b := &broker{cfg: cfg, log: cfg.Logger}
	cl, err := b.newClient("admin")
	if err != nil {
		return seam.Env{}, nil, err
	}
	b.admin = &admin{cl: cl, cfg: &b.cfg, log: b.log}
	return seam.Env{
		Broker: b,
		Clock:  clock{},
		Go:     spawner(b.log),
		Signal: func() seam.Signal { return make(signal, 1) },
		Rand:   rand.Uint64,
		Log:    b.log,
	}, cl.Close, nil
}

// broker opens the clients of the process.
type broker struct {
	*admin
	cfg Config
	log *zap.Logger
}

var _ seam.Broker = (*broker)(nil)

// options are what every client gets: failover settings first, then what the
// role of the client needs, then the user's options, which win.
func (b *broker) options(role string, opts ...kgo.Opt) []kgo.Opt {
	out := append(txn.ClientOptions(),
		kgo.SeedBrokers(b.cfg.Brokers...),
		kgo.ClientID(clientID(b.cfg.AppID, role)),
		kgo.WithLogger(txn.Witness(newLogger(b.log.With(zap.String("client", role))))),
	)
	out = append(out, opts...)
	return append(out, b.cfg.Client...)
}

func clientID(app, role string) string {
	if app == "" {
		return "semel-" + role
	}
	return app + "-" + role
}

// clients makes clients one after the other: options of the user's are shared
// by all, and some (compression) write to what they hold when a client is made.
var clients sync.Mutex

func (b *broker) newClient(role string, opts ...kgo.Opt) (*kgo.Client, error) {
	clients.Lock()
	cl, err := kgo.NewClient(b.options(role, opts...)...)
	clients.Unlock()
	if err != nil {
		return nil, fmt.Errorf("kafka client %q: %w", role, err)
	}
	return cl, nil
}
