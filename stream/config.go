package stream

import (
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/zap"
)

// Config says how an App runs. AppID and Brokers are required; the zero value
// of every other field is a sound default.
type Config struct {
	AppID   string    // names the group, internal topics and transactional ids
	Brokers []string  // seeds
	Client  []kgo.Opt // TLS, SASL and the like

	Workers        int           // goroutines that own tasks, each with its transaction; default 1
	CommitInterval time.Duration // longest time between commits; default 100ms; see also [Continuous]
	AtLeastOnce    bool          // no transactions: duplicates after a crash
	MaxIdle        time.Duration // wait for empty inputs beyond their known end; default 0

	StateDir     string // a cache of the changelogs; default os.UserCacheDir()/semel/AppID
	MemoryBudget int64  // bytes for caches of all stores; default 256 MiB
	InMemory     bool   // all stores in memory

	InstanceID    string        // stable over restarts; default kept in StateDir
	OnExit        Exit          // what the end of Run's context means; default Stay
	Session       time.Duration // how long Stay keeps the tasks; default 45s
	Replication   int16         // of internal topics; default the broker's
	CreateNothing bool          // internal topics must exist already

	OnError            ErrorPolicy // default Fail
	AllowTransactionV1 bool        // accept brokers below transaction.version 2, on which Kafka itself can lose or tear transactions

	Logger *zap.Logger // default zap.NewNop()
	Hooks  []Hook      // see the HookXxx interfaces
}

// Continuous as [Config].CommitInterval commits as soon as the input is
// drained, for the shortest latency: a few milliseconds end to end at low
// rates. Under load a transaction lasts 100ms at most.
const Continuous = time.Duration(-1)

// An Exit is how an instance ends.
type Exit uint8

const (
	Stay  Exit = iota // a restart within the session keeps the tasks
	Leave             // the tasks move at once
)

// A State is what an app is doing.
type State string

// The states of an App.
const (
	Starting  State = "starting"  // not in the group yet
	Restoring State = "restoring" // some task has no state yet
	Running   State = "running"
	Paused    State = "paused"  // by Pause, with nothing in hand; tasks that are restored count as Restoring
	Stopped   State = "stopped" // by Close or the end of the context
	Failed    State = "failed"  // Run returned an error
)
