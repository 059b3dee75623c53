// Package seam holds the interfaces between Semel's runtime and the world:
// broker, clock, named stops, goroutines, randomness.
//
// The runtime in stream/internal/runtime reaches nothing of that directly, so
// that it runs unchanged on Kafka (stream/internal/kafka) and on an in-memory
// model whose goroutines are turned by hand (stream/internal/model). What is
// promised here is checked by one contract suite, in internal/seam/seamtest,
// on the model, on kfake and on a real Kafka.
//
// Rules for code above the seams: no go statement, no time, no select, no
// channel and no blocking lock outside them; no lock held across a call into
// them; no map order that decides the order of calls. A call's result counts
// only when its answer came.
package seam

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/zap"
)

// A TP is a partition of a topic.
type TP struct {
	Topic     string
	Partition int32
}

// String is "topic/partition".
func (tp TP) String() string { return fmt.Sprintf("%s/%d", tp.Topic, tp.Partition) }

// Compare orders by topic, then partition.
func (tp TP) Compare(o TP) int {
	return cmp.Or(cmp.Compare(tp.Topic, o.Topic), cmp.Compare(tp.Partition, o.Partition))
}

// A Task is one partition of one sub-topology.
type Task struct {
	Sub, Partition int32
}

// String is "sub_partition", as in Kafka Streams.
func (t Task) String() string { return fmt.Sprintf("%d_%d", t.Sub, t.Partition) }

// Compare orders by sub-topology, then partition.
func (t Task) Compare(o Task) int {
	return cmp.Or(cmp.Compare(t.Sub, o.Sub), cmp.Compare(t.Partition, o.Partition))
}

// An Offset is a position in a partition: the next offset to read, past
// control records, with the leader epoch it was learned under (-1: unknown)
// and, in commits, metadata.
type Offset struct {
	At       int64
	Epoch    int32
	Metadata string
}

// Offsets are positions by partition.
type Offsets map[TP]Offset

// Sorted are the partitions in order; ranging over the map itself would make
// a run depend on map order.
func (o Offsets) Sorted() []TP { return SortedTPs(o) }

// String lists positions without metadata, for logs.
func (o Offsets) String() string {
	var b strings.Builder
	for i, tp := range o.Sorted() {
		if i > 0 {
			b.WriteByte(' ')
		}
		fmt.Fprintf(&b, "%s:%d", tp, o[tp].At)
	}
	return b.String()
}

// SortedTPs are the keys of m in order.
func SortedTPs[V any](m map[TP]V) []TP {
	return slices.SortedFunc(maps.Keys(m), TP.Compare)
}

// A Member is who commits: read from Group.Member at commit time, never kept.
type Member struct {
	Group, ID, Instance string
	Generation          int32
}

// A Batch is what a Consumer read of one partition. Records holds data only,
// in order; control records and aborted data are left out, and Next has moved
// past them. A batch may have no records at all when only the position moved.
// Who reads by a Txn recycles each record ([kgo.Record.Recycle]) when it is done
// with it; keys, values and headers stay.
type Batch struct {
	TP
	Records []*kgo.Record
	Bytes   int   // of their keys and values
	Next    int64 // the position after this batch
	Epoch   int32 // leader epoch of Next, -1 if unknown
	Stable  int64 // the last stable offset known, -1 if unknown
}

// A Broker opens the clients of one process. Its calls retry what passes by
// itself (a leader or coordinator that moves, a broker that is away) until
// ctx ends; what they return is for txn.Judge.
type Broker interface {
	// Txn opens a transactional producer that also consumes. It returns when
	// the former producer with this id is fenced and its open transaction is
	// being aborted.
	Txn(ctx context.Context, id string) (Txn, error)
	// Consumer opens a client that only reads.
	Consumer(ctx context.Context) (Consumer, error)
	// Group joins the consumer group.
	Group(ctx context.Context, cfg GroupConfig) (Group, error)
	Admin
}

// A Consumer reads assigned partitions, committed records only. Calls come
// from one goroutine, Wake from any.
type Consumer interface {
	// Assign begins to read tp at the offset; no reset, ever: an offset out
	// of range is an error of Poll.
	Assign(tp TP, at int64)
	// Unassign stops; nothing of tp comes out of Poll afterwards.
	Unassign(tps ...TP)
	// Poll returns what is there, at most max records, and waits up to wait
	// for a first one. Nil without an error means that nothing came. An error
	// about one partition is a *PartitionError.
	Poll(ctx context.Context, max int, wait time.Duration) ([]Batch, error)
	// Wake makes a Poll that waits, or else the next one, return.
	Wake()
	Close()
}

// A PartitionError is what keeps a partition from being read.
type PartitionError struct {
	TP
	Err error
}

