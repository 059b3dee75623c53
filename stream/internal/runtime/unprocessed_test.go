package runtime_test

import (
	"context"
	"maps"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semelstream/semel/internal/seam"
	"github.com/semelstream/semel/stream/internal/model"
	"github.com/semelstream/semel/stream/internal/runtime"
)

// Of each partition: what is written, where the group stands, and the first
// record that it has not processed, -1 if there is none.
func TestAMarkerBehindTheCommittedOffsetIsNotUnprocessed(t *testing.T) {
	type part struct {
		commits []bool // transactions of one record each, and how they end
		done    int64  // committed offset; -1 is none
		want    int64
	}
	parts := []part{
		{commits: []bool{true}, done: 1, want: -1},          // a marker follows
		{commits: []bool{true}, done: 0, want: 0},           //
		{commits: []bool{true, false}, done: 2, want: -1},   // an aborted record and markers follow
		{commits: []bool{true, true}, done: 1, want: 2},     // a marker, then a record
		{commits: []bool{true, false}, done: -1, want: 0},   // never committed
		{commits: []bool{false, false}, done: -1, want: -1}, // nothing was
		{done: -1, want: -1},
	}
	w := model.New(model.Config{Seed: 1})
	defer w.Stop()
	w.CreateTopic("t", int32(len(parts)), nil)
	var got map[seam.TP]int64
	p := w.Start("one", func(env seam.Env, _ *model.Disk) error {
		ctx := context.Background()
		for i, part := range parts {
			tp := seam.TP{Topic: "t", Partition: int32(i)}
			for _, commit := range part.commits {
				if err := writeOne(ctx, env.Broker, tp, commit); err != nil {
					return err
				}
			}
			if part.done >= 0 {
				w.Commit("app", tp, part.done)
			}
		}
		for w.End(seam.TP{Topic: "t", Partition: 3}) < 4 { // markers are written later
			if err := env.Clock.Sleep(ctx, time.Millisecond); err != nil {
				return err
			}
		}
		var err error
		got, err = runtime.Unprocessed(ctx, env.Broker, "app", "t", "gone")
		return err
	})
	if !w.RunUntil(func() bool { return !p.Alive() }, time.Minute) || p.Err() != nil {
		t.Fatal(p.Err())
	}
	want := map[seam.TP]int64{}
	for i, part := range parts {
		if part.want >= 0 {
			want[seam.TP{Topic: "t", Partition: int32(i)}] = part.want
		}
	}
	if !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// writeOne is a transaction of one record.
func writeOne(ctx context.Context, b seam.Broker, tp seam.TP, commit bool) error {
	x, err := b.Txn(ctx, "writer")
	if err != nil {
		return err
	}
	defer x.Close()
	if err := x.Add(ctx, []seam.TP{tp}); err != nil {
		return err
	}
	x.Produce([]*kgo.Record{{Topic: tp.Topic, Partition: tp.Partition, Value: []byte("v")}})
	if err := x.Prepare(ctx, seam.Member{}, nil); err != nil {
		return err
	}
	return x.End(ctx, commit)
}
