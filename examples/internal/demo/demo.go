// Package demo runs the processes of an example on a broker, kills some of
// them on the way and waits until everything is processed. What the result
// should be, the example knows itself.
package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
)

// A Config says what to run. The processes are the program itself, started
// with the flags -brokers, -app, -state, -workers and -stats: with the last
// one it must have [Reporter] among its hooks.
type Config struct {
	Name       string   // of the example
	Brokers    string   // addresses, host:port,...; empty for a broker in memory
	Topics     []string // all that the example uses; they are made anew
	Inputs     []string // those of Topics that it reads
	Internal   []string // names of its repartition topics, without app and suffix
	Partitions int32    // of each topic
	Processes  int
	Kills      int // how many times a process is killed
}

// A Run is one run of a demo: a broker, topics, processes.
type Run struct {
	// Client writes to partitions that the records name. It never knew the
	// topics that were there before.
	Client *kgo.Client

	cfg         Config
	app         string
	brokers     []string
	dir         string
	admin       *kadm.Client
	procs       []*process // by place
	lives       []*process // all that ever ran
	killed      int
	closeBroker func()
}

// Open starts or finds the broker and makes the topics. Close the Run also
// after an error of its methods.
func Open(ctx context.Context, cfg Config) (*Run, error) {
	r := &Run{cfg: cfg, app: fmt.Sprintf("%s-demo-%d", cfg.Name, os.Getpid()), procs: make([]*process, cfg.Processes)}
	if err := r.open(ctx); err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

func (r *Run) open(ctx context.Context) (err error) {
	if r.dir, err = os.MkdirTemp("", "semel-"+r.cfg.Name+"-"); err != nil {
		return err
	}
	if err := r.openBroker(); err != nil {
		return err
	}
	if err := r.makeTopics(ctx); err != nil {
		return err
	}
	r.Client, err = kgo.NewClient(kgo.SeedBrokers(r.brokers...), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.MaxBufferedRecords(1<<18))
	if err != nil {
		return err
	}
	r.admin = kadm.NewClient(r.Client)
	return nil
}

// openBroker starts the embedded broker, or takes the given one.
func (r *Run) openBroker() error {
	if r.cfg.Brokers != "" {
		r.brokers = strings.Split(r.cfg.Brokers, ",")
		fmt.Println("broker:", r.cfg.Brokers)
		return nil
	}
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.BrokerConfigs(map[string]string{"log.segment.bytes": "1048576"}))
	if err != nil {
		return fmt.Errorf("starting the embedded broker: %w", err)
	}
	r.brokers, r.closeBroker = c.ListenAddrs(), c.Close
	fmt.Println("broker: embedded, on", r.brokers[0])
	return nil
}

// makeTopics makes the topics anew, so that a second run begins at zero too.
func (r *Run) makeTopics(ctx context.Context) error {
	cl, err := kgo.NewClient(kgo.SeedBrokers(r.brokers...))
	if err != nil {
		return err
	}
	defer cl.Close()
	admin := kadm.NewClient(cl)
	if _, err := admin.DeleteTopics(ctx, r.cfg.Topics...); err != nil {
		return err
	}
	for try := 0; ; try++ {
		resp, err := admin.CreateTopics(ctx, r.cfg.Partitions, -1, nil, r.cfg.Topics...)
		if err == nil {
			err = resp.Error()
		}
		if err == nil {
			return nil
		}
		if try == 50 || ctx.Err() != nil {
			return fmt.Errorf("making topics: %w", err)
		}
		select { // the old ones are being deleted
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

// Process starts the processes, kills one each time the next part of the input
// is done, and stops all when everything is processed. It returns how long
// that took, without the stop.
func (r *Run) Process(ctx context.Context) (time.Duration, error) {
	began := time.Now()
	defer r.stopAll()
	for i := range r.procs {
		if err := r.start(i); err != nil {
			return 0, err
		}
	}
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			fmt.Println()
			return 0, ctx.Err()
		case <-tick.C:
		}
		done, all, err := r.progress(ctx)
		if err != nil {
			continue // the group or a topic is not there yet
		}
		r.bar(done, all)
		if all > 0 && done == all {
			fmt.Println()
			return time.Since(began), nil
		}
		if err := r.ended(); err != nil {
			return 0, err
		}
		if r.killed < r.cfg.Kills && done*int64(r.cfg.Kills+1) > all*int64(r.killed+1) {
			if err := r.kill(r.killed % len(r.procs)); err != nil {
				return 0, err
			}
		}
	}
}

// Close stops what runs and deletes what is left on disk.
func (r *Run) Close() {
	r.stopAll()
	if r.Client != nil {
		r.Client.Close()
	}
	if r.closeBroker != nil {
		r.closeBroker()
	}
	_ = os.RemoveAll(r.dir) // what stays is in the temporary directory
}

// Totals are what all the processes did.
type Totals struct {
	counters
	killed int
}

// Totals adds up what the processes have reported.
func (r *Run) Totals() Totals {
	t := Totals{killed: r.killed}
	for _, p := range r.lives {
		p.mu.Lock()
		t.counters = t.add(p.last)
		p.mu.Unlock()
	}
	return t
}

// String is a line for a report.
func (t Totals) String() string {
	return fmt.Sprintf("%d transactions committed, %d aborted; %d processes killed, %d stores restored", t.commits, t.aborts, t.killed, t.stores)
}

// ErrNotExact is what a demo returns if its result is not what it must be.
var ErrNotExact = errors.New("not exact")
