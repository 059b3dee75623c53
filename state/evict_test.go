package state_test

import (
	"strings"
	"testing"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/state"
)

func TestEvictionNeverDropsADirtyEntry(t *testing.T) {
	r := newRig(t, state.NewMemory(), state.Options{CacheBytes: 1})
	var want []string
	for i := range 1000 {
		k := string([]byte{'a' + byte(i/100), 'a' + byte(i/10%10), 'a' + byte(i%10)})
		r.do(k + "=1")
		want = append(want, k+"=1")
	}
	r.want(strings.Join(want, " "))
	r.commit()
	r.want(strings.Join(want, " ")) // committed, nothing on the engine yet
	w := r.db.Persist()
	r.want(strings.Join(want, " ")) // on its way
	r.db.Persisted(w, w.Commit())
	r.want(strings.Join(want, " ")) // evicted, from the engine
}

func TestCleanEntriesAreEvictedUnderTheBudget(t *testing.T) {
	e := &counting{Engine: state.NewMemory()}
	r := newRig(t, e, state.Options{CacheBytes: 200 * 100}) // about 200 entries
	for i := range 1000 {
		r.do(string([]byte{'a' + byte(i/100), 'a' + byte(i/10%10), 'a' + byte(i%10)}) + "=1")
	}
	r.commit()
	r.persist()
	e.gets = 0
	for i := range 1000 {
		_, _, ok, err := r.s.Get(string([]byte{'a' + byte(i/100), 'a' + byte(i/10%10), 'a' + byte(i%10)}))
		if !ok || err != nil {
			t.Fatal(ok, err)
		}
	}
	if e.gets < 700 {
		t.Errorf("%d of 1000 reads reached the engine with a cache of about 200 entries", e.gets)
	}
	e.gets = 0
	for range 10 {
		_, _, _, err := r.s.Get("zzz") // absent, and known to be after the first time
		must(t, err)
	}
	if e.gets != 1 {
		t.Errorf("%d reads of one absent key reached the engine", e.gets)
	}
}

func TestARowInUseOutlivesRowsThatAreReadOnce(t *testing.T) {
	e := &counting{Engine: state.NewMemory()}
	r := newRig(t, e, state.Options{CacheBytes: 50 * 100})
	for i := range 1000 {
		_, _, _, err := r.s.Get(strings.Repeat("x", i%10) + string(rune('a'+i/10)))
		must(t, err)
		if i%5 != 0 {
			continue
		}
		e.gets = 0
		_, _, _, err = r.s.Get("hot")
		must(t, err)
		if e.gets != 0 && i > 0 {
			t.Fatalf("a row in use was evicted after %d others", i)
		}
	}
}

func TestLargeValuesCountInDirtyAndPendingBytes(t *testing.T) {
	r := newRig(t, state.NewMemory(), state.Options{CacheBytes: 1})
	const size = 1 << 20
	about := func(what string, got, want int64) {
		t.Helper()
		if got < want || got > want+1000 {
			t.Errorf("%s: %d bytes, want about %d", what, got, want)
		}
	}
	r.do("a=1", "a="+strings.Repeat("x", size))
	about("dirty", r.db.DirtyBytes(), size)
	r.db.Undo()
	about("undone", r.db.DirtyBytes(), 0)
	r.do("a=" + strings.Repeat("x", size))
	r.commit()
	about("pending", r.db.PendingBytes(), size)
	r.do("a=" + strings.Repeat("x", 2*size))
	w := r.db.Persist()
	about("changed again", r.db.DirtyBytes(), 2*size)
	must(t, w.Commit())
	r.db.Persisted(w, nil)
	about("stored", r.db.PendingBytes(), 0)
}

// A record's function may read other stores between Find and Set.
func TestARowThatWasFoundIsNotEvictedByOtherStores(t *testing.T) {
	db, err := state.Open(state.NewMemory(), state.Options{CacheBytes: 1, Stores: []state.Spec{{Name: "a"}, {Name: "b"}}})
	must(t, err)
	defer db.Close()
	a, err := state.OpenKV(db, "a", codec.String, codec.Int64)
	must(t, err)
	b, err := state.OpenKV(db, "b", codec.Int64, codec.Int64)
	must(t, err)
	ref, _, _, _, err := a.Find("found")
	must(t, err)
	for i := range int64(500) {
		_, _, _, err := b.Get(i)
		must(t, err)
	}
	a.Set(ref, 7, 1)
	if v, _, ok, err := a.Get("found"); v != 7 || !ok || err != nil {
		t.Errorf("got %d, %v, %v", v, ok, err)
	}
}

type counting struct {
	state.Engine
	gets int
}

func (c *counting) Get(key []byte, use func([]byte) error) (bool, error) {
	c.gets++
	return c.Engine.Get(key, use)
}
