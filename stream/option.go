package stream

import (
	"reflect"
	"regexp"
	"time"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/stream/internal/graph"
)

// Options are interfaces named for where they fit; one that fits several
// places has several, so that a misplaced option does not compile.

// An Option fits every operator.
type Option interface {
	SourceOption
	AnyStoreOption
	CodecOption
	ProcessOption
	BufferOption
	anyOperator()
}

// A SourceOption fits [Builder.Stream].
type SourceOption interface {
	setter
	sourceOption()
}

// A GroupOption fits what may go through a repartition topic of its own.
type GroupOption interface {
	setter
	groupOption()
}

// An AggregateOption fits aggregates by key.
type AggregateOption interface {
	setter
	aggregateOption()
}

// A WindowOption fits aggregates by key and window.
type WindowOption interface {
	setter
	windowOption()
}

// A KeyValueOption fits [Builder.Store].
type KeyValueOption interface {
	setter
	keyValueOption()
}

// A TableOption fits tables and stores by key, aggregates among them.
type TableOption interface {
	AggregateOption
	KeyValueOption
	tableOption()
}

// A TableSourceOption fits [Builder.Table], and wherever a TableOption does.
type TableSourceOption interface {
	TableOption
	tableSourceOption()
}

// A StoreOption fits whatever keeps state with a changelog of its own.
type StoreOption interface {
	TableOption
	WindowOption
	storeOption()
}

// An AnyStoreOption fits whatever keeps state.
type AnyStoreOption interface {
	StoreOption
	TableSourceOption
}

// An EmitOption fits all aggregates.
type EmitOption interface {
	AggregateOption
	WindowOption
	emitOption()
}

// A CodecOption fits what writes keys and values down.
type CodecOption interface {
	GroupOption
	StoreOption
	JoinOption
}

// A JoinOption fits joins with a table.
type JoinOption interface {
	setter
	joinOption()
}

// A ProcessOption fits the Process operators.
type ProcessOption interface {
	setter
	processOption()
}

// A BufferOption fits Final and Suppress.
type BufferOption interface {
	setter
	bufferOption()
}

// A LimitOption fits what may hold or keep only so much: Final, Suppress and
// [Builder.Store].
type LimitOption interface {
	BufferOption
	KeyValueOption
	limitOption()
}

// settings are what an operator's options say.
type settings struct {
	name                 string
	policy               ErrorPolicy
	partitions           int // of a repartition topic; 0 is not set
	partitionsSet        bool
	keyCodec, valueCodec any // a codecSetting, or nil; for codecFor
	inMemory             bool
	noChangelog          bool
	config               map[string]string
	emitEach             bool
	retain               int64 // ms of windows; 0 is not set
	retainSet            bool
	panes                *paneSetting // nil: rows are of windows
	ttl                  time.Duration
	ttlSet               bool
	maxKeys              int // of what is held back or kept; 0 is no limit
	maxBytes             int64
	failWhenFull         bool
	reset                graph.Reset
	resetSet             bool
	matching             *regexp.Regexp // names of topics to read; nil if not matchingSet
	matchingSet          bool
	uses                 []Handle
	tombstones           bool
	history              time.Duration // of versions
	versioned            bool
	wait                 *waitSetting // nil: a join does not wait

	// keepNoKey makes a repartition topic keep records without a key, for left
	// joins, which pass them on. No option sets it.
	keepNoKey bool
}

// A codecSetting is the codec of an option and the type it was given for.
type codecSetting struct {
	codec any
	of    reflect.Type
}

// A setter is an option, whatever it fits.
type setter interface{ set(*settings) }

// settingsOf is what opts say; the later of two that contradict wins. A nil
// option says nothing.
func settingsOf[O setter](opts []O) settings {
	var s settings
	for _, o := range opts {
		if any(o) != nil {
			o.set(&s)
		}
	}
	return s
}

// An option is every kind of option: the type of the function that returns it
// says where it fits.
type option func(*settings)

func (o option) set(s *settings) { o(s) }

func (option) anyOperator()       {}
func (option) sourceOption()      {}
func (option) groupOption()       {}
func (option) aggregateOption()   {}
func (option) windowOption()      {}
func (option) bufferOption()      {}
func (option) limitOption()       {}
func (option) keyValueOption()    {}
func (option) tableOption()       {}
func (option) tableSourceOption() {}
func (option) storeOption()       {}
func (option) emitOption()        {}
func (option) joinOption()        {}
func (option) processOption()     {}

