package state_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/semelstream/semel/state"
)

// frozen is a rig whose first transaction is stored, and whose second one is
// closing: it changed a, deleted b, made c, and made and deleted d.
func frozen(t *testing.T) (*rig, state.Engine) {
	t.Helper()
	e := state.NewMemory()
	r := newRig(t, e, state.Options{})
	r.do("a=1", "b=1")
	r.commit()
	r.persist()
	r.do("a=2", "-b", "c=2", "d=2", "-d")
	r.freeze()
	return r, e
}

// freeze writes the changes to the changelog and leaves open whether they are
// committed.
func (r *rig) freeze() {
	r.t.Helper()
	r.logChanges()
	r.db.Freeze()
}

// end says that the closing transaction is committed.
func (r *rig) end() {
	r.db.Committed(func(*state.Part) (int64, bool) { return int64(len(r.log)), true })
}

func (r *rig) wantCommitted(rows string) {
	r.t.Helper()
	v := r.s.View()
	if got := list(r.t, v.All()); got != rows {
		r.t.Errorf("committed rows are %q, want %q", got, rows)
	}
	n, err := v.Len()
	must(r.t, err)
	if want := int64(len(strings.Fields(rows))); n != want {
		r.t.Errorf("a view says it has %d rows, want %d", n, want)
	}
}

func (r *rig) changed() (out []string) {
	r.t.Helper()
	must(r.t, r.s.Changed(func(c state.Changed[string, string]) error {
		out = append(out, fmt.Sprintf("%s: %s %v, %s %v", c.Key, c.Old, c.OldOK, c.New, c.OK))
		return nil
	}))
	return out
}

func TestAClosingTransactionIsSeenAndIsNotCommitted(t *testing.T) {
	r, e := frozen(t)
	r.want("a=2 c=2")
	r.wantCommitted("a=1 b=1")
	if n := r.db.DirtyBytes(); n != 0 {
		t.Errorf("%d dirty bytes in the transaction that has just begun", n)
	}
	r.do("a=3", "-c", "b=3", "d=3")
	r.wantCommitted("a=1 b=1")
	if w := r.db.Persist(); w != nil {
		t.Error("what is not committed is stored")
	}
	if got, want := fmt.Sprint(r.changed()), "[a: 2 true, 3 true c: 2 true,  false b:  false, 3 true d:  false, 3 true]"; got != want {
		t.Errorf("the open transaction changed %s, want %s", got, want)
	}
	wantStored(t, e, "a=1 b=1", 2)
}

func TestUndoDoesNotReachIntoTheClosingTransaction(t *testing.T) {
	r, _ := frozen(t)
	r.db.Undo()
	r.want("a=2 c=2")
	r.do("a=3", "-c", "b=3")
	r.db.Undo()
	r.want("a=2 c=2")
	if got := r.changed(); len(got) != 0 {
		t.Errorf("an undone transaction changed %q", got)
	}
	r.do("c=4")
	r.end()
	r.db.Undo()
	r.want("a=2 c=2")
}

// The rows that are committed are those of the closing transaction, whatever
// the open one has made of them since.
func TestTheClosingTransactionCommitsItsOwnRows(t *testing.T) {
	r, e := frozen(t)
	r.db.Mark()
	r.do("a=3", "-c", "b=3", "d=3")
	r.end()
	r.wantCommitted("a=2 c=2")
	r.want("a=3 b=3 d=3")
	r.persist()
	wantStored(t, e, "a=2 c=2", 5)
	r.wantCommitted("a=2 c=2")
	r.commit()
	r.persist()
	wantStored(t, e, "a=3 b=3 d=3", 9)
}

func TestRewindTakesBackTheClosingTransactionAndTheOpenOne(t *testing.T) {
	r, _ := frozen(t)
	r.do("a=3", "-c", "e=3")
	must(t, r.db.Rewind())
	r.want("a=1 b=1")
	r.wantCommitted("a=1 b=1")
	r.log = r.log[:2] // it was aborted
	r.do("a=4")
	r.commit()
	r.want("a=4 b=1")
}

func TestNumbersAreCommittedAsTheyWereWhenTheirTransactionClosed(t *testing.T) {
	e := borrowed{state.NewMemory()}
	r := newRig(t, e, state.Options{})
	r.db.SetMeta("time", 1)
	r.freeze()
	r.db.SetMeta("time", 2)
	r.db.SetMeta("other", 2)
	r.end()
	r.persist()
	if got := r.db.Meta(); !maps.Equal(got, map[string]int64{"time": 2, "other": 2}) {
		t.Errorf("the open transaction has %v", got)
	}
	must(t, r.db.Rewind())
	if got := r.db.Meta(); !maps.Equal(got, map[string]int64{"time": 1}) {
		t.Errorf("%v was stored", got)
	}
}

// A row is changed in two transactions while an older one of it is being
// written: only when nothing is left of it may it be forgotten.
func TestARowThatIsWrittenWhileItClosesIsKept(t *testing.T) {
	e := state.NewMemory()
	r := newRig(t, e, state.Options{CacheBytes: 1})
	r.do("a=1", "b=1")
	r.commit()
	w := r.db.Persist()
	r.do("a=2")
	r.freeze()
	r.do("b=3")
	must(t, w.Commit())
	r.db.Persisted(w, nil)
	r.do("x=0", "y=0", "z=0") // there is no room for clean rows
	r.want("a=2 b=3 x=0 y=0 z=0")
	r.end()
	r.wantCommitted("a=2 b=1")
	r.persist()
	wantStored(t, e, "a=2 b=1", 3)
	r.commit()
	r.persist()
	wantStored(t, e, "a=2 b=3 x=0 y=0 z=0", 7)
	must(t, r.db.Close()) // which counts the bytes
}

func TestOneTransactionClosesAtATime(t *testing.T) {
	r, _ := frozen(t)
	defer func() {
		if recover() == nil {
			t.Error("a second transaction was frozen before the first one ended")
		}
	}()
	r.db.Freeze()
}

func TestABoundIsCommittedAsItWasWhenItsTransactionClosed(t *testing.T) {
	db, s := openWindow(t, state.NewMemory(), state.Spec{Kind: state.KindWindow})
	for _, at := range []int64{10, 20, 30} {
		must(t, s.Put("a", at, "1", at))
	}
	commitAll(t, db)
	want := func(open, committed string) {
		t.Helper()
		if got := windows(t, s.All()); got != open {
			t.Errorf("the open transaction sees %q, want %q", got, open)
		}
		if got := windows(t, s.View().All()); got != committed {
			t.Errorf("a view sees %q, want %q", got, committed)
		}
	}
	s.Expire(15)
	db.Freeze()
	s.Expire(25)
	want("a@30=1", "a@10=1 a@20=1 a@30=1")
	db.Undo()
	want("a@20=1 a@30=1", "a@10=1 a@20=1 a@30=1")
	s.Expire(25)
	commitAll(t, db) // of the closing one
	want("a@30=1", "a@20=1 a@30=1")
	must(t, db.Rewind())
	want("a@20=1 a@30=1", "a@20=1 a@30=1")
}
