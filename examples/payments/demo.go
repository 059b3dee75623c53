package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semelstream/semel/examples/internal/demo"
	"github.com/semelstream/semel/stream"
)

type demoConfig struct {
	brokers                   string
	payments, accounts, kills int
	seed                      uint64
}

const demoPartitions = 4

// runDemo does random payments in processes that die on the way, then judges
// the ledger.
func runDemo(ctx context.Context, cfg demoConfig) error {
	if cfg.accounts < 2 || cfg.payments < 1 {
		return errors.New("the demo needs two accounts and one payment at least")
	}
	began := time.Now()
	run, err := demo.Open(ctx, demo.Config{
		Name: "payments", Brokers: cfg.brokers, Topics: []string{Deposits.Name, Payments.Name, Ledger.Name, Refused.Name},
		Inputs: []string{Deposits.Name, Payments.Name}, Internal: []string{"credits"},
		Partitions: demoPartitions, Processes: 2, Kills: cfg.kills,
	})
	if err != nil {
		return err
	}
	defer run.Close()
	m := newMarket(cfg.seed, cfg.accounts, cfg.payments, opening/50)
	if err := send(ctx, run.Client, m); err != nil {
		return err
	}
	fmt.Printf("sent %d payments and %d deposits, some twice, among %d accounts with %s in all; -seed %d\n",
		len(m.payments), len(m.deposits), cfg.accounts, money(m.total), cfg.seed)
	took, err := run.Process(ctx)
	if err != nil {
		return err
	}
	j := newJudge(m)
	if err := readAll(ctx, run, j); err != nil {
		return err
	}
	faults := j.verdict()
	fmt.Printf("did %d payments and refused %d in %.1f s: %.0f payments/s\n",
		j.done, j.refused, took.Seconds(), float64(len(m.payments))/took.Seconds())
	fmt.Println(run.Totals())
	fmt.Printf("%.1f s in all\n", time.Since(began).Seconds())
	if len(faults) > 0 {
		for _, f := range faults[:min(len(faults), 20)] {
			fmt.Println(" ", f)
		}
		return fmt.Errorf("%w: %d faults", demo.ErrNotExact, len(faults))
	}
	fmt.Printf("exact: %s in the accounts, none made or lost; every payment done once or refused once\n", money(j.sum()))
	return nil
}

// money is an amount for people.
func money(cents int64) string { return fmt.Sprintf("%d.%02d", cents/100, cents%100) }

// send sends what the market wants, in its order.
func send(ctx context.Context, cl *kgo.Client, m *market) error {
	var failed error
	done := func(_ *kgo.Record, err error) {
		if err != nil && failed == nil {
			failed = err
		}
	}
	at := time.Now()
	for _, d := range m.depositsSent {
		sendTo(ctx, cl, Deposits, d.account, d.Deposit, at, done)
	}
	for i, p := range m.paymentsSent {
		sendTo(ctx, cl, Payments, p.payer, p.Payment, at.Add(time.Duration(i+1)*time.Millisecond), done)
	}
	if err := cl.Flush(ctx); err != nil {
		return fmt.Errorf("sending payments: %w", err)
	}
	return failed
}

func sendTo[V any](ctx context.Context, cl *kgo.Client, t stream.Topic[string, V], key string, value V, at time.Time, done func(*kgo.Record, error)) {
	recs, err := t.Encode(stream.Record[string, V]{Key: key, Value: value, Time: at}, demoPartitions)
	if err != nil {
		done(nil, err)
	}
	for _, r := range recs {
		cl.Produce(ctx, r, done)
	}
}

// readAll gives the judge what was committed.
func readAll(ctx context.Context, run *demo.Run, j *judge) error {
	var failed error
	err := run.Read(ctx, Ledger.Name, func(k *kgo.Record) {
		r, err := Ledger.Decode(k)
		failed = errors.Join(failed, err)
		j.entry(r.Key, r.Value)
	})
	if err == nil {
		err = run.Read(ctx, Refused.Name, func(k *kgo.Record) {
			r, err := Refused.Decode(k)
			failed = errors.Join(failed, err)
			j.refusal(r.Key, r.Value)
		})
	}
	return errors.Join(err, failed)
}