// Name names an operator in descriptions, metrics and failures. A join that
// has to repartition a side takes the topic's name from it.
func Name(operator string) Option { return option(func(s *settings) { s.name = operator }) }

// OnError decides about this operator's failed records, before
// [Config].OnError.
func OnError(p ErrorPolicy) Option { return option(func(s *settings) { s.policy = p }) }

// FromEnd begins at the end of the topic on the first start, FromAgo at the
// first record not older than d; the default is the beginning. Offsets that
// were committed and have gone are an error afterwards.
func FromEnd() SourceOption {
	return option(func(s *settings) { s.reset, s.resetSet = graph.Reset{End: true}, true })
}

// FromAgo begins at the first record not older than d.
func FromAgo(d time.Duration) SourceOption {
	return option(func(s *settings) { s.reset, s.resetSet = graph.Reset{Ago: d.Milliseconds()}, true })
}

// Matching reads every topic whose name matches, also those made later, in place
// of the topic's own name. The whole name must match: "orders-.*" is not
// "old-orders-1". A topic that is new is found within seconds and read from its
// beginning, wherever FromEnd or FromAgo began; one that was deleted is left out.
//
// Topics of the app's own (changelogs, repartition topics, those it writes to
// with To) and of Kafka's never match. Two sources never read one topic: that is
// an error of [Build] where it can be seen there, and ends the app with
// SEMEL-PATTERN otherwise.
//
// Where the records meet by key, in a store or a join, all topics that match
// must have one number of partitions; [Stream.Repartition] before it takes any.
func Matching(names *regexp.Regexp) SourceOption {
	return option(func(s *settings) { s.matching, s.matchingSet = names, true })
}

// Partitions sets the partition count of a repartition topic; the default is
// that of the source.
func Partitions(n int) GroupOption {
	return option(func(s *settings) { s.partitions, s.partitionsSet = n, true })
}

// KeyCodec sets the codec of keys in the operator's stores and topics.
func KeyCodec[K any](c codec.Codec[K]) CodecOption {
	return option(func(s *settings) { s.keyCodec = codecSetting{c, reflect.TypeFor[K]()} })
}

// ValueCodec sets the codec of values in the operator's stores and topics.
func ValueCodec[V any](c codec.Codec[V]) CodecOption {
	return option(func(s *settings) { s.valueCodec = codecSetting{c, reflect.TypeFor[V]()} })
}

// InMemory keeps the store in memory; it is restored from its changelog at
// every start.
func InMemory() AnyStoreOption { return option(func(s *settings) { s.inMemory = true }) }

// NoChangelog keeps no history of the store: what it holds is lost with the
// disk or the task's move.
func NoChangelog() StoreOption { return option(func(s *settings) { s.noChangelog = true }) }

// ChangelogConfig sets topic configuration of the changelog.
func ChangelogConfig(config map[string]string) StoreOption {
	return option(func(s *settings) { s.config = config })
}

// EmitEach sends on every update of a row instead of the last one of each
// transaction.
func EmitEach() EmitOption { return option(func(s *settings) { s.emitEach = true }) }

// Retain keeps windows for d from their start on, longer than size and grace,
// which is the default: for queries.
func Retain(d time.Duration) WindowOption {
	return option(func(s *settings) { s.retain, s.retainSet = d.Milliseconds(), true })
}

// MaxKeys limits how many rows are held back, or kept in a store for processors,
// in each task; the default is no limit. When a processor writes more, the rows
// with the smallest times go, of one time in order of their keys; see [TTL].
func MaxKeys(n int) LimitOption { return option(func(s *settings) { s.maxKeys = n }) }

// MaxBytes is [MaxKeys] by the encoded size of keys and values; the default is
// no limit.
func MaxBytes(n int64) LimitOption { return option(func(s *settings) { s.maxBytes = n }) }

// FailWhenFull fails the task when a limit is reached; Final always does.
func FailWhenFull() BufferOption { return option(func(s *settings) { s.failWhenFull = true }) }

// Uses connects a processor with declared stores and outputs, and with tables
// to read.
func Uses(handles ...Handle) ProcessOption {
	return option(func(s *settings) { s.uses = append(s.uses, handles...) })
}

// Tombstones makes a processor see records with NoValue, which are dropped
// before it otherwise.
func Tombstones() ProcessOption { return option(func(s *settings) { s.tombstones = true }) }

// A Handle is a store, a table or an output: what a processor [Uses].
type Handle interface {
	// usedBy connects the processor n with what the handle stands for.
	usedBy(b *Builder, n *graph.Node)
}
