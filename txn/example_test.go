package txn_test

import (
	"bytes"
	"context"
	"fmt"
	"log"
	"time"

	"github.com/semelstream/semel/txn"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
)

// A program that reads one topic and writes another, exactly once.
func Example() {
	cluster := kfake.MustCluster(kfake.SeedTopics(1, "lines", "loud-lines"))
	defer cluster.Close()
	brokers := cluster.ListenAddrs()
	ctx, stop := context.WithTimeout(context.Background(), 30*time.Second)
	defer stop()

	s, err := txn.Open(ctx, txn.Config{
		Group:           "loud",
		TransactionalID: "loud-1", // another process: loud-2
		Brokers:         brokers,
		Topics:          []string{"lines"},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	ended := make(chan error, 1)
	go func() {
		ended <- s.Run(ctx, func(tx *txn.Tx, recs []*kgo.Record) error {
			for _, r := range recs {
				tx.Produce(&kgo.Record{Topic: "loud-lines", Key: r.Key, Value: bytes.ToUpper(r.Value)}, nil)
			}
			return nil
		})
	}()

	say(ctx, brokers, "once", "and only once")
	hear(ctx, brokers, 2)
	stop()
	fmt.Println("ended:", <-ended)
	// Output:
	// ONCE
	// AND ONLY ONCE
	// ended: <nil>
}

// The steps that Run is made of, for a program with a loop of its own.
func ExampleSession_Poll() {
	cluster := kfake.MustCluster(kfake.SeedTopics(1, "lines", "loud-lines"))
	defer cluster.Close()
	brokers := cluster.ListenAddrs()
	ctx, stop := context.WithTimeout(context.Background(), 30*time.Second)
	defer stop()
	say(ctx, brokers, "once")

	s, err := txn.Open(ctx, txn.Config{Group: "loud", TransactionalID: "loud-1", Brokers: brokers, Topics: []string{"lines"}})
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	for committed := false; !committed; {
		recs, err := s.Poll(ctx)
		if err != nil {
			log.Fatal(err)
		}
		tx, err := s.Begin()
		if err != nil {
			log.Fatal(err)
		}
		for _, r := range recs {
			tx.Produce(&kgo.Record{Topic: "loud-lines", Value: bytes.ToUpper(r.Value)}, nil)
			tx.Done(r)
		}
		// False and no error: the same records come out of Poll again.
		if committed, err = tx.Commit(ctx); err != nil {
			log.Fatal(err)
		}
	}
	hear(ctx, brokers, 1)
	// Output:
	// ONCE
}

func say(ctx context.Context, brokers []string, lines ...string) {
	cl, err := kgo.NewClient(kgo.SeedBrokers(brokers...))
	if err != nil {
		log.Fatal(err)
	}
	defer cl.Close()
	for _, line := range lines {
		if err := cl.ProduceSync(ctx, &kgo.Record{Topic: "lines", Value: []byte(line)}).FirstErr(); err != nil {
			log.Fatal(err)
		}
	}
}

func hear(ctx context.Context, brokers []string, n int) {
	cl, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.ConsumeTopics("loud-lines"), kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	if err != nil {
		log.Fatal(err)
	}
	defer cl.Close()
	for n > 0 && ctx.Err() == nil {
		cl.PollFetches(ctx).EachRecord(func(r *kgo.Record) {
			fmt.Println(string(r.Value))
			n--
		})
	}
}
