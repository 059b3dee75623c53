// Command wordcount counts words, exactly once.
//
// With -brokers it is an ordinary long-lived process: it reads topic lines and
// writes topic word-counts until it is told to stop. With -demo it proves
// itself: it loads a real text, counts its words in processes that it kills on
// the way, and compares every count with a plain recount.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"go.uber.org/zap"

	"github.com/semelstream/semel/examples/internal/demo"
	"github.com/semelstream/semel/stream"
)

func main() {
	var (
		brokers  = flag.String("brokers", "", "addresses of the Kafka cluster, host:port,...")
		app      = flag.String("app", "wordcount", "application id")
		dir      = flag.String("state", "", "state directory; default in the user's cache")
		workers  = flag.Int("workers", 2, "goroutines that process")
		interval = flag.Duration("commit", 100*time.Millisecond, "longest time between commits")
		verbose  = flag.Bool("v", false, "log what happens")
		prove    = flag.Bool("demo", false, "count a text in processes that are killed on the way, and check the result")
		in       = flag.String("in", "", "demo: the text, a file or - for standard input; default is the source of Go's standard library")
		kills    = flag.Int("kills", 3, "demo: how many times a process is killed")
		stats    = flag.Bool("stats", false, "report counters on standard output, for -demo")
	)
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	var err error
	switch {
	case *prove:
		err = runDemo(ctx, demoConfig{brokers: *brokers, in: *in, kills: *kills})
	case *brokers == "":
		err = fmt.Errorf("-brokers is missing: give the address of a Kafka cluster, or -demo")
	default:
		cfg := stream.Config{
			AppID: *app, Brokers: strings.Split(*brokers, ","), StateDir: *dir, Workers: *workers, CommitInterval: *interval,
		}
		if *verbose {
			cfg.Logger, _ = zap.NewDevelopment()
		}
		if *stats {
			cfg.Hooks = append(cfg.Hooks, demo.NewReporter(os.Stdout))
		}
		err = stream.Run(ctx, Topology, cfg)
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "wordcount:", err)
		os.Exit(1)
	}
}
