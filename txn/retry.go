package txn

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
)

// topicPatience is how long a topic may be unknown before that is believed:
// brokers learn of new topics one after the other.
const topicPatience = 10 * time.Second

// again repeats a step until it succeeds, fails for good or ctx ends. The
// client's own retries are not enough: a dial error met by its FindCoordinator
// comes through at once, and it stops at codes of single partitions.
//
// The error of a ctx that ended names the last failure, but does not wrap it:
// [Judge] sees the context only.
func again(ctx context.Context, what string, step func() error) error {
	start := time.Now()
	for n := 1; ; n++ {
		err := step()
		if err == nil {
			return nil
		}
		if cause := ctx.Err(); cause != nil {
			return fmt.Errorf("%s: %w (last: %v)", what, cause, err)
		}
		since := time.Since(start)
		if Judge(err) != OutcomeRetry && !young(err, since) {
			return fmt.Errorf("%s: %w", what, err)
		}
		if cause := sleep(ctx, pause(err, n, since)); cause != nil {
			return fmt.Errorf("%s: %w (last: %v)", what, cause, err)
		}
	}
}

// young says that a missing topic may only be missing yet.
func young(err error, since time.Duration) bool {
	return errors.Is(err, kerr.UnknownTopicOrPartition) && since < topicPatience
}

// pause is how long to wait before the next try. Markers take a millisecond or
// two; what takes longer than a second takes much longer.
func pause(err error, tries int, since time.Duration) time.Duration {
	switch {
	case !errors.Is(err, kerr.ConcurrentTransactions):
		return backoff(tries)
	case since > time.Second:
		return 20 * time.Millisecond
	case tries > 10:
		return time.Millisecond
	}
	return 300 * time.Microsecond
}

// sleep returns ctx's error when it ends first.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// worst picks what to report of many partitions: an error that is final
// before one that passes, and any before OPERATION_NOT_ATTEMPTED, which only
// says that another one failed.
func worst(a, b error) error {
	switch {
	case a == nil || b == nil:
		if a == nil {
			return b
		}
		return a
	case errors.Is(a, kerr.OperationNotAttempted):
		return b
	case Judge(a) == OutcomeRetry && !errors.Is(b, kerr.OperationNotAttempted):
		return b
	}
	return a
}

// partitionError is a broker's code for a partition, or nil.
func partitionError(topic string, partition int32, code int16) error {
	if code == 0 {
		return nil
	}
	return fmt.Errorf("%s: %w", TP{Topic: topic, Partition: partition}, kerr.ErrorForCode(code))
}
