package state

import (
	"fmt"
	"math/bits"
	"sync"

	"github.com/cockroachdb/pebble/v2"
	"go.uber.org/zap"
)

// flushState follows Pebble's flushes. Pebble tries a failed one again at once
// and for ever, and whoever waits for it learns nothing of that.
type flushState struct {
	mu      sync.Mutex
	failed  int // in a row
	err     error
	changed chan struct{} // closed at each end of a flush
}

// maxFlushFailures in a row mean that the disk does not take any more.
const maxFlushFailures = 3

func (f *flushState) ended(err error) (failed int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err == nil {
		f.failed, f.err = 0, nil
	} else {
		f.failed++
		f.err = err
	}
	close(f.changed)
	f.changed = make(chan struct{})
	return f.failed
}

// stuck is the reason if flushes fail. It passes when one succeeds.
func (f *flushState) stuck() error {
	_, err := f.look()
	return err
}

func (f *flushState) look() (changed <-chan struct{}, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failed >= maxFlushFailures {
		err = fmt.Errorf("the disk has not taken a flush in %d attempts: %w", f.failed, f.err)
	}
	return f.changed, err
}

// run flushes and waits for the end.
func (f *flushState) run(db *pebble.DB) error {
	if err := f.stuck(); err != nil {
		return err
	}
	done, err := db.AsyncFlush()
	if err != nil {
		return err
	}
	for {
		changed, err := f.look()
		if err != nil {
			return err
		}
		select {
		case <-done:
			return nil
		case <-changed:
		}
	}
}

// emptyFlush is the message of what Pebble reports as an error, and does not
// export, when a flush had nothing to write.
const emptyFlush = "pebble: empty table"

func (e *pebbleEngine) events() *pebble.EventListener {
	return &pebble.EventListener{
		FlushEnd: func(i pebble.FlushInfo) {
			err := i.Err
			if err != nil && err.Error() == emptyFlush {
				err = nil
			}
			n := e.flushes.ended(err)
			if err != nil && bits.OnesCount(uint(n)) == 1 { // the 1st, 2nd, 4th, 8th...
				e.log.Error("flushing state to disk failed and is tried again", zap.Int("attempts", n), zap.Error(err))
			}
		},
		DataCorruption: func(i pebble.DataCorruptionInfo) {
			e.log.Error("state on disk is corrupt", zap.String("file", i.Path), zap.Error(i.Details))
		},
		BackgroundError: func(err error) {
			e.log.Debug("pebble", zap.Error(err))
		},
	}
}

// pebbleLogger is Pebble's logger. Its information is of no use to users.
type pebbleLogger struct {
	log   *zap.Logger
	fatal func(msg string)
}

func (l pebbleLogger) Infof(format string, args ...any) {}

func (l pebbleLogger) Errorf(format string, args ...any) {
	l.log.Warn("pebble: " + fmt.Sprintf(format, args...))
}

func (l pebbleLogger) Fatalf(format string, args ...any) {
	msg := fmt.Sprintf(format, args...)
	l.log.Error("pebble cannot go on: " + msg)
	l.fatal(msg)
}
