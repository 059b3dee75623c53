package state_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/state"
)

func openWindow(t testing.TB, e state.Engine, spec state.Spec) (*state.DB, *state.Window[string, string]) {
	t.Helper()
	spec.Name = "w"
	db, err := state.Open(e, state.Options{Stores: []state.Spec{spec}})
	must(t, err)
	t.Cleanup(func() { db.Close() })
	s, err := state.OpenWindow(db, "w", codec.String, codec.String)
	must(t, err)
	return db, s
}

func windows(t testing.TB, rows state.WindowRows[string, string]) string {
	t.Helper()
	var out []string
	for r, err := range rows {
		must(t, err)
		out = append(out, fmt.Sprintf("%s@%d=%s", r.Key, r.Start, r.Value))
	}
	return strings.Join(out, " ")
}

func commitAll(t testing.TB, db *state.DB) {
	t.Helper()
	db.Committed(func(*state.Part) (int64, bool) { return 0, false })
	if w := db.Persist(); w != nil {
		err := w.Commit()
		db.Persisted(w, err)
		must(t, err)
	}
}

func TestRowsOfOneKeyAreNotThoseOfALongerOne(t *testing.T) {
	for _, kind := range []state.Kind{state.KindWindow, state.KindWindowByKey} {
		t.Run(kind.String(), func(t *testing.T) {
			db, s := openWindow(t, state.NewMemory(), state.Spec{Kind: kind, Segment: 10})
			longer := "a" + string([]byte{0, 0, 0, 0, 0, 0, 0, 5}) // as if it were a's window at 5
			for _, k := range []string{"a", longer, "ab", ""} {
				for _, at := range []int64{0, 5, 25} {
					must(t, s.Put(k, at, fmt.Sprint(len(k)), at))
				}
			}
			for range 2 {
				if got := windows(t, s.Fetch("a", 0, 100)); got != "a@0=1 a@5=1 a@25=1" {
					t.Errorf("Fetch: %q", got)
				}
				if got := windows(t, s.Backward().Fetch("a", 1, 25)); got != "a@25=1 a@5=1" {
					t.Errorf("Fetch backward: %q", got)
				}
				if got := windows(t, s.FetchRange("", "a", 5, 5)); got != "@5=0 a@5=1" {
					t.Errorf("FetchRange: %q", got)
				}
				commitAll(t, db)
			}
		})
	}
}

func TestExpiredWindowsAreGone(t *testing.T) {
	for _, kind := range []state.Kind{state.KindWindow, state.KindWindowByKey} {
		t.Run(kind.String(), func(t *testing.T) {
			e := state.NewMemory()
			db, s := openWindow(t, e, state.Spec{Kind: kind, Segment: 10, ByTime: kind == state.KindWindowByKey})
			for at := int64(0); at < 40; at += 5 {
				must(t, s.Put("a", at, "x", at))
			}
			commitAll(t, db)
			persistAll(t, db)
			s.Expire(25)
			if got := windows(t, s.All()); got != "a@25=x a@30=x a@35=x" {
				t.Errorf("All: %q", got)
			}
			if got := windows(t, s.ByStart(0, 30)); got != "a@25=x a@30=x" {
				t.Errorf("ByStart: %q", got)
			}
			ref, _, _, ok, err := s.Find("a", 20)
			if ok || err != nil {
				t.Errorf("an expired row was found: %v", err)
			}
			s.Set(ref, "y", 1)
			db.Undo()
			if got, _, ok, _ := s.Get("a", 20); got != "x" || !ok {
				t.Errorf("after Undo the row is %q, %v", got, ok)
			}
			s.Expire(25)
			commitAll(t, db)
			persistAll(t, db)
			if n := engineRows(t, e); n != map[state.Kind]int{state.KindWindow: 4, state.KindWindowByKey: 8}[kind] {
				t.Errorf("%d rows on the engine", n) // from 20 on
			}
			must(t, db.Rewind())
			if got := windows(t, s.All()); got != "a@25=x a@30=x a@35=x" {
				t.Errorf("All after Rewind: %q", got)
			}
		})
	}
}

// engineRows counts the rows of all stores.
func engineRows(t testing.TB, e state.Engine) (n int) {
	t.Helper()
	it := e.Scan([]byte{1, 0}, nil, false)
	for it.Next() {
		n++
	}
	must(t, it.Close())
	return n
}

func TestRowsThatAreAddedKeepTheirOrder(t *testing.T) {
	db, s := openWindow(t, state.NewMemory(), state.Spec{Kind: state.KindWindowByKey})
	for i := range 3 {
		must(t, s.Add("a", 5, fmt.Sprint(i), 5))
	}
	must(t, s.Add("a", 3, "first", 3))
	if got := windows(t, s.Fetch("a", 0, 10)); got != "a@3=first a@5=0 a@5=1 a@5=2" {
		t.Errorf("Fetch: %q", got)
	}
	var log []state.Row
	must(t, db.Changes(func(_ *state.Part, key, value []byte, time int64) error {
		log = append(log, state.Row{Key: append([]byte{}, key...), Value: append([]byte{}, value...), Time: time})
		return nil
	}))
	db2, s2 := openWindow(t, state.NewMemory(), state.Spec{Kind: state.KindWindowByKey})
	must(t, db2.Part("w").Apply(func(yield func(state.Row) bool) {
		for _, r := range log {
			if !yield(r) {
				return
			}
		}
	}, 4))
	must(t, s2.Add("a", 5, "last", 5))
	if got := windows(t, s2.Fetch("a", 5, 5)); got != "a@5=0 a@5=1 a@5=2 a@5=last" {
		t.Errorf("after a restore: %q", got)
	}
}

func TestFindingAWindowAllocatesNothing(t *testing.T) {
	for _, kind := range []state.Kind{state.KindWindow, state.KindWindowByKey} {
		db, err := state.Open(state.NewMemory(), state.Options{Stores: []state.Spec{{Name: "w", Kind: kind}}})
		must(t, err)
		t.Cleanup(func() { db.Close() })
		s, err := state.OpenWindow(db, "w", codec.String, codec.Int64)
		must(t, err)
		record := func() {
			for _, k := range []string{"a", "b", "a longer key than sixteen bytes"} {
				db.Mark()
				ref, v, at, _, err := s.Find(k, 1_700_000_000_000)
				must(t, err)
				s.Set(ref, v+1, at)
			}
		}
		record()
		if n := testing.AllocsPerRun(100, record); n != 0 {
			t.Errorf("%s: %v allocations in a record's path", kind, n)
		}
	}
}
