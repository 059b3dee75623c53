package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/zap"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/internal/seam"
	"github.com/semelstream/semel/stream"
	"github.com/semelstream/semel/txn"
)

// The application counts the records of each key, sends each count with the
// record's id, and, through a repartition topic, counts groups of keys.
func topology(app string) func(*stream.Builder) {
	in := stream.NewTopic(app+"-in", codec.String, codec.String)
	each := stream.NewTopic(app+"-each", codec.String, codec.String)
	sums := stream.NewTopic(app+"-sums", codec.String, codec.Int64)
	return func(b *stream.Builder) {
		counts := b.Store("counts", codec.String, codec.Int64)
		s := b.Stream(in)
		s.ProcessValues(func(c *stream.ValueContext[string], r stream.Record[string, string]) error {
			n, _, err := counts.In(c).Get(r.Key)
			if err != nil {
				return err
			}
			if err := counts.In(c).Put(r.Key, n+1); err != nil {
				return err
			}
			return c.Emit(strconv.FormatInt(n+1, 10) + " " + r.Value)
		}, stream.Uses(counts)).To(each)
		s.GroupBy(func(k, _ string) string { return group(k) }).Count("sums").To(sums)
	}
}

// childWorkers are the workers of each process.
const childWorkers = 2

// group is the last two digits of a key.
func group(key string) string { return "g" + key[len(key)-2:] }

// stops are the named steps at which children die.
var stops = []string{"init", "offsets fetched", "restored", "active", "C1", "C2", "C4", "C5", "C6", "C7", "close", "reset"}

func runChild(ctx context.Context, c config, dir, stop string) error {
	if name, n, ok := strings.Cut(stop, ":"); ok {
		left, err := strconv.Atoi(n)
		if err != nil {
			return err
		}
		if at, ok := strings.CutPrefix(name, fenceAt); ok {
			atStop(at, int64(left), func() { fenceSelf(c, dir) })
		} else {
			atStop(name, int64(left), die)
		}
	}
	log, err := zap.NewDevelopmentConfig().Build()
	if err != nil {
		return err
	}
	log = log.WithOptions(zap.IncreaseLevel(zap.InfoLevel))
	err = stream.Run(ctx, topology(c.app), stream.Config{
		AppID: c.app, Brokers: c.brokers, StateDir: dir, Workers: childWorkers, Session: c.session, Logger: log,
		CommitInterval: 50 * time.Millisecond,
	})
	if err != nil {
		log.Error("exit", zap.Error(err))
	}
	return err
}

// atStop does something the n-th time that the process comes to the stop.
func atStop(name string, n int64, do func()) {
	var seen atomic.Int64
	seam.TestStops = func(point string) {
		if point == name && seen.Add(1) == n {
			fmt.Fprintf(os.Stderr, "stop %s\n", point)
			do()
		}
	}
}

// die is kill -9 of this process, by itself.
func die() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}

// fenceAt before a stop's name has the process lose its transactional ids
// there, as to somebody who took it for dead, and live on.
const fenceAt = "fence@"

func fenceSelf(c config, dir string) {
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.brokers...))
	if err != nil {
		fmt.Fprintln(os.Stderr, "fencing:", err)
		return
	}
	defer cl.Close()
	if err := fenceIDs(cl, c.app, dir); err != nil {
		fmt.Fprintln(os.Stderr, "fencing:", err)
	}
}

// fenceIDs takes away the transactional ids of the instance whose state is in
// dir.
func fenceIDs(cl *kgo.Client, app, dir string) error {
	b, err := os.ReadFile(filepath.Join(dir, "instance"))
	if err != nil {
		return nil // it has not come that far
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	for worker := range childWorkers {
		id := fmt.Sprintf("%s-@%s-%d", app, strings.TrimSpace(string(b)), worker)
		for _, id := range []string{id, id + "-b"} { // two producers in turn
			if err := txn.Fence(ctx, cl, txn.Scope{Group: app}, id); err != nil {
				return fmt.Errorf("fencing %s: %w", id, err)
			}
		}
	}
	return nil
}
