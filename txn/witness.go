package txn

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// A witness reads in the client's log how it really ends a transaction. A
// client that believes that nothing was written sends an abort when it is told
// to commit, and reports success; learn removes the one known cause, and this
// sees to it that an unknown one loses nothing.
type witness struct {
	next kgo.Logger // the caller's, nil if there is none
	saw  atomic.Int32
}

// Witness makes a logger for one client that a [Producer] can read, besides
// next. A Producer makes one for itself: around a logger among its options it
// has to make the client twice, which hooks of the client's may notice, and this
// spares them that.
func Witness(next kgo.Logger) kgo.Logger { return &witness{next: next} }

// witnessed makes a client whose logger is a witness. Only a client can say what
// its options are, so that the first one may be there to be asked for a logger.
func witnessed(opts []kgo.Opt) (*kgo.Client, *witness, error) {
	cl, err := kgo.NewClient(append([]kgo.Opt{kgo.WithLogger(Witness(nil))}, opts...)...)
	if err != nil {
		return nil, nil, err
	}
	switch l := cl.OptValue(kgo.WithLogger).(type) {
	case *witness:
		return cl, l, nil
	case kgo.Logger:
		cl.Close()
		w := &witness{next: l}
		cl, err = kgo.NewClient(append(opts, kgo.WithLogger(w))...)
		return cl, w, err
	}
	cl.Close()
	return nil, nil, errors.New("txn: the client has no logger, which the producer needs; leave out kgo.WithLogger(nil)")
}

const (
	sawNothing = iota
	sawCommit
	sawAbort
)

// Level and Log make it a kgo.Logger.
func (w *witness) Level() kgo.LogLevel {
	if w.next == nil {
		return kgo.LogLevelInfo
	}
	return max(kgo.LogLevelInfo, w.next.Level())
}

func (w *witness) Log(level kgo.LogLevel, msg string, keyvals ...any) {
	if w.next != nil && level <= w.next.Level() {
		w.next.Log(level, msg, keyvals...)
	}
	if msg != "ending transaction" {
		return
	}
	for i := 0; i+1 < len(keyvals); i += 2 {
		if keyvals[i] != "commit" {
			continue
		}
		if how, ok := keyvals[i+1].(kgo.TransactionEndTry); ok && bool(how) {
			w.saw.Store(sawCommit)
		} else {
			w.saw.Store(sawAbort)
		}
	}
}

// committed is nil if the client has sent a commit since forget.
func (w *witness) committed(id string) error {
	switch w.saw.Load() {
	case sawCommit:
		return nil
	case sawAbort:
		return fmt.Errorf("txn: commit %s: the client aborted instead: %w", id, kerr.OperationNotAttempted)
	}
	return fmt.Errorf("txn: commit %s: the client did not say how it ended the transaction: %w", id, ErrUnknownOutcome)
}

func (w *witness) forget() { w.saw.Store(sawNothing) }
