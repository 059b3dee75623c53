// Command crash is the proof that nothing is lost, doubled or torn: an
// application in several processes on a real Kafka, which are killed, stopped
// and restarted at random and at every named step of the commit path, and an
// offline checker.
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
)

type config struct {
	brokers  []string
	app      string
	kills    int
	procs    int
	rate     int
	keys     int
	session  time.Duration
	seed     int64
	mutant   string
	keep     string
	expect   bool // that the checker finds something
	patience time.Duration
}

func main() {
	var (
		c       config
		brokers = flag.String("brokers", os.Getenv("KAFKA_ADDR"), "addresses of the Kafka cluster")
		child   = flag.Bool("child", false, "be a process of the application")
		dir     = flag.String("state", "", "state directory, of a child")
		stop    = flag.String("stop", "", "name:n, where a child kills itself")
	)
	flag.StringVar(&c.app, "app", "", "application id; default a new one")
	flag.IntVar(&c.kills, "kills", 20, "kill -9s to survive")
	flag.IntVar(&c.procs, "procs", 3, "processes of the application")
	flag.IntVar(&c.rate, "rate", 3000, "records per second")
	flag.IntVar(&c.keys, "keys", 500, "different keys")
	flag.DurationVar(&c.session, "session", 6*time.Second, "session of the group")
	flag.Int64Var(&c.seed, "seed", time.Now().UnixNano(), "seed of the kills")
	flag.StringVar(&c.mutant, "mutant", "", "a deliberate fault of the runtime, in a build with the tag semelmutant")
	flag.BoolVar(&c.expect, "expect-violation", false, "succeed only if the checker finds something")
	flag.StringVar(&c.keep, "log", "", "file for the children's logs")
	flag.DurationVar(&c.patience, "patience", 2*time.Minute, "how long the application may take to finish at the end")
	flag.Parse()
	c.brokers = strings.Split(*brokers, ",")
	if *brokers == "" {
		fail(fmt.Errorf("-brokers or KAFKA_ADDR is missing"))
	}
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	if *child {
		fail(runChild(ctx, c, *dir, *stop))
		return
	}
	fail(runRig(ctx, c))
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "crash:", err)
		os.Exit(1)
	}
}
