package kafka

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/semelstream/semel/internal/seam"
	"go.uber.org/zap"
)

// clock is the wall clock.
type clock struct{}

func (clock) Now() time.Time { return time.Now() }

func (clock) Sleep(ctx context.Context, d time.Duration) error { return sleep(ctx, d) }

func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// signal holds at most one notification.
type signal chan struct{}

var _ seam.Signal = (signal)(nil)

func (s signal) Notify() {
	select {
	case s <- struct{}{}:
	default: // one is kept already
	}
}

func (s signal) Wait(ctx context.Context, d time.Duration) {
	select {
	case <-s:
		return
	default:
	}
	if d <= 0 {
		return
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-s:
	case <-t.C:
	case <-ctx.Done():
	}
}

// spawner starts goroutines. A panic in one ends the process: what the
// goroutine owned is in no known state, and Kafka has the truth.
func spawner(log *zap.Logger) func(string, func()) {
	return func(name string, f func()) {
		go func() {
			defer func() {
				if r := recover(); r != nil {
					log.Error("a goroutine panicked; the process ends",
						zap.String("goroutine", name), zap.String("panic", fmt.Sprint(r)), zap.ByteString("stack", debug.Stack()))
					_ = log.Sync()
					panic(r)
				}
			}()
			f()
		}()
	}
}
