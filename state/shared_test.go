package state_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/state"
)

func openShared(t *testing.T, e state.Engine) (*state.Shared, *state.SharedReader[string, int64]) {
	t.Helper()
	s, err := state.OpenShared(e, "topic")
	must(t, err)
	r, err := state.ReadShared(s, codec.String, codec.Int64)
	must(t, err)
	return s, r
}

// putRow is a row of key, or its deletion.
func putRow(key string, v int64) state.Row {
	b, _ := codec.Int64.Append(nil, v)
	return state.Row{Key: []byte(key), Value: b, Time: v}
}

func dropRow(key string) state.Row { return state.Row{Key: []byte(key)} }

func applyShared(t *testing.T, s *state.Shared, partition int32, next int64, rows ...state.Row) {
	t.Helper()
	must(t, s.Apply(partition, slices.Values(rows), next))
}

func sharedRows(t *testing.T, rows state.Rows[string, int64]) (out []string) {
	t.Helper()
	for e, err := range rows {
		must(t, err)
		if e.Time.UnixMilli() != e.Value {
			t.Errorf("row %s has time %v", e.Key, e.Time)
		}
		out = append(out, fmt.Sprintf("%s=%d", e.Key, e.Value))
	}
	return out
}

func expectShared(t *testing.T, rows state.Rows[string, int64], want ...string) {
	t.Helper()
	if got := sharedRows(t, rows); !slices.Equal(got, want) {
		t.Errorf("rows are %q, want %q", got, want)
	}
}

func TestASharedTableHasTheLastRowOfEachKeyOfAllPartitions(t *testing.T) {
	s, r := openShared(t, state.NewMemory())
	applyShared(t, s, 0, 10, putRow("a", 1), putRow("b", 2), putRow("a", 3))
	applyShared(t, s, 1, 20, putRow("c", 4), putRow("d", 5), dropRow("c"))
	expectShared(t, r.All(), "a=3", "b=2", "d=5")
	expectShared(t, r.Backward().All(), "d=5", "b=2", "a=3")
	expectShared(t, r.Range("b", "d"), "b=2", "d=5")
	expectShared(t, r.Range("d", "b"))
	expectShared(t, r.From("b"), "b=2", "d=5")
	expectShared(t, r.To("b"), "a=3", "b=2")
	expectShared(t, r.Prefix([]byte("b")), "b=2")
	if n := r.Len(); n != 3 {
		t.Errorf("%d rows, want 3", n)
	}
	for _, n := range []int32{0, 1} {
		if next, ok := s.Position(n); !ok || next != int64(n+1)*10 {
			t.Errorf("the position of %d is %d, %v", n, next, ok)
		}
	}
	if _, ok := s.Position(2); ok {
		t.Error("partition 2 has a position")
	}
}

func TestAReaderSeesARowChangeThatItHasRead(t *testing.T) {
	s, r := openShared(t, state.NewMemory())
	for i, want := range []struct {
		row state.Row
		v   int64
		ok  bool
	}{{dropRow("a"), 0, false}, {putRow("a", 1), 1, true}, {putRow("a", 2), 2, true}, {dropRow("a"), 0, false}, {putRow("a", 3), 3, true}} {
		applyShared(t, s, 0, int64(i+1), want.row)
		for range 2 { // the second time from memory
			if v, _, ok, err := r.Get("a"); err != nil || v != want.v || ok != want.ok {
				t.Errorf("after %d changes: %d, %v, %v; want %d, %v", i+1, v, ok, err, want.v, want.ok)
			}
		}
	}
}

func TestWalksOverManyRowsMissNoneAndRepeatNone(t *testing.T) {
	s, r := openShared(t, state.NewMemory())
	var want []string
	for i := range int64(1000) {
		applyShared(t, s, 0, i+1, putRow(fmt.Sprintf("%04d", i), i))
		want = append(want, fmt.Sprintf("%04d=%d", i, i))
	}
	expectShared(t, r.All(), want...)
	slices.Reverse(want)
	expectShared(t, r.Backward().All(), want...)
}

func TestRowsOfAnotherTopicAreNoRowsOfThisOne(t *testing.T) {
	e := &keptEngine{state.NewMemory()}
	s, _ := openShared(t, e)
	applyShared(t, s, 0, 5, putRow("a", 1))
	must(t, s.Close())
	other, err := state.OpenShared(e, "other")
	must(t, err)
	if n := other.Partitions(); len(n) != 0 {
		t.Errorf("it has partitions %v", n)
	}
	r, err := state.ReadShared(other, codec.String, codec.Int64)
	must(t, err)
	expectShared(t, r.All())
}

// A keptEngine outlives Close.
type keptEngine struct{ state.Engine }

func (keptEngine) Close() error { return nil }

func TestReadersOfOtherTypesAreRefused(t *testing.T) {
	s, _ := openShared(t, state.NewMemory())
	if _, err := state.ReadShared(s, codec.String, codec.String); err == nil {
		t.Error("it can be read as texts")
	}
}

func TestASharedTableThatIsClosedSaysSo(t *testing.T) {
	s, r := openShared(t, state.NewMemory())
	applyShared(t, s, 0, 1, putRow("a", 1))
	must(t, s.Close())
	must(t, s.Close())
	if _, _, _, err := r.Get("a"); !errors.Is(err, state.ErrClosed) {
		t.Errorf("Get gives %v", err)
	}
	for _, err := range r.All() {
		if !errors.Is(err, state.ErrClosed) {
			t.Errorf("All gives %v", err)
		}
	}
}

