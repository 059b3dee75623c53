package runtime

import (
	"errors"
	"fmt"
)

// ErrNoTopic is a topic that does not exist.
var ErrNoTopic = errors.New("no such topic")

// A MissingTopic is a topic that a task wants to write to and the app has not
// heard of. A topic that is named at run time is asked for when it is first
// needed.
type MissingTopic struct{ Topic string }

// Error names the topic.
func (m *MissingTopic) Error() string {
	return fmt.Sprintf("topic %q: %v; create it, or correct its name", m.Topic, ErrNoTopic)
}

// Unwrap is ErrNoTopic.
func (m *MissingTopic) Unwrap() error { return ErrNoTopic }

// unlearned is a missing topic of a timer or of a result at the commit. These
// cannot be had again as a record can, so the worker starts over from what is
// committed and knows the topic then, or knows that it is missing.
type unlearned struct{ topic string }

// torn is an error after which the open transaction holds half of what belongs
// together.
type torn struct{ error }

func (e *torn) Unwrap() error { return e.error }

func (u *unlearned) Error() string {
	return "topic " + u.topic + " is written to for the first time, outside of a record"
}

// ErrIncompatible is state or topics that do not fit the topology.
var ErrIncompatible = errors.New("state or topics do not fit the topology")

// A Fault is an error for the user: what happened, where, why, and what to do
// about it. Code is short and stable, for searching.
type Fault struct {
	Code  string // as "SEMEL-PARTITIONS"
	What  string
	Where string
	Err   error // why; may be nil
	Do    string
}

// Error is all of it in one line.
func (f *Fault) Error() string {
	s := f.Code + ": " + f.What
	if f.Where != "" {
		s += " (" + f.Where + ")"
	}
	if f.Err != nil {
		s += ": " + f.Err.Error()
	}
	if f.Do != "" {
		s += "; " + f.Do
	}
	return s
}

// Unwrap is Err.
func (f *Fault) Unwrap() error { return f.Err }

// fault makes a Fault.
func fault(code, what, where string, err error, do string) error {
	return &Fault{Code: "SEMEL-" + code, What: what, Where: where, Err: err, Do: do}
}

// fatal marks an error that stops the app whatever txn.Judge thinks of its
// cause.
type fatal struct{ error }

func (f fatal) Unwrap() error { return f.error }

func fatalf(format string, args ...any) error { return fatal{fmt.Errorf(format, args...)} }
