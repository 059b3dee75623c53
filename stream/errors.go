package stream

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semelstream/semel/stream/internal/runtime"
)

// An ErrorPolicy decides what becomes of a record that failed. It is asked
// after the record's effects on state and output were undone.
type ErrorPolicy func(*Failure) Action

// An Action is a policy's decision; [Fail], [Skip] and [DeadLetter] make it.
type Action struct {
	kind  runtime.Action
	topic string
}

// Fail stops the app with the failure. It is the default.
func Fail(*Failure) Action { return Action{} }

// Skip drops the record, counted with its reason.
func Skip(*Failure) Action { return Action{kind: runtime.ActSkip} }

// DeadLetter writes the record as it was read to topic, in the same
// transaction, with headers that say what failed and where:
//
//	__streams.errors.exception   the type of the error
//	__streams.errors.message     its text
//	__streams.errors.stacktrace  of a panic
//	__streams.errors.topic       where the record was read,
//	__streams.errors.partition   all as text
//	__streams.errors.offset
//	__semel.errors.app           who met it
//	__semel.errors.task
//	__semel.errors.operator
//	__semel.errors.op            the step, an [Op]
//	__semel.errors.time          the record's timestamp in milliseconds
//	__semel.errors.held          "true" if it is as [Wait] held it; see [Failure]
//
// The first six are those of Kafka Streams.
//
// Some failures have no record that could be written, and stop the app as [Fail]
// does: those of a timer, of a result that an aggregate sends when the
// transaction closes, and of a final result. A result replaces another one, and
// what follows keeps account of both, so that it cannot be made up for from a
// topic later. Skip lets them pass. The reader of a [GlobalTable] has no
// transaction to write in: there DeadLetter stops the app too.
func DeadLetter(topic string) ErrorPolicy { return deadLetters(topic).decide }

// deadLetters is a topic of dead letters.
type deadLetters string

func (d deadLetters) decide(*Failure) Action { return Action{runtime.ActDeadLetter, string(d)} }

// deadLetters is the topic that p sends all failed records to, if p was made by
// [DeadLetter]. What a function of the user's decides is not known before.
func (p ErrorPolicy) deadLetters() (topic string, known bool) {
	if p == nil || reflect.ValueOf(p).Pointer() != reflect.ValueOf(DeadLetter("")).Pointer() {
		return "", false
	}
	return p(nil).topic, true
}

// A Failure is a record that could not be processed. As an error it wraps
// Err; App.Run returns it when the policy was Fail.
type Failure struct {
	Op       Op        // what failed
	Operator string    // its name in the topology
	Task     string    // as "1_7", or "global" for global tables
	Source             // where the record was read; zero in timers
	Key      []byte    // as read; nil is null
	Value    []byte    // as read; nil is null
	Headers  Headers   // as read
	Time     time.Time // as read
	Err      error     // what the function returned, or the panic
	Stack    []byte    // of a panic

	// Held says that it is a record which [Wait] had held back. Its key and value
	// are as they came to the join, in the codecs of the waiting store; Source is
	// where the record was read that it was made of.
	Held bool

	app string
}

// Error names the operator, the record and the reason.
func (f *Failure) Error() string {
	where := "task " + f.Task
	if f.Topic != "" {
		where += fmt.Sprintf(", record %s/%d at offset %d", f.Topic, f.Partition, f.Offset)
	}
	text := fmt.Sprintf("operator %q failed (%s, %s): %v", f.Operator, f.Op, where, f.Err)
	if h, ok := hints[f.Op]; ok && !f.explained() {
		return h.code + ": " + text + "; " + h.do + f.noLetter()
	}
	return text
}

// noLetter says why there is no dead letter, where one is spoken of.
func (f *Failure) noLetter() string {
	switch {
	case f.Op != OpFunction && f.Op != OpEncode && f.Op != OpProduce && f.Op != OpDecode:
		return ""
	case f.Task == runtime.GlobalTask:
		return " (not in a global table: nothing can be written from there)"
	case f.Topic == "" && !f.Held:
		return " (not here: it is a result, and no record that was read)"
	}
	return ""
}

// Code is short and stable, such as "SEMEL-DECODE"; docs/reference/errors.md
// lists them. It is that of Err if Err has one.
func (f *Failure) Code() string {
	if inner, ok := errors.AsType[*runtime.Fault](f.Err); ok {
		return inner.Code
	}
	return hints[f.Op].code
}

// explained says that Err has a code and a hint of its own.
func (f *Failure) explained() bool {
	_, ok := errors.AsType[*runtime.Fault](f.Err)
	return ok
}

