package runtime

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semelstream/semel/internal/seam"
)

// A returned is a pool that counts what comes back.
type returned struct{ records int }

func (p *returned) GetRecords(n int) []kgo.Record { return make([]kgo.Record, n) }
func (p *returned) PutRecords(s []kgo.Record)     { p.records += len(s) }

func TestAnInputGivesBackTheRecordsThatItHasMovedPast(t *testing.T) {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "in"))
	if err != nil {
		t.Fatal(err)
	}
	defer cluster.Close()
	pool := &returned{}
	cl, err := kgo.NewClient(kgo.SeedBrokers(cluster.ListenAddrs()...), kgo.ConsumeTopics("in"), kgo.WithPools(pool))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	const n = 10
	for range n {
		cl.Produce(t.Context(), &kgo.Record{Topic: "in", Value: []byte("v")}, nil)
	}
	if err := cl.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	in := &input{}
	for in.queued < n {
		in.add(seam.Batch{Records: cl.PollRecords(t.Context(), n).Records()})
	}
	for i := range n {
		if r := in.peek(); r.Offset != int64(i) || string(r.Value) != "v" {
			t.Fatalf("record %d is %+v", i, r)
		}
		in.pop()
	}
	if pool.records != n {
		t.Errorf("%d records of %d came back", pool.records, n)
	}
}
