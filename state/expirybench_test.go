package state_test

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/state"
)

// What a record costs in the stores of dedup, sessions and joins of streams, with
// its part of a transaction: a mark, the reads and changes of the operator, the
// walk over what changed, and the commit. 25 records come in a millisecond, as in
// one of four tasks at 100,000 records a second.
const (
	expiryPerMs  = 25
	expiryKeys   = 25_000
	expiryTx     = 50_000
	expiryAhead  = 64
	expiryWarmup = 600_000
)

// A pace feeds records to an operator: ahead sees the next ones before each
// begins, as far as a worker does.
type pace struct {
	d     *state.DB
	ahead func(from int)
	one   func(i int, ms int64) error
}

func (p pace) run(b *testing.B) {
	step := func(i int) {
		if i%expiryAhead == 0 && p.ahead != nil {
			p.ahead(i)
		}
		p.d.Mark()
		if err := p.one(i, int64(1e6+i/expiryPerMs)); err != nil {
			b.Fatal(err)
		}
		if i%expiryTx == expiryTx-1 {
			p.commit(b)
		}
	}
	for i := range expiryWarmup {
		step(i)
	}
	b.ReportAllocs()
	b.ResetTimer()
	begun := cpuTime()
	for i := range b.N {
		step(expiryWarmup + i)
	}
	b.ReportMetric(float64(cpuTime()-begun)/float64(b.N), "cpu-ns/op")
}

func (p pace) commit(b *testing.B) {
	n := 0
	err := p.d.Changes(func(_ *state.Part, key, value []byte, _ int64) error {
		n += len(key) + len(value)
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	p.d.Committed(func(*state.Part) (int64, bool) { return 0, false })
	b.StopTimer()
	if w := p.d.Persist(); w != nil {
		p.d.Persisted(w, w.Commit())
	}
	b.StartTimer()
}

func openExpiry(b *testing.B, specs ...state.Spec) *state.DB {
	d, err := state.Open(state.NewMemory(), state.Options{Stores: specs})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = d.Close() })
	return d
}

// keysOf are user's keys in the order in which records have them.
func keysOf(n int) []string {
	r := rand.New(rand.NewPCG(1, 2))
	all := randomKeys()[:expiryKeys]
	keys := make([]string, n)
	for i := range keys {
		keys[i] = string(all[r.IntN(len(all))])
	}
	return keys
}

// encodeAll encodes them, with the first ones again behind the last.
func encodeAll(keys []string) [][]byte {
	out := make([][]byte, 0, len(keys)+expiryAhead)
	for i := range len(keys) + expiryAhead {
		out = append(out, []byte(keys[i%len(keys)]))
	}
	return out
}

const expiryRing = 1 << 18

func BenchmarkExpiryDedup(b *testing.B) {
	const ttl = 10_000
	d := openExpiry(b, state.Spec{Name: "s", Kind: state.KindWindowOnce})
	s, err := state.OpenWindow(d, "s", codec.String, codec.Int64)
	must(b, err)
	var ids [expiryAhead][8]byte
	var next [][]byte
	ahead := func(from int) {
		next = next[:0]
		for i := range ids {
			binary.BigEndian.PutUint64(ids[i][:], uint64(from+i))
			next = append(next, ids[i][:])
		}
		s.Touch(int64(1e6+from/expiryPerMs)/ttl*ttl, next)
	}
	one := func(i int, ms int64) error {
		k := string(ids[i%expiryAhead][:])
		start := ms - ms%ttl
		s.Expire(max(0, ms-2*ttl+1) / ttl * ttl)
		if _, _, _, err := s.Get(k, start-ttl); err != nil {
			return err
		}
		ref, _, _, _, err := s.Find(k, start)
		if err == nil {
			s.Set(ref, ms, ms)
		}
		return err
	}
	pace{d: d, ahead: ahead, one: one}.run(b)
}

func BenchmarkExpirySessions(b *testing.B) {
	const gap = 500
	d := openExpiry(b, state.Spec{Name: "s", Kind: state.KindSession})
	s, err := state.OpenSession(d, "s", codec.String, codec.Int64)
	must(b, err)
	keys := keysOf(expiryRing)
	enc := encodeAll(keys)
	ahead := func(from int) { s.Touch(enc[from%len(keys):][:expiryAhead]) }
	var rows []state.SessionRow[string, int64]
	one := func(i int, ms int64) (err error) {
		k := keys[i%len(keys)]
		if rows, err = s.AppendOverlapping(rows[:0], k, ms-gap, ms+gap); err != nil {
			return err
		}
		start, n := ms, int64(1)
		for _, r := range rows {
			start, n = min(start, r.Start), n+r.Value
			if r.Start == start && r.End == ms {
				continue
			}
			if err := s.Delete(k, r.Start, r.End, r.End); err != nil {
				return err
			}
		}
		if err := s.Put(k, start, ms, n, ms); err != nil {
			return err
		}
		s.Expire(ms - gap - 1)
		return nil
	}
	pace{d: d, ahead: ahead, one: one}.run(b)
}

func BenchmarkExpiryJoin(b *testing.B) {
	const within = 1000
	d := openExpiry(b, state.Spec{Name: "l", Kind: state.KindWindowByKey}, state.Spec{Name: "r", Kind: state.KindWindowByKey})
	var sides [2]*state.Window[string, string]
	for i, name := range []string{"l", "r"} {
		var err error
		sides[i], err = state.OpenWindow(d, name, codec.String, codec.String)
		must(b, err)
	}
	keys := keysOf(expiryRing)
	enc := encodeAll(keys)
	ahead := func(from int) {
		next := enc[from%len(keys):][:expiryAhead]
		sides[0].Touch(0, next)
		sides[1].Touch(0, next)
	}
	value := string(make([]byte, 100))
	var rows []state.WindowRow[string, string]
	one := func(i int, ms int64) (err error) {
		k := keys[i%len(keys)]
		sides[0].Expire(ms - within - 1)
		sides[1].Expire(ms - within - 1)
		if rows, err = sides[i&1].AppendFetch(rows[:0], k, ms-within, ms+within); err != nil {
			return err
		}
		return sides[i&1^1].Add(k, ms, value, ms)
	}
	pace{d: d, ahead: ahead, one: one}.run(b)
}

// Rows of panes of a second are kept for ten, and each pane is read once, in order,
// when it is over.
func BenchmarkExpiryPanes(b *testing.B) {
	const pane, kept = 1000, 10_000
	d := openExpiry(b, state.Spec{Name: "s", Kind: state.KindWindow})
	s, err := state.OpenWindow(d, "s", codec.String, codec.Int64)
	must(b, err)
	keys := keysOf(expiryRing)
	enc := encodeAll(keys)
	ahead := func(from int) { s.Touch(int64(1e6+from/expiryPerMs)/pane*pane, enc[from%len(keys):][:expiryAhead]) }
	last := int64(0)
	one := func(i int, ms int64) error {
		start := ms / pane * pane
		if start != last {
			for _, err := range s.ByStart(last, last) {
				if err != nil {
					return err
				}
			}
			s.Expire(start - kept)
			last = start
		}
		ref, n, _, _, err := s.Find(keys[i%len(keys)], start)
		if err == nil {
			s.Set(ref, n+1, ms)
		}
		return err
	}
	pace{d: d, ahead: ahead, one: one}.run(b)
}
