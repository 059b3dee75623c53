package runtime

import (
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semelstream/semel/internal/seam"
	"github.com/semelstream/semel/state"
)

// A Config says how a program runs. All fields are set by whoever starts the
// runtime; it has no defaults of its own but those of [Config.defaults].
type Config struct {
	App      string // names the group, internal topics and transactional ids
	Instance string // stable over restarts; the static member id

	Workers        int           // at least 1
	CommitInterval time.Duration // longest time between commits
	Continuous     bool          // commit as soon as the input is drained
	Gather         time.Duration // how long a transaction of continuous mode waits for more records, once; negative for not at all
	MaxIdle        time.Duration // how long a task waits for an input that is empty and has no known lag

	Session       time.Duration // of the group membership
	Replication   int16         // of internal topics; -1 for the broker's default
	CreateNothing bool          // internal topics must exist
	AtLeastOnce   bool          // the Broker commits without transactions

	TxnBytes      int64         // dirty bytes of a transaction that close it early
	StoreInterval time.Duration // between writes of committed rows to disk
	StoreBytes    int64         // committed bytes not on disk that make one due
	FlushInterval time.Duration // between flushes, which bound the replay after a crash
	CacheBytes    int64         // rows kept in memory per task
	PurgeInterval time.Duration // between deletes of processed repartition records
	PollRecords   int           // most records taken by one poll: all that a fetch brought, since the next fetch goes out when they are taken
	QueueRecords  int           // records of one input in memory beyond which it is paused
	QueueBytes    int64         // of keys and values: of one input beyond which it is paused, of all inputs of a worker beyond which none is polled while there is something to do, of the open transaction that may wait
	Queue         int           // records of the open transaction that may wait for those of the last one, or for their partitions to be added
	Settle        int           // records in one go from which on the first ones of partitions go ahead of the others
	Busy          int           // records that a transaction writes to a partition from which on the next one has it from its start
	Step          int           // most records a task processes before others get their turn

	Leave  func() bool // asked at the end: give up the tasks at once instead of keeping them for the session; nil is false
	Policy Policy      // what becomes of failed records; nil is fail
	Addr   string      // where views of this process can be reached
	Hooks  Hooks
}

func (c *Config) defaults() {
	set := func(p *time.Duration, d time.Duration) {
		if *p <= 0 {
			*p = d
		}
	}
	set(&c.CommitInterval, 100*time.Millisecond)
	if c.Gather == 0 {
		c.Gather = 500 * time.Microsecond
	}
	set(&c.Session, 45*time.Second)
	set(&c.StoreInterval, 2*time.Second)
	set(&c.FlushInterval, 30*time.Second)
	set(&c.PurgeInterval, 30*time.Second)
	setInt := func(p *int, n int) {
		if *p <= 0 {
			*p = n
		}
	}
	setInt(&c.Workers, 1)
	setInt(&c.PollRecords, 500_000)
	setInt(&c.QueueRecords, 200_000)
	setInt(&c.Queue, 1<<17)
	setInt(&c.Settle, 1024)
	setInt(&c.Busy, 64)
	setInt(&c.Step, 2048)
	for _, p := range []*int64{&c.TxnBytes, &c.QueueBytes, &c.StoreBytes, &c.CacheBytes} {
		if *p <= 0 {
			*p = 64 << 20
		}
	}
	if c.Replication == 0 {
		c.Replication = -1
	}
}

// Stores opens the engines of tasks. Close of an engine gives its lock back.
type Stores interface {
	Open(t seam.Task, inMemory bool) (state.Engine, error)
}

// An Env is the world of one process.
type Env struct {
	seam.Env
	Stores Stores
}

// Hooks are what the app hears of the runtime. Every field may be nil.
type Hooks struct {
	State       func(from, to State)
	Tasks       func(assigned, revoked, lost []string)
	Restore     func(Restore)
	Transaction func(worker, records int, took time.Duration, err error)
	Dropped     func(task, operator, reason string, n int)
	Failure     func(t *Task, f *Failure, r *kgo.Record, v Verdict)
}

// A Restore is the progress of one store.
type Restore struct {
	Task, Store, Reason string
	Position, End       int64
	Records, Bytes      int64
	Took                time.Duration
	Done                bool
}

// A State is what the app is doing.
type State string

// The states.
const (
	Starting  State = "starting"
	Restoring State = "restoring"
	Running   State = "running"
	Paused    State = "paused"
	Stopped   State = "stopped"
	Failed    State = "failed"
)
