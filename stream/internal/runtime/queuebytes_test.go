package runtime_test

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/internal/seam"
	"github.com/semelstream/semel/stream"
	"github.com/semelstream/semel/stream/internal/bridge"
	"github.com/semelstream/semel/stream/internal/model"
	"github.com/semelstream/semel/stream/internal/runtime"
)

// A backlog is what was polled and is not processed, in bytes.
type backlog struct{ now, most int }

type meteredBroker struct {
	seam.Broker
	b *backlog
}

func (m meteredBroker) Txn(ctx context.Context, id string) (seam.Txn, error) {
	t, err := m.Broker.Txn(ctx, id)
	return meteredTxn{t, m.b}, err
}

type meteredTxn struct {
	seam.Txn
	b *backlog
}

func (m meteredTxn) Poll(ctx context.Context, records int, wait time.Duration) ([]seam.Batch, error) {
	batches, err := m.Txn.Poll(ctx, records, wait)
	for _, b := range batches {
		m.b.now += b.Bytes
		m.b.most = max(m.b.most, m.b.now)
	}
	return batches, err
}

// Large records are few, and yet memory must have room for what is queued of them.
func TestInputsAreHeldBackByTheirBytes(t *testing.T) {
	const records, size, polled, queue = 500, 1000, 10, 20_000
	for _, c := range []struct {
		name   string
		inputs []string
		idle   time.Duration
	}{
		{"more is polled than processed", []string{"a"}, 0},
		{"an input waits for another one", []string{"a", "b"}, 10 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := model.New(model.Config{Seed: 1})
			t.Cleanup(w.Stop)
			for _, name := range c.inputs {
				w.CreateTopic(name, 1, nil)
			}
			for range records {
				if _, err := w.Produce(seam.TP{Topic: "a"}, nil, bytes.Repeat([]byte("x"), size), time.Time{}); err != nil {
					t.Fatal(err)
				}
			}
			b, n := &backlog{}, 0
			topology, err := stream.Build(func(build *stream.Builder) {
				var all stream.Stream[string, []byte]
				for i, name := range c.inputs {
					s := build.Stream(stream.NewTopic(name, codec.String, codec.Bytes))
					if i == 0 {
						all = s
					} else {
						all = all.Merge(s)
					}
				}
				all.ForEach(func(_ string, v []byte) error { b.now -= len(v); n++; return nil })
			})
			if err != nil {
				t.Fatal(err)
			}
			w.Start("one", func(env seam.Env, disk *model.Disk) error {
				env.Broker = meteredBroker{env.Broker, b}
				return runtime.New(runtime.Env{Env: env, Stores: diskStores{disk}}, bridge.Program(topology, simApp), runtime.Config{
					App: simApp, Instance: "one", MaxIdle: c.idle, PollRecords: polled, QueueBytes: queue, Step: polled / 2,
				}).Run(context.Background())
			})
			if !w.RunUntil(func() bool { return n == records }, time.Minute) {
				t.Fatalf("%d records were processed", n)
			}
			if limit := queue + polled*size; b.most > limit || b.most < queue {
				t.Errorf("%d bytes were queued, want %d to %d", b.most, queue, limit)
			}
		})
	}
}
