package state_test

import (
	"fmt"
	"iter"
	"slices"
	"testing"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/state"
	"pgregory.net/rapid"
)

// checker is a test or a rapid check.
type checker interface {
	Helper()
	Fatalf(format string, args ...any)
}

// nearRig has windows of a few keys with hardly any memory for clean rows.
type nearRig struct {
	t  checker
	e  state.Engine
	db *state.DB
	w  *state.Window[string, string]
}

func newNearRig(t checker, cache int64) *nearRig {
	r := &nearRig{t: t, e: state.NewMemory()}
	r.open(cache)
	return r
}

func (r *nearRig) open(cache int64) {
	var err error
	r.db, err = state.Open(r.e, state.Options{CacheBytes: cache, Stores: []state.Spec{{Name: "w", Kind: state.KindWindowByKey, Segment: 10}}})
	r.must(err)
	r.w, err = state.OpenWindow(r.db, "w", codec.String, codec.String)
	r.must(err)
}

func (r *nearRig) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatalf("%v", err)
	}
}

func (r *nearRig) text(rows state.WindowRows[string, string]) (out []string) {
	r.t.Helper()
	for row, err := range rows {
		r.must(err)
		out = append(out, fmt.Sprintf("%s@%d=%s", row.Key, row.Start, row.Value))
	}
	return out
}

func (r *nearRig) commit() {
	r.db.Committed(func(*state.Part) (int64, bool) { return 0, false })
	if w := r.db.Persist(); w != nil {
		err := w.Commit()
		r.db.Persisted(w, err)
		r.must(err)
	}
}

// same: both ways of reading a key find the same.
func (r *nearRig) same(key string, from, to int64) {
	r.t.Helper()
	rows, err := r.w.AppendFetch(nil, key, from, to)
	r.must(err)
	got := r.text(each(rows))
	if want := r.text(r.w.Fetch(key, from, to)); !slices.Equal(got, want) {
		r.t.Fatalf("AppendFetch(%s, %d, %d) is %s, Fetch %s", key, from, to, got, want)
	}
}

func each[R any](rows []R) iter.Seq2[R, error] {
	return func(yield func(R, error) bool) {
		for _, row := range rows {
			if !yield(row, nil) {
				return
			}
		}
	}
}

func TestRowsThatWereEvictedAreFoundAgain(t *testing.T) {
	r := newNearRig(t, 1)
	r.same("a", 0, 1000) // from now on all rows are known to be in memory
	for at := range int64(50) {
		must(t, r.w.Add("a", at, fmt.Sprint(at), at))
	}
	r.commit()
	must(t, r.w.Add("b", 60, "makes room", 60))
	r.same("a", 0, 1000)
	r.same("a", 49, 49)
	if rows, err := r.w.AppendFetch(nil, "a", 0, 1000); len(rows) != 50 || err != nil {
		t.Errorf("%d rows of 50, %v", len(rows), err)
	}
}

func TestARowFarBehindItsKeysNewestIsFound(t *testing.T) {
	r := newNearRig(t, 1<<20)
	r.same("hot", 0, 9)
	for at := range int64(1000) {
		must(t, r.w.Add("hot", 1000+at, "", at))
	}
	must(t, r.w.Add("hot", 5, "old", 5))
	r.same("hot", 0, 5000)
	r.same("hot", 5, 5)
	r.same("hot", 1990, 5000)
}

func TestRowsOfAnEarlierProcessAreFound(t *testing.T) {
	r := newNearRig(t, 1<<20)
	for at := range int64(30) {
		must(t, r.w.Add("a", at, "", at))
	}
	r.commit()
	r.open(1 << 20)
	for _, at := range []int64{25, 29, 30, 35, 41} {
		must(t, r.w.Put("a", at, "anew", at))
		r.same("a", at, at+10)
		r.same("a", 0, at)
	}
	must(t, r.db.Rewind())
	r.same("a", 0, 100)
}

// Whatever happens to rows, they are found in memory as they are elsewhere.
func TestRowsInMemoryAreAllThereAre(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := newNearRig(t, rapid.SampledFrom([]int64{1, 500, 3000}).Draw(t, "cache"))
		keys := rapid.SampledFrom([]string{"a", "ab", "b"})
		now := int64(0)
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				now += rapid.Int64Range(0, 4).Draw(t, "later")
				r.must(r.w.Add(keys.Draw(t, "key"), max(now-rapid.Int64Range(0, 30).Draw(t, "behind"), 0), "v", now))
			},
			"put": func(t *rapid.T) {
				r.must(r.w.Put(keys.Draw(t, "key"), max(now-rapid.Int64Range(0, 30).Draw(t, "behind"), 0), "w", now))
			},
			"delete": func(t *rapid.T) {
				r.must(r.w.Delete(keys.Draw(t, "key"), max(now-rapid.Int64Range(0, 30).Draw(t, "behind"), 0), now))
			},
			"mark":   func(*rapid.T) { r.db.Mark() },
			"undo":   func(*rapid.T) { r.db.Undo() },
			"expire": func(t *rapid.T) { r.w.Expire(now - rapid.Int64Range(0, 60).Draw(t, "kept")) },
			"commit": func(*rapid.T) { r.commit() },
			"rewind": func(*rapid.T) { r.must(r.db.Rewind()) },
			"reopen": func(t *rapid.T) { r.open(rapid.SampledFrom([]int64{1, 500, 3000}).Draw(t, "cache")) },
			"": func(t *rapid.T) {
				from := now - rapid.Int64Range(0, 40).Draw(t, "from")
				r.same(keys.Draw(t, "key"), from, from+rapid.Int64Range(0, 40).Draw(t, "to"))
			},
		})
	})
}

func TestFindingRowsInMemoryAllocatesNothing(t *testing.T) {
	r := newNearRig(t, 1<<20)
	var rows []state.WindowRow[string, string]
	at := int64(0)
	record := func() {
		at++
		r.db.Mark()
		var err error
		rows, err = r.w.AppendFetch(rows[:0], "a key longer than sixteen", at-5, at+5)
		must(t, err)
	}
	for range 1000 {
		must(t, r.w.Add("a key longer than sixteen", at, "v", at))
		record()
	}
	if n := testing.AllocsPerRun(1000, record); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
