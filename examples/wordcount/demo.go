package main

import (
	"context"
	"fmt"
	"time"

	"github.com/semelstream/semel/examples/internal/demo"
)

type demoConfig struct {
	brokers, in string
	kills       int
}

const demoPartitions = 4

// runDemo counts a text in processes that die on the way and compares the
// result with a plain recount.
func runDemo(ctx context.Context, cfg demoConfig) error {
	began := time.Now()
	run, err := demo.Open(ctx, demo.Config{
		Name: "wordcount", Brokers: cfg.brokers, Topics: []string{Lines.Name, Counts.Name}, Inputs: []string{Lines.Name},
		Internal: []string{"counts"}, Partitions: demoPartitions, Processes: 2, Kills: cfg.kills,
	})
	if err != nil {
		return err
	}
	defer run.Close()
	fmt.Println("loading", orStandard(cfg.in), "...")
	text, err := load(ctx, run.Client, cfg.in, demoPartitions)
	if err != nil {
		return err
	}
	fmt.Printf("loaded %d lines, %d words, %d of them different, in %.1f s\n",
		text.lines, text.words, len(text.count), time.Since(began).Seconds())
	if n := text.skipped; n > 0 {
		fmt.Printf("left out %d lines that are too long for a record\n", n)
	}
	took, err := run.Process(ctx)
	if err != nil {
		return err
	}
	return report(ctx, run, text, took, began)
}

func orStandard(in string) string {
	if in == "" {
		return "the source of Go's standard library"
	}
	return in
}
