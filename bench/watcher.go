package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// A watcher is the read_committed consumer of an output. It knows when each
// fed record came out, and that none came twice.
type watcher struct {
	cl   *kgo.Client
	news chan struct{} // a token when something came
	gone chan struct{} // closed when it has ended

	mu       sync.Mutex
	other    int64 // records that were not fed
	fed      int64
	seen     map[int64]bool
	twice    int64
	latency  []time.Duration
	from     time.Time // only records due from then on are measured
	last     time.Time // the last fed record's arrival
	silence  time.Duration
	after    time.Time // of the kill
	firstOut time.Time // of a record that was due after that
	err      error
}

func (b *bench) watch(ctx context.Context, topic string) (*watcher, error) {
	from := map[int32]kgo.Offset{}
	for p := range int32(partitions) {
		from[p] = kgo.NewOffset().At(0)
	}
	cl, err := kgo.NewClient(kgo.SeedBrokers(b.c.brokers...), kgo.DisableClientMetrics(),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.MetadataMinAge(50*time.Millisecond),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: from}))
	if err != nil {
		return nil, err
	}
	w := &watcher{cl: cl, news: make(chan struct{}, 1), gone: make(chan struct{}), seen: map[int64]bool{}}
	go w.run(ctx)
	return w, nil
}

func (w *watcher) run(ctx context.Context) {
	defer close(w.gone)
	defer w.cl.Close()
	for {
		fs := w.cl.PollFetches(ctx)
		now := time.Now()
		if ctx.Err() != nil || fs.IsClientClosed() {
			return
		}
		w.mu.Lock()
		if err := pollError(fs); err != nil {
			w.err = err
		}
		fs.EachRecord(func(r *kgo.Record) { w.arrived(r, now) })
		failed := w.err != nil
		w.mu.Unlock()
		select {
		case w.news <- struct{}{}:
		default:
		}
		if failed {
			return
		}
	}
}

func (w *watcher) arrived(r *kgo.Record, now time.Time) {
	due, n, ok := readStamp(r.Value)
	if !ok {
		w.other++
		return
	}
	w.fed++
	if w.seen[n] {
		w.twice++
	}
	w.seen[n] = true
	if !w.from.IsZero() && !due.Before(w.from) {
		w.latency = append(w.latency, now.Sub(due))
	}
	if !w.last.IsZero() {
		w.silence = max(w.silence, now.Sub(w.last))
	}
	w.last = now
	if w.firstOut.IsZero() && !w.after.IsZero() && due.After(w.after) {
		w.firstOut = now
	}
}

// await waits until f, under the lock, says so.
func (w *watcher) await(ctx context.Context, what string, f func() bool) error {
	for {
		w.mu.Lock()
		ok, err := f(), w.err
		w.mu.Unlock()
		if ok || err != nil {
			return err
		}
		select {
		case <-w.news:
		case <-ctx.Done():
			return w.missed(what, ctx.Err())
		}
	}
}

func (w *watcher) missed(what string, err error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return fmt.Errorf("waiting for %s (%d fed records and %d others came out): %w", what, w.fed, w.other, err)
}

// complete waits for all n fed records, and checks that none came twice.
func (w *watcher) complete(ctx context.Context, n int64) error {
	err := w.await(ctx, fmt.Sprintf("all %d fed records", n), func() bool { return int64(len(w.seen)) >= n })
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.twice > 0 || int64(len(w.seen)) != n {
		return fmt.Errorf("wrong output: %d records came twice, %d of %d came", w.twice, len(w.seen), n)
	}
	return nil
}

// measure begins to measure, at records that are due from now on.
func (w *watcher) measure(from time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.from = from
}

// killing begins a new observation of silence.
func (w *watcher) killing(at time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.after, w.firstOut, w.silence = at, time.Time{}, 0
}

// recovered is what was observed since.
func (w *watcher) recovered() (silence, first time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.silence, w.firstOut.Sub(w.after)
}
