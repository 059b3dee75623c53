// Command bench measures what exactly-once costs.
//
//	go run ./bench [flags] [latency] [throughput] [operators] [peers] [recovery] [restore]
//
// Without names it measures all but the peers, on the brokers of KAFKA_ADDR or on an
// embedded one. The driver loads topics and checks outputs; what is measured
// runs in child processes, one after the other:
//
//	latency     records at a fixed rate, from the time they were to be sent
//	            until a read_committed consumer has them
//	throughput  a loaded topic is drained: pass-through, counts, word count;
//	            exactly-once, at-least-once and plain franz-go loops, in
//	            alternating rounds
//	operators   windows, joins and the like, beside a count of the same topic
//	peers       the same in Kafka Streams, only when named: it needs Java
//	recovery    1 GB of state, kill -9, restart at once: the longest silence,
//	            and the first committed output
//	restore     the same state from an empty directory
//
// Results are text on standard output, and with -out in files that begin with
// the date. A run whose output is wrong ends the bench with an error.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"
)

func main() {
	if len(os.Args) == 3 && os.Args[1] == "-child" {
		exit(runChild(os.Args[2]))
	}
	var s settings
	brokers := flag.String("brokers", os.Getenv("KAFKA_ADDR"), "addresses of a Kafka cluster; none is an embedded broker")
	dir := flag.String("dir", "", "where state directories are made; default a temporary one")
	quick := flag.Bool("quick", false, "small sizes, to see that it works; flags that are given win")
	s.define(flag.CommandLine)
	flag.Parse()
	if *quick {
		s.quick(flag.CommandLine)
	}
	exit(drive(s, *brokers, *dir, flag.Args()))
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func (s *settings) define(f *flag.FlagSet) {
	f.Int64Var(&s.records, "records", 8_000_000, "throughput: records of a source")
	f.Int64Var(&s.peerRecords, "peer-records", 1_000_000, "peers: records that Kafka Streams drains")
	f.StringVar(&s.kafkaStreams, "kafka-streams", "", "peers: folder of the jars of Kafka Streams, as scripts/kafka-streams prints it")
	f.Int64Var(&s.lines, "lines", 1_000_000, "throughput: lines whose words are counted")
	f.IntVar(&s.valueSize, "value", 100, "throughput, latency: bytes of a value")
	f.IntVar(&s.pairs, "pairs", 5, "throughput: rounds, of which every second goes backwards; restore: times")
	f.IntVar(&s.workers, "workers", 1, "workers of the application; with more than one, steps of commits are not taken")
	f.DurationVar(&s.commit, "commit", 100*time.Millisecond, "commit interval")
	f.StringVar(&s.only, "only", "", "throughput, latency: workloads to run, with commas between")
	f.StringVar(&s.variants, "variants", "", "throughput: variants to run, with commas between")
	f.BoolVar(&s.warm, "warm", true, "transactions before all runs until they get no faster, on a real broker; throughput, operators: one run of each variant that does not count")
	f.DurationVar(&s.patience, "patience", 5*time.Minute, "how long one run may take")
	f.IntVar(&s.rate, "rate", 1000, "latency: records per second")
	f.IntVar(&s.seconds, "seconds", 20, "latency: how long records are measured")
	f.DurationVar(&s.warmUp, "warmup", 5*time.Second, "latency: how long records flow before that")
	f.Int64Var(&s.stateKeys, "state-keys", 1_000_000, "recovery, restore: rows of the state")
	f.IntVar(&s.stateValue, "state-value", 1000, "recovery, restore: bytes of a row")
	f.IntVar(&s.kills, "kills", 5, "recovery: times")
	f.DurationVar(&s.settle, "settle", 35*time.Second, "recovery: time before the first kill, after which the state is on disk")
	f.DurationVar(&s.gap, "gap", 10*time.Second, "recovery: about the time between a recovery and the next kill")
	f.StringVar(&s.out, "out", "", "directory for results, such as bench/results; none is standard output alone")
	f.StringVar(&s.cpuProfile, "cpuprofile", "", "throughput, latency, operators: prefix of files for the CPU profile of each variant")
	f.StringVar(&s.memProfile, "memprofile", "", "throughput: prefix of files for the allocations of each variant")
}

// quick makes sizes small that were not given.
func (s *settings) quick(f *flag.FlagSet) {
	s.small = true
	given := map[string]bool{}
	f.Visit(func(f *flag.Flag) { given[f.Name] = true })
	for name, value := range map[string]string{
		"records": "100000", "peer-records": "100000", "lines": "20000", "pairs": "2", "warm": "false", "seconds": "2",
		"state-keys": "20000", "kills": "1", "settle": "3s", "gap": "2s",
	} {
		if !given[name] {
			if err := f.Set(name, value); err != nil {
				panic(err) // the values are right
			}
		}
	}
}

// measures are what is measured, by name.
var measures = []string{"latency", "throughput", "operators", "recovery", "restore"}

func drive(s settings, brokers, dir string, names []string) (err error) {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	if len(names) == 0 {
		names = measures
	}
	for _, n := range names {
		if n != "peers" && !slices.Contains(measures, n) {
			return fmt.Errorf("there is nothing to measure named %q: choose of %q and \"peers\"", n, measures)
		}
	}
	state, err := os.MkdirTemp(dir, "semel-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(state)) }()
	b := &bench{settings: s, dir: state, run: fmt.Sprintf("bench-%08x", rand.Uint32()), from: lookAround()}
	if b.c, err = openCluster(ctx, brokers); err != nil {
		return err
	}
	defer b.c.close()
	defer b.cleanUp()
	return b.measure(ctx, names)
}

func (b *bench) measure(ctx context.Context, names []string) error {
	wants := func(name string) bool { return slices.Contains(names, name) }
	if wants("throughput") || wants("operators") || wants("peers") || wants("latency") {
		if err := b.warmUpBroker(ctx); err != nil {
			return fmt.Errorf("warming up: %w", err)
		}
	}
	if wants("latency") { // before gigabytes are deleted, which takes a while after the others
		if err := b.latency(ctx); err != nil {
			return fmt.Errorf("latency: %w", err)
		}
	}
	if wants("throughput") {
		if err := b.throughput(ctx); err != nil {
			return fmt.Errorf("throughput: %w", err)
		}
	}
	if wants("operators") {
		if err := b.operators(ctx); err != nil {
			return fmt.Errorf("operators: %w", err)
		}
	}
	if wants("peers") {
		if err := b.peers(ctx); err != nil {
			return fmt.Errorf("peers: %w", err)
		}
	}
	if wants("recovery") || wants("restore") {
		return b.state(ctx, wants("recovery"), wants("restore"))
	}
	return nil
}

// cleanUp deletes topics, even after an interrupt.
func (b *bench) cleanUp() {
	if b.c.embedded != nil {
		return // all of it goes with the broker
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := b.c.cleanUp(ctx, b.run); err != nil {
		b.say("%v", err)
	}
}
