package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// A feeder sends records at a fixed rate, whatever becomes of them. Each
// carries the time at which it was to be sent and its number, so that a
// stall of sender, broker or application counts for every record behind it.
type feeder struct {
	topic string
	rate  int
	size  int           // of values
	keys  func() uint64 // the next key
	cl    *kgo.Client
	sent  atomic.Int64
	err   atomic.Pointer[error]
}

func (b *bench) newFeeder(topic string, rate, size int, keys func() uint64) (*feeder, error) {
	cl, err := kgo.NewClient(kgo.SeedBrokers(b.c.brokers...), kgo.DisableClientMetrics(), kgo.ProducerLinger(0),
		kgo.ProducerBatchCompression(kgo.NoCompression()), kgo.RecordPartitioner(kgo.StickyKeyPartitioner(nil)))
	if err != nil {
		return nil, err
	}
	return &feeder{topic: topic, rate: rate, size: max(size, stampSize), keys: keys, cl: cl}, nil
}

// run sends until ctx ends and then waits until all is written.
func (f *feeder) run(ctx context.Context) error {
	defer f.cl.Close()
	began := time.Now()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for n := int64(0); ; {
		select {
		case <-timer.C:
		case <-ctx.Done():
			return f.flush()
		}
		now := time.Now()
		for ; ; n++ {
			due := began.Add(time.Duration(n) * time.Second / time.Duration(f.rate))
			if wait := due.Sub(now); wait > 0 {
				timer.Reset(wait)
				break
			}
			f.cl.Produce(context.WithoutCancel(ctx), &kgo.Record{Topic: f.topic, Key: key16(f.keys()), Value: stamp(due, n, f.size)}, f.done)
			f.sent.Store(n + 1)
		}
	}
}

func (f *feeder) done(_ *kgo.Record, err error) {
	if err != nil {
		f.err.CompareAndSwap(nil, &err)
	}
}

func (f *feeder) flush() error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := f.cl.Flush(ctx); err != nil {
		return fmt.Errorf("sending: %w", err)
	}
	if err := f.err.Load(); err != nil {
		return fmt.Errorf("sending: %w", *err)
	}
	return nil
}

// stampSize is the least that a stamped value has.
const stampSize = 17

// fed marks values of a feeder.
const fed = 0xFE

func stamp(due time.Time, n int64, size int) []byte {
	v := make([]byte, size)
	v[0] = fed
	binary.BigEndian.PutUint64(v[1:], uint64(due.UnixNano()))
	binary.BigEndian.PutUint64(v[9:], uint64(n))
	return v
}

// readStamp is false for values that were not a feeder's.
func readStamp(v []byte) (due time.Time, n int64, ok bool) {
	if len(v) < stampSize || v[0] != fed {
		return time.Time{}, 0, false
	}
	return time.Unix(0, int64(binary.BigEndian.Uint64(v[1:]))), int64(binary.BigEndian.Uint64(v[9:])), true
}