// Error names the partition.
func (e *PartitionError) Error() string { return fmt.Sprintf("reading %s: %v", e.TP, e.Err) }

// Unwrap is Err.
func (e *PartitionError) Unwrap() error { return e.Err }

// A ProduceError is a record that could not be written.
type ProduceError struct {
	Record *kgo.Record
	Err    error
}

// Error names topic and partition, never the record's content.
func (e *ProduceError) Error() string {
	return fmt.Sprintf("writing to %s/%d: %v", e.Record.Topic, e.Record.Partition, e.Err)
}

// Unwrap is Err.
func (e *ProduceError) Unwrap() error { return e.Err }

// A Txn is a worker's client: it consumes the partitions of the worker's tasks
// and has one open transaction at a time. After any error the transaction is
// lost and so is the Txn: Close it, open a new one, and let the stable offsets
// say what became of the transaction.
//
// Calls about the open transaction go to the Txn for those who do one thing after
// the other. Open and Turn are for those who go on while one ends.
type Txn interface {
	Consumer
	Transaction
	// Open is the open transaction, for use by another goroutine than the Txn.
	Open() Transaction
	// Turn begins the next transaction, which is the open one from now on; the
	// one before may still be filled and ended. One transaction ends at a time:
	// no Prepare, CommitOffsets or End before that of the one before has
	// returned, without an error. Nothing is produced before the Prepare of the
	// one before has, or records of a partition would change places.
	Turn() Transaction
}

// A Transaction is
//
//	Add, Produce, Add, Produce, ..., Prepare, End
//
// and begins with the first Add. Its calls come from one goroutine at a time;
// Close of the Txn ends them.
type Transaction interface {
	// Add puts partitions into the transaction. Records are produced only to
	// partitions that were added. If nothing is produced after all, the
	// transaction cannot be ended: its offsets go by CommitOffsets, and the next
	// one of the same producer goes on in it.
	Add(ctx context.Context, tps []TP) error
	// Produce takes records with explicit partitions. It waits only while too
	// many are on their way, and returns no error; errors come out of Prepare.
	// The records and their bytes belong to the Txn until End has returned. Their
	// Offset is set once Prepare has returned nil.
	Produce(recs []*kgo.Record)
	// ProduceFirst is Produce of few records that waits until they are written,
	// where that makes a difference. A partition takes part in the transaction
	// with its first record, and to send much to it before that is acknowledged
	// costs more than the wait.
	ProduceFirst(ctx context.Context, recs []*kgo.Record) error
	// Prepare waits until everything produced is written and puts the input
	// offsets into the transaction, as m.
	Prepare(ctx context.Context, m Member, offs Offsets) error
	// CommitOffsets commits input offsets in a transaction of their own, as m,
	// when nothing was produced since the last End. Like all of a
	// transaction it is fenced by producer: a copy that arrives late changes
	// nothing. After an error the outcome is unknown.
	CommitOffsets(ctx context.Context, m Member, offs Offsets) error
	// End commits or aborts. After an error with commit true the outcome is
	// unknown, and is never to be guessed.
	End(ctx context.Context, commit bool) error
}

// A GroupConfig says who joins and for what.
type GroupConfig struct {
	Group, Instance string // Instance is the static member id
	Subs            []Sub  // by sub-topology number
	Session         time.Duration
	Facts           func() Facts // asked at each join

	// Of groups with patterns: Anchor is a topic that exists, so that a client
	// that wants one finds one when nothing matches. Look is called when another
	// member has found other topics than this one; from any goroutine, and it
	// does not wait.
	Anchor string
	Look   func()
}

// HasPatterns says that the topics of the group may change.
func (c GroupConfig) HasPatterns() bool {
	return slices.ContainsFunc(c.Subs, func(s Sub) bool { return len(s.Patterns) > 0 })
}

// A Sub is what the assignment must know of a sub-topology. All its topics
// have the same number of tasks: partition p of each belongs to task p. There
// are no tasks while nothing matches.
type Sub struct {
	Topics   []string
	Patterns []*regexp.Regexp
	Tasks    int32
	Stateful bool

	// Matched are the topics that match a pattern, as far as this member knows,
	// with their partitions.
	Matched map[string]int32
}

// Reads says that the sub-topology reads the topic, whether it is known to be
// there or not.
func (s Sub) Reads(topic string) bool {
	return slices.Contains(s.Topics, topic) || slices.ContainsFunc(s.Patterns, func(re *regexp.Regexp) bool { return re.MatchString(topic) })
}

// MatchedAt are the partitions p of topics that match, in order.
func (s Sub) MatchedAt(p int32) (tps []TP) {
	for topic, n := range s.Matched {
		if p < n {
			tps = append(tps, TP{Topic: topic, Partition: p})
		}
	}
	slices.SortFunc(tps, TP.Compare)
	return tps
}

