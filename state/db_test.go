package state_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/state"
)

// KAFKA-18326: a tombstone in the cache hid the row behind its own.
func TestATombstoneInTheOverlayHidesExactlyItsOwnKey(t *testing.T) {
	r := newRig(t, state.NewMemory(), state.Options{})
	r.do("a=1", "b=1", "c=1", "d=1")
	r.commit()
	r.persist()
	r.do("-b", "-a")
	r.want("c=1 d=1")
	if got := list(t, r.s.Backward().All()); got != "d=1 c=1" {
		t.Errorf("backward: %q", got)
	}
	r.do("b=2", "-d")
	r.want("b=2 c=1")
	if got := list(t, r.s.Backward().Range("a", "d")); got != "c=1 b=2" {
		t.Errorf("backward: %q", got)
	}
}

func TestUndoTakesBackSeveralChangesOfAKey(t *testing.T) {
	r := newRig(t, state.NewMemory(), state.Options{})
	r.do("a=1", "b=1")
	r.db.Mark()
	r.do("a=2", "a=3", "-a", "a=4", "c=1", "-b", "c=2")
	r.db.Undo()
	r.want("a=1 b=1")
	r.do("a=5")
	r.db.Undo()
	r.db.Undo()
	r.want("a=1 b=1")
	r.commit()
	if len(r.log) != 2 {
		t.Errorf("%d changelog records, want 2", len(r.log))
	}
	r.do("a=6", "-b")
	r.db.Undo() // the transaction begins with a mark
	r.want("a=1 b=1")
	r.commit()
	if len(r.log) != 2 {
		t.Errorf("an undone transaction wrote %d records", len(r.log)-2)
	}
}

func TestAnUndoneChangeLeavesNoTraceInTheTransaction(t *testing.T) {
	r := newRig(t, state.NewMemory(), state.Options{})
	r.do("a=1")
	r.commit()
	r.persist()
	r.db.Mark()
	r.do("a=2", "b=2")
	r.db.Undo()
	must(t, r.s.Changed(func(c state.Changed[string, string]) error {
		t.Errorf("changed: %+v", c)
		return nil
	}))
	if n := r.db.DirtyBytes(); n != 0 {
		t.Errorf("%d dirty bytes", n)
	}
}

func TestARowThatCameAndWentIsNoChange(t *testing.T) {
	r := newRig(t, state.NewMemory(), state.Options{})
	r.do("a=1", "-a", "b=1", "-never")
	r.commit()
	if len(r.log) != 1 || string(r.log[0].Key) != "b" {
		t.Errorf("changelog: %v", r.log)
	}
}

func TestAnEmptyValueIsNotADeletion(t *testing.T) {
	e := state.NewMemory()
	r := newRig(t, e, state.Options{})
	r.do("a=")
	r.commit()
	if len(r.log) != 1 || r.log[0].Value == nil {
		t.Fatalf("changelog: %v", r.log)
	}
	r.persist()
	wantStored(t, e, "a=", 1)
}

func TestPutTakesACopyOfWhatTheCodecAliases(t *testing.T) {
	db, err := state.Open(state.NewMemory(), state.Options{Stores: []state.Spec{{Name: "s"}}})
	must(t, err)
	defer db.Close()
	s, err := state.OpenKV(db, "s", codec.Bytes, codec.Bytes)
	must(t, err)
	key, value := []byte("key"), []byte("value")
	must(t, s.Put(key, value, 1))
	copy(key, "xxx")
	copy(value, "xxxxx")
	got, _, ok, err := s.Get([]byte("key"))
	if string(got) != "value" || !ok || err != nil {
		t.Errorf("got %q, %v, %v", got, ok, err)
	}
}

func TestStoresKeepTheirRowsWhenOthersComeAndGo(t *testing.T) {
	e := borrowed{state.NewMemory()}
	put := func(value string, names ...string) {
		var specs []state.Spec
		for _, n := range names {
			specs = append(specs, state.Spec{Name: n})
		}
		db, err := state.Open(e, state.Options{Stores: specs})
		must(t, err)
		defer db.Close()
		for _, n := range names {
			s, err := state.OpenKV(db, n, codec.String, codec.String)
			must(t, err)
			if v, _, ok, err := s.Get("k"); err != nil || ok && v != n {
				t.Errorf("%s has %q, %v", n, v, err)
			}
			must(t, s.Put("k", n, 1))
		}
		db.Committed(func(p *state.Part) (int64, bool) { return 7, true })
		w := db.Persist()
		db.Persisted(w, w.Commit())
	}
	put("1", "a", "b")
	put("2", "c", "b")
	put("3", "b", "a", "d", "c")
	put("4", "d")
}

