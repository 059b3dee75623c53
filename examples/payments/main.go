// Command payments moves money between accounts, exactly once, and does a
// payment that was sent twice only once.
//
// With -brokers it is an ordinary long-lived process: it reads the topics
// deposits and payments and writes ledger and refused until it is told to
// stop. With -demo it proves itself: processes that are killed on the way do
// random payments, and then every cent and every payment is looked for in the
// ledger.
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
		app      = flag.String("app", "payments", "application id")
		dir      = flag.String("state", "", "state directory; default in the user's cache")
		workers  = flag.Int("workers", 2, "goroutines that process")
		interval = flag.Duration("commit", 100*time.Millisecond, "longest time between commits")
		verbose  = flag.Bool("v", false, "log what happens")
		prove    = flag.Bool("demo", false, "do random payments in processes that are killed on the way, and check the ledger")
		payments = flag.Int("payments", 300_000, "demo: how many payments")
		accounts = flag.Int("accounts", 1000, "demo: among how many accounts")
		kills    = flag.Int("kills", 3, "demo: how many times a process is killed")
		seed     = flag.Uint64("seed", uint64(time.Now().UnixNano()), "demo: of the random payments")
		stats    = flag.Bool("stats", false, "report counters on standard output, for -demo")
	)
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	var err error
	switch {
	case *prove:
		err = runDemo(ctx, demoConfig{brokers: *brokers, payments: *payments, accounts: *accounts, kills: *kills, seed: *seed})
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
		fmt.Fprintln(os.Stderr, "payments:", err)
		os.Exit(1)
	}
}