// Facts are what a member tells the group's leader about itself.
type Facts struct {
	Process string         // id of the process's state directory
	Addr    string         // where its views can be reached
	Workers int            // its share of the work
	Lags    map[Task]int64 // changelog records behind, for each task whose state is on its disk
}

// A Group is membership in the consumer group; it never fetches.
type Group interface {
	// Next waits for the next change. The group goes on without us when Done
	// was not called in time.
	Next(ctx context.Context) (Change, error)
	// Member is what to commit as, now. While a Lost change is under way it is
	// a member that every broker refuses.
	Member() Member
	// Rejoin asks for a new assignment.
	Rejoin()
	// Update replaces Subs, in which only Tasks and Matched have changed, and asks
	// for a new assignment. The group's leader decides with what it knows: a task
	// whose topics are others than before is revoked and assigned in one Change.
	Update(subs []Sub)
	// Close ends the membership; leave gives up the tasks at once, else they
	// stay ours until the session ends.
	Close(leave bool)
}

// A Change is news of the tasks of this member. Revoked tasks belong to us
// until Done is called, which must be done for every change, before the next
// Next; a task may be both, and is then to be opened anew. Lost tasks may already
// belong to others: no commit any more.
type Change struct {
	Assigned, Revoked []Task
	Matched           map[Task][]TP // what Assigned tasks read of topics that match patterns, in order
	Lost              bool          // about Revoked
	Done              func()
}

// A Topic is a topic as the broker describes it.
type Topic struct {
	Partitions int32
	Config     map[string]string // cleanup.policy, max.message.bytes, retention.ms
}

// A TopicSpec is a topic to create.
type TopicSpec struct {
	Name        string
	Partitions  int32
	Replication int16 // -1 for the broker's default
	Config      map[string]string
}

// Admin is what the runtime asks of the cluster as a whole.
type Admin interface {
	// Check says whether the cluster is fit for exactly-once: its
	// transaction.version is at least 2.
	Check(ctx context.Context) error
	// Topics describes those of names that exist.
	Topics(ctx context.Context, names ...string) (map[string]Topic, error)
	// AllTopics are the partition counts of all topics that the app may see but
	// Kafka's own.
	AllTopics(ctx context.Context) (map[string]int32, error)
	// Create makes topics; one that exists already is no error.
	Create(ctx context.Context, specs []TopicSpec) error
	// Committed returns the group's offsets, once no transaction that could
	// change them is under way; partitions without are not in the result. If a
	// transaction of an instance that is no member of the group stands in the
	// way, it is fenced: prefix is what transactional ids of the app begin
	// with.
	Committed(ctx context.Context, group, prefix string, tps []TP) (Offsets, error)
	// CommittedTopics are the topics of which the group has committed offsets,
	// in order.
	CommittedTopics(ctx context.Context, group string) ([]string, error)
	// Ends are the high watermarks, open transactions included.
	Ends(ctx context.Context, tps []TP) (map[TP]int64, error)
	// Stable are the last stable offsets.
	Stable(ctx context.Context, tps []TP) (map[TP]int64, error)
	// Starts are the first offsets that are still there.
	Starts(ctx context.Context, tps []TP) (map[TP]int64, error)
	// Since are the offsets of the first records not older than t, or the end.
	Since(ctx context.Context, tps []TP, t time.Time) (map[TP]int64, error)
	// Commit commits offsets outside a transaction, fenced by generation alone:
	// a copy that arrives late can take the group back.
	Commit(ctx context.Context, m Member, offs Offsets) error
	// Purge deletes records before the offsets; it is an effort, not a promise.
	Purge(ctx context.Context, before map[TP]int64) error
}

// A Clock is time. Waiting is in the calls that wait.
type Clock interface {
	Now() time.Time
	// Sleep returns early with ctx's error when ctx ends.
	Sleep(ctx context.Context, d time.Duration) error
}

// A Signal wakes the one goroutine that waits for it. A Notify with nobody
// waiting is kept for the next Wait.
type Signal interface {
	Notify()
	// Wait returns at a Notify, after d, or when ctx ends.
	Wait(ctx context.Context, d time.Duration)
}

// Stops are the named points of the commit path. In production it is nil; At
// does not return when a test kills the process there.
type Stops func(point string)

// At is a named point.
func (s Stops) At(point string) {
	if s != nil {
		s(point)
	}
}

// Env is the world of one process.
type Env struct {
	Broker Broker
	Clock  Clock
	Stops  Stops
	Go     func(name string, f func()) // the only way to start a goroutine
	Signal func() Signal               // makes one
	Rand   func() uint64               // jitter and ids
	Log    *zap.Logger
}

// TestStops are the stops of every App that this process runs. It is nil but
// in the child processes of crash tests and benchmarks, which set it before
// the first App.
var TestStops Stops