func TestASmallCacheGivesTheSameRows(t *testing.T) {
	s, r := openShared(t, state.NewMemory())
	r.CacheBytes(1)
	for i := range int64(300) {
		applyShared(t, s, 0, i+1, putRow(fmt.Sprint("k", i%100), i))
		if v, _, ok, err := r.Get(fmt.Sprint("k", (i*7)%100)); err != nil || ok && v%100 != (i*7)%100 {
			t.Fatalf("%d: %d, %v, %v", i, v, ok, err)
		}
	}
}

// The model of a Shared is the topic: rows by partition, in order, of which the
// beginning may be lost.
func TestASharedTableIsItsTopicWhateverHappens(t *testing.T) {
	for seed := range uint64(200) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		e := &keptEngine{state.NewMemory()}
		s, r := openShared(t, e)
		topic := map[int32]map[string]int64{0: {}, 1: {}} // what a fold of the partition gives
		next := map[int32]int64{}
		key := func(p int32) string { return fmt.Sprintf("%d-%d", p, rnd.IntN(8)) } // keys of its own
		for range 60 {
			p := rnd.Int32N(2)
			switch rnd.IntN(6) {
			case 0: // the topic loses rows that this one did not hear of, and is read again
				k := key(p)
				delete(topic[p], k)
				_, known := next[p] // else there is nothing to take away
				must(t, s.Rebuild(p, 0, 1))
				next[p] = 0
				crash := rnd.IntN(2) == 0
				for _, k := range slices.Sorted(maps.Keys(topic[p])) {
					next[p]++
					applyShared(t, s, p, next[p], putRow(k, topic[p][k]))
					if crash {
						must(t, s.Close())
						s, r = openShared(t, e)
						crash = false
					}
				}
				if known && !s.Rebuilding(p) {
					t.Fatalf("seed %d: the rebuild was forgotten", seed)
				}
				must(t, s.Settle(p))
			case 1:
				must(t, s.Close())
				s, r = openShared(t, e)
			case 2:
				k := key(p)
				delete(topic[p], k)
				next[p]++
				applyShared(t, s, p, next[p], dropRow(k))
			default:
				k, v := key(p), rnd.Int64N(1000)
				topic[p][k] = v
				next[p]++
				applyShared(t, s, p, next[p], putRow(k, v))
			}
			var want []string
			for p := range int32(2) {
				for _, k := range slices.Sorted(maps.Keys(topic[p])) {
					want = append(want, fmt.Sprintf("%s=%d", k, topic[p][k]))
					if v, _, ok, err := r.Get(k); !ok || v != topic[p][k] || err != nil {
						t.Fatalf("seed %d: %s is %d, %v, %v, want %d", seed, k, v, ok, err, topic[p][k])
					}
				}
				if at, _ := s.Position(p); at != next[p] {
					t.Fatalf("seed %d: position %d, want %d", seed, at, next[p])
				}
			}
			if got := sharedRows(t, r.All()); !slices.Equal(got, want) {
				t.Fatalf("seed %d: rows %q, want %q", seed, got, want)
			}
		}
	}
}

// A reader that looks while a row changes must not keep the old one.
func TestNoOldRowStaysInTheCacheOfManyReaders(t *testing.T) {
	s, _ := openShared(t, state.NewMemory())
	var wg sync.WaitGroup
	end := make(chan struct{})
	for range 3 {
		r, err := state.SharedOf[string, int64](s)
		must(t, err)
		wg.Go(func() {
			last := int64(0)
			for {
				select {
				case <-end:
					return
				default:
				}
				v, _, _, err := r.Get("a")
				if err != nil || v < last {
					t.Errorf("%d after %d: %v", v, last, err)
					return
				}
				last = v
			}
		})
	}
	r, err := state.SharedOf[string, int64](s)
	must(t, err)
	for i := range int64(3000) {
		applyShared(t, s, 0, i+1, putRow("a", i+1))
		if v, _, _, err := r.Get("a"); err != nil || v != i+1 {
			t.Fatalf("%d was written, %d is read: %v", i+1, v, err)
		}
	}
	close(end)
	wg.Wait()
}

func TestALookUpOfARowInMemoryAllocatesNothing(t *testing.T) {
	s, r := openShared(t, state.NewMemory())
	applyShared(t, s, 0, 1, putRow("a", 1))
	if n := testing.AllocsPerRun(1000, func() {
		_, _, _, _ = r.Get("a")
		_, _, _, _ = r.Get("b")
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestASharedTableOnDiskGoesOnWhereItWas(t *testing.T) {
	dir := t.TempDir()
	open := func() (*state.Shared, *state.SharedReader[string, int64]) {
		e, err := state.OpenPebble(dir, state.PebbleOptions{})
		must(t, err)
		return openShared(t, e)
	}
	s, _ := open()
	applyShared(t, s, 3, 7, putRow("a", 1), putRow("b", 2))
	must(t, s.Touch(99))
	must(t, s.Close())
	s, r := open()
	defer s.Close()
	expectShared(t, r.All(), "a=1", "b=2")
	if next, ok := s.Position(3); next != 7 || !ok || s.Seen(3) != 99 {
		t.Errorf("position %d, %v, seen %d", next, ok, s.Seen(3))
	}
}