// hints are what the failure of a step is called and what to do about it.
var hints = map[Op]struct{ code, do string }{
	OpDecode:    {"SEMEL-DECODE", "mend the codec or whoever writes the topic, or let OnError skip the record or send it to a dead-letter topic"},
	OpFunction:  {"SEMEL-FUNCTION", "mend the function, or let OnError skip the record or send it to a dead-letter topic"},
	OpTimer:     {"SEMEL-TIMER", "mend the timer's function, or let OnError skip its failures"},
	OpEncode:    {"SEMEL-ENCODE", "mend the codec or what the operator makes, or let OnError skip the record or send it to a dead-letter topic"},
	OpProduce:   {"SEMEL-PRODUCE", "see the cause, or let OnError skip the record or send it to a dead-letter topic"},
	Op(opState): {"SEMEL-ROWS", "see the cause: if it is the disk, mend it; if a row cannot be decoded, the store was written with another type, and needs its old codec or another name"},
}

// Unwrap is Err.
func (f *Failure) Unwrap() error { return f.Err }

// An Op is the step that failed.
type Op string

// The steps.
const (
	OpDecode   Op = "decode"
	OpFunction Op = "function" // a user's function or processor
	OpTimer    Op = "timer"
	OpEncode   Op = "encode"
	OpProduce  Op = "produce" // too large, unknown topic, not authorized
)

// Errors that App.Run and views return, for errors.Is.
var (
	ErrIncompatible = errors.New("state or topics do not fit the topology")
	ErrNotReady     = errors.New("store is restoring or moving")
	ErrNoStore      = errors.New("no such store")
	ErrClosed       = errors.New("app is closed")
)

// runtime is the policy as the runtime asks it, in the app of that name.
func (p ErrorPolicy) runtime(app string) runtime.Policy {
	return func(t *runtime.Task, f *runtime.Failure, r *kgo.Record) runtime.Verdict {
		failure := newFailure(app, t, f, r)
		a := p.decide(failure)
		if a.kind == runtime.ActDeadLetter && (r == nil || a.topic == "") {
			a = Action{}
		}
		v := runtime.Verdict{Action: a.kind}
		if a.kind == runtime.ActDeadLetter {
			v.DeadLetter, v.Headers = a.topic, deadLetterHeaders(failure)
		}
		return v
	}
}

// decide asks p. A policy that panics has not decided, and what is not decided
// stops the app.
func (p ErrorPolicy) decide(f *Failure) (a Action) {
	defer func() {
		if recover() != nil {
			a = Action{}
		}
	}()
	return p(f)
}

// newFailure is f as users see it. In timers r is nil, in global tables t is.
func newFailure(app string, t *runtime.Task, f *runtime.Failure, r *kgo.Record) *Failure {
	p := &Failure{
		Op: Op(f.Op), Operator: f.Operator, Task: runtime.GlobalTask, Err: f.Err, Stack: f.Stack, Held: f.Held, app: app,
	}
	if t != nil {
		p.Task = t.ID().String()
	}
	if r != nil {
		p.Source = Source{r.Topic, r.Partition, r.Offset}
		p.Key, p.Value, p.Headers, p.Time = r.Key, r.Value, fromKafka(r.Headers), r.Timestamp
	}
	return p
}

// deadLetterHeaders are what a dead letter says beyond the record's own
// headers.
func deadLetterHeaders(f *Failure) []kgo.RecordHeader {
	var h []kgo.RecordHeader
	add := func(name, value string) { h = append(h, kgo.RecordHeader{Key: name, Value: []byte(value)}) }
	cause := f.Err
	if p, ok := cause.(panicked); ok { //nolint:errorlint // the outermost error names the exception
		cause = p.cause
	}
	add("__streams.errors.exception", fmt.Sprintf("%T", cause))
	add("__streams.errors.message", f.Err.Error())
	if len(f.Stack) > 0 {
		add("__streams.errors.stacktrace", string(f.Stack))
	}
	add("__streams.errors.topic", f.Topic)
	add("__streams.errors.partition", strconv.Itoa(int(f.Partition)))
	add("__streams.errors.offset", strconv.FormatInt(f.Offset, 10))
	add("__semel.errors.app", f.app)
	add("__semel.errors.task", f.Task)
	add("__semel.errors.operator", f.Operator)
	add("__semel.errors.op", string(f.Op))
	add("__semel.errors.time", strconv.FormatInt(f.Time.UnixMilli(), 10))
	if f.Held {
		add("__semel.errors.held", "true")
	}
	return h
}
