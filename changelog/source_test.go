package changelog

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semelstream/semel/internal/seam"
)

// fetched is what a client delivers of one partition.
func fetched(p int32, err error, offsets ...int64) kgo.Fetches {
	fp := kgo.FetchPartition{Partition: p, Err: err, LastStableOffset: 100}
	for _, o := range offsets {
		fp.Records = append(fp.Records, &kgo.Record{Topic: "log", Partition: p, Offset: o, LeaderEpoch: 3})
	}
	return kgo.Fetches{{Topics: []kgo.FetchTopic{{Topic: "log", Partitions: []kgo.FetchPartition{fp}}}}}
}

// newTestReader reads two partitions of a broker that does not exist.
func newTestReader(t *testing.T) (r *Reader, p, q TP) {
	t.Helper()
	r, err := NewReader(kgo.SeedBrokers("127.0.0.1:1"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	p, q = TP{Topic: "log"}, TP{Topic: "log", Partition: 1}
	r.Assign(p, 10)
	r.Assign(q, 10)
	return r, p, q
}

func TestAReaderMakesBatchesOfWhatIsFetched(t *testing.T) {
	r, p, _ := newTestReader(t)
	got := r.batches(nil, fetched(0, nil, 10, 12)) // a gap is compaction
	if len(got) != 1 || got[0].TP != p || got[0].Next != 13 || got[0].Epoch != 3 || got[0].Stable != 100 || len(got[0].Records) != 2 {
		t.Fatalf("%+v", got)
	}
	if got := r.batches(nil, fetched(7, nil, 13)); len(got) != 0 || r.failure() != nil {
		t.Fatalf("a partition that nobody asked for: %+v", got)
	}
	var pe *seam.PartitionError
	if got := r.batches(nil, fetched(0, nil, 12)); len(got) != 0 {
		t.Fatalf("an offset came again: %+v", got)
	} else if err := r.failure(); !errors.As(err, &pe) || pe.TP != p || !errors.Is(err, ErrDisorder) {
		t.Fatal(err)
	}
}

// An error is told once, after what came with it, and never of a partition
// that is read no more.
func TestAReaderKeepsErrorsForTheNextPoll(t *testing.T) {
	r, p, q := newTestReader(t)
	if got := r.batches(nil, fetched(0, kerr.OffsetOutOfRange, 10)); len(got) != 1 {
		t.Fatalf("%+v", got)
	}
	r.batches(nil, fetched(1, kerr.OffsetOutOfRange))
	r.batches(nil, fetched(7, kerr.OffsetOutOfRange))
	r.batches(nil, kgo.NewErrFetch(context.Canceled)) // of a Poll
	r.Unassign(p)
	var pe *seam.PartitionError
	if _, err := r.Poll(t.Context(), 1, 0); !errors.As(err, &pe) || pe.TP != q || !errors.Is(err, kerr.OffsetOutOfRange) {
		t.Fatal(err)
	}
	if got, err := r.Poll(t.Context(), 1, time.Millisecond); got != nil || err != nil {
		t.Fatalf("%v, %v", got, err)
	}
	r.batches(nil, kgo.NewErrFetch(kgo.ErrClientClosed))
	if err := r.failure(); !errors.Is(err, kgo.ErrClientClosed) || errors.As(err, &pe) {
		t.Fatal(err)
	}
}
