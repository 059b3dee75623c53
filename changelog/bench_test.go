package changelog_test

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semelstream/semel/changelog"
	"github.com/semelstream/semel/internal/seam"
	"github.com/semelstream/semel/state"
)

// An endless source has records of 1 KB with random keys of 16 B, in batches
// of a fetch's size.
type endless struct {
	*fakeSource
	values [][]byte
	recs   []kgo.Record
	batch  []*kgo.Record
	next   int64
}

func newEndless() *endless {
	const n = 4000
	s := &endless{fakeSource: newSource(), recs: make([]kgo.Record, n), batch: make([]*kgo.Record, n)}
	rnd := rand.NewChaCha8([32]byte{1})
	for range 64 { // what does not compress
		v := make([]byte, 1000)
		rnd.Read(v)
		s.values = append(s.values, v)
	}
	return s
}

func (s *endless) Poll(_ context.Context, max int, _ time.Duration) ([]seam.Batch, error) {
	for i := range s.recs {
		key := make([]byte, 16)
		binary.BigEndian.PutUint64(key, rand.Uint64())
		binary.BigEndian.PutUint64(key[8:], uint64(s.next))
		s.recs[i] = kgo.Record{Offset: s.next, Key: key, Value: s.values[s.next%64], Timestamp: time.UnixMilli(s.next)}
		s.batch[i] = &s.recs[i]
		s.next++
	}
	return []seam.Batch{{TP: tp0, Records: s.batch, Next: s.next}}, nil
}

// A restore into a state store on disk, without Kafka: b.N records.
func BenchmarkRestore(b *testing.B) {
	e, err := state.OpenPebble(b.TempDir(), state.PebbleOptions{})
	if err != nil {
		b.Fatal(err)
	}
	to := open(b, e)
	s := newEndless()
	r := changelog.NewRestorer(s)
	j := job(to, 0, int64(b.N))
	j.Done = func(err error) {
		if err != nil {
			b.Fatal(err)
		}
	}
	b.SetBytes(1016)
	b.ReportAllocs()
	b.ResetTimer()
	r.Add(j)
	if err := r.Run(b.Context()); err != nil {
		b.Fatal(err)
	}
	if err := to.db.Flush(); err != nil {
		b.Fatal(err)
	}
	b.StopTimer()
	if err := to.db.Close(); err != nil {
		b.Fatal(err)
	}
}
