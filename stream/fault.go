package stream

import (
	"errors"

	"github.com/semelstream/semel/stream/internal/runtime"
)

// A Fault is an error that ends an app and is no record's: topics that do not
// fit, a permission that is missing, a state directory in use. errors.As finds
// it in what [App.Run] returns. A record's is a [Failure].
type Fault struct {
	Code  string // short and stable, such as "SEMEL-PARTITIONS"; docs/reference/errors.md lists them
	What  string // happened
	Where string // topic, store, directory; may be empty
	Do    string // about it; may be empty
	Err   error  // why; may be nil

	whole error
}

// Error is all of it in one line.
func (f *Fault) Error() string { return f.whole.Error() }

// Unwrap is what the fault was made of, Err included.
func (f *Fault) Unwrap() error { return f.whole }

// publicFault makes the runtime's fault in err the user's.
func publicFault(err error) error {
	f, ok := errors.AsType[*runtime.Fault](err)
	if !ok {
		return err
	}
	return &Fault{Code: f.Code, What: f.What, Where: f.Where, Do: f.Do, Err: f.Err, whole: err}
}
