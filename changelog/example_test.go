package changelog_test

import (
	"context"
	"fmt"
	"log"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semelstream/semel/changelog"
)

// Prices is a map that a compacted topic fills.
type Prices struct {
	rows map[string]string
	next int64
}

func (p *Prices) Position() int64 { return p.next }

func (p *Prices) Reset() error {
	p.rows, p.next = map[string]string{}, 0
	return nil
}

func (p *Prices) Apply(recs []*kgo.Record, next int64) error {
	for _, r := range recs {
		if r.Value == nil {
			delete(p.rows, string(r.Key))
			continue
		}
		p.rows[string(r.Key)] = string(r.Value)
	}
	p.next = next
	return nil
}

// A map is restored from a compacted topic, and later brought up to date from
// where it stands.
func Example() {
	cluster := kfake.MustCluster()
	defer cluster.Close()
	spec := changelog.Spec("shop", "prices", 1, -1, nil)
	if err := cluster.CreateTopic(spec.Name, spec.Partitions, spec.Config); err != nil {
		log.Fatal(err)
	}
	brokers := kgo.SeedBrokers(cluster.ListenAddrs()...)
	ctx, stop := context.WithTimeout(context.Background(), 30*time.Second)
	defer stop()
	put(ctx, brokers, spec.Name, "apple", "3", "pear", "4", "apple", "2")

	r, err := changelog.NewReader(brokers)
	if err != nil {
		log.Fatal(err)
	}
	defer r.Close()
	prices := &Prices{}
	targets := map[changelog.TP]changelog.Target{{Topic: spec.Name}: prices}
	if err := changelog.Restore(ctx, r, targets); err != nil {
		log.Fatal(err)
	}
	prices.print()

	put(ctx, brokers, spec.Name, "pear", "", "plum", "9") // no more pears
	if err := changelog.Restore(ctx, r, targets); err != nil {
		log.Fatal(err)
	}
	prices.print()
	// Output:
	// apple costs 2; pear costs 4; up to offset 3
	// apple costs 2; plum costs 9; up to offset 5
}

// put writes keys and values; an empty value deletes.
func put(ctx context.Context, brokers kgo.Opt, topic string, keysAndValues ...string) {
	cl, err := kgo.NewClient(brokers, kgo.DefaultProduceTopic(topic))
	if err != nil {
		log.Fatal(err)
	}
	defer cl.Close()
	for kv := range slices.Chunk(keysAndValues, 2) {
		r := &kgo.Record{Key: []byte(kv[0]), Value: []byte(kv[1])}
		if kv[1] == "" {
			r.Value = nil
		}
		if err := cl.ProduceSync(ctx, r).FirstErr(); err != nil {
			log.Fatal(err)
		}
	}
}

func (p *Prices) print() {
	for _, k := range slices.Sorted(maps.Keys(p.rows)) {
		fmt.Printf("%s costs %s; ", k, p.rows[k])
	}
	fmt.Println("up to offset", p.next)
}