func TestMisuseOfStoresIsRefused(t *testing.T) {
	if _, err := state.Open(state.NewMemory(), state.Options{Stores: []state.Spec{{Name: "s"}, {Name: "s"}}}); err == nil {
		t.Error("a store that is there twice was opened")
	}
	if _, err := state.Open(state.NewMemory(), state.Options{Stores: []state.Spec{{Name: "s", Kind: 99}}}); err == nil {
		t.Error("a store of an unknown kind was opened")
	}
	r := newRig(t, state.NewMemory(), state.Options{})
	if _, err := state.OpenKV(r.db, "other", codec.String, codec.String); err == nil {
		t.Error("a store that is not in the task was opened")
	}
	if _, err := state.OpenKV(r.db, "s", codec.String, codec.Int64); err == nil {
		t.Error("a store was opened with two types")
	}
	if again, err := state.OpenKV(r.db, "s", codec.String, codec.String); again != r.s || err != nil {
		t.Error("a store opened again is another one")
	}
	defer func() {
		if recover() == nil {
			t.Error("restoring over open changes was let through")
		}
	}()
	r.do("a=1")
	_ = r.db.Part("s").Apply(slices.Values([]state.Row{}), 5)
}

func TestAClosedDBRefusesReads(t *testing.T) {
	r := newRig(t, state.NewMemory(), state.Options{})
	must(t, r.db.Close())
	must(t, r.db.Close())
	if _, _, _, err := r.s.Get("a"); !errors.Is(err, state.ErrClosed) {
		t.Errorf("Get: %v", err)
	}
	if _, _, _, err := r.s.View().Get("a"); !errors.Is(err, state.ErrClosed) {
		t.Errorf("View.Get: %v", err)
	}
	for _, err := range r.s.View().All() {
		if !errors.Is(err, state.ErrClosed) {
			t.Errorf("View.All: %v", err)
		}
	}
	if err := r.db.Rewind(); !errors.Is(err, state.ErrClosed) {
		t.Errorf("Rewind: %v", err)
	}
}

// A codec that fails must not cost committed rows.
func TestAValueThatCannotBeEncodedStopsTheChanges(t *testing.T) {
	bad := errors.New("bad value")
	c := codec.Func(func(dst []byte, v int) ([]byte, error) {
		if v < 0 {
			return dst, bad
		}
		return append(dst, byte(v)), nil
	}, func(src []byte) (int, error) { return int(src[0]), nil })
	db, err := state.Open(state.NewMemory(), state.Options{Stores: []state.Spec{{Name: "s"}}})
	must(t, err)
	defer db.Close()
	s, err := state.OpenKV(db, "s", codec.String, c)
	must(t, err)
	must(t, s.Put("a", -1, 1))
	err = db.Changes(func(*state.Part, []byte, []byte, int64) error { return nil })
	if !errors.Is(err, bad) || !strings.Contains(err.Error(), `"s"`) {
		t.Errorf("Changes: %v", err)
	}
	db.Committed(func(*state.Part) (int64, bool) { return 1, true }) // a caller that does not care
	w := db.Persist()
	err = w.Commit()
	if !errors.Is(err, bad) {
		t.Errorf("Commit: %v", err)
	}
	db.Persisted(w, err)
	if db.Part("s").Position() != 0 || db.PendingBytes() == 0 {
		t.Error("a row that could not be encoded counts as stored")
	}
	must(t, s.Put("a", 1, 1))
	db.Committed(func(*state.Part) (int64, bool) { return 2, true })
	w = db.Persist()
	err = w.Commit()
	must(t, err)
	db.Persisted(w, err)
	if db.Part("s").Position() != 2 {
		t.Error("the row's next value was not stored")
	}
}

func TestTheHotPathAllocatesNothing(t *testing.T) {
	db, err := state.Open(state.NewMemory(), state.Options{Stores: []state.Spec{{Name: "s"}}})
	must(t, err)
	defer db.Close()
	s, err := state.OpenKV(db, "s", codec.String, codec.Int64)
	must(t, err)
	keys := []string{"a", "b", "a longer key than sixteen bytes"}
	record := func() {
		for _, k := range keys {
			db.Mark()
			ref, v, at, _, err := s.Find(k)
			must(t, err)
			s.Set(ref, v+1, at)
		}
	}
	record()
	if n := testing.AllocsPerRun(100, record); n != 0 {
		t.Errorf("%v allocations in a record's path", n)
	}
	commit := func() {
		record()
		must(t, db.Changes(func(*state.Part, []byte, []byte, int64) error { return nil }))
		db.Committed(func(p *state.Part) (int64, bool) { return p.CommittedPosition() + 1, true })
	}
	commit()
	if n := testing.AllocsPerRun(100, commit); n > 2 { // the functions given to the stores
		t.Errorf("%v allocations in a commit", n)
	}
}
