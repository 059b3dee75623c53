package state_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/state"
)

// windowRig is a DB with one store of windows and the changelog that it wrote.
type windowRig struct {
	t    testing.TB
	e    state.Engine
	kind state.Kind
	db   *state.DB
	s    *state.Window[string, string]
	log  []state.Row
}

func newWindowRig(t testing.TB, e state.Engine, kind state.Kind, cache int64) *windowRig {
	t.Helper()
	r := &windowRig{t: t, e: e, kind: kind}
	var err error
	r.db, err = state.Open(e, state.Options{
		CacheBytes: cache,
		Stores:     []state.Spec{{Name: "s", Kind: kind, Segment: 100, ByTime: kind == state.KindWindowByKey}},
	})
	must(t, err)
	t.Cleanup(func() { r.db.Close() })
	r.s, err = state.OpenWindow(r.db, "s", codec.String, codec.String)
	must(t, err)
	return r
}

func (r *windowRig) put(key string, at int64, v string) {
	r.t.Helper()
	must(r.t, r.s.Put(key, at, v, at))
}

func (r *windowRig) commit() {
	r.t.Helper()
	r.log = append(r.log, changesOf(r.t, r.db)...)
	r.db.Committed(func(*state.Part) (int64, bool) { return int64(len(r.log)), true })
}

// persist makes a Write, if there is one to make.
func persist(t testing.TB, db *state.DB) {
	t.Helper()
	if w := db.Persist(); w != nil {
		err := w.Commit()
		db.Persisted(w, err)
		must(t, err)
	}
}

// persistAll makes so many Writes that nothing waits any longer.
func persistAll(t testing.TB, db *state.DB) {
	t.Helper()
	for range 8 {
		persist(t, db)
	}
	if n := db.PendingBytes(); n != 0 {
		t.Errorf("%d bytes wait still", n)
	}
}

// stored are the rows of the engine, without any bound, and its position.
func (r *windowRig) stored() (string, int64) {
	r.t.Helper()
	o := newWindowRig(r.t, borrowed{r.e}, r.kind, 1)
	return windows(r.t, o.s.All()), o.db.Part("s").Position()
}

func (r *windowRig) wantStored(rows string, position int64) {
	r.t.Helper()
	if got, pos := r.stored(); got != rows || pos != position {
		r.t.Errorf("the engine has %q up to %d, want %q up to %d", got, pos, rows, position)
	}
}

// ops counts the operations on rows that reach the engine.
type ops struct {
	state.Engine
	n int
}

func (o *ops) Write(b *state.Batch) error {
	_ = b.Each(func(kind state.OpKind, key, _ []byte) error {
		if key[0] != 0 && kind != state.OpDeleteRange {
			o.n++
		}
		return nil
	})
	return o.Engine.Write(b)
}

var windowKinds = []state.Kind{state.KindWindow, state.KindWindowByKey}

func eachWindowKind(t *testing.T, f func(t *testing.T, kind state.Kind)) {
	for _, kind := range windowKinds {
		t.Run(kind.String(), func(t *testing.T) { f(t, kind) })
	}
}

func TestARowThatExpiresWhileItWaitsIsNeverWritten(t *testing.T) {
	eachWindowKind(t, func(t *testing.T, kind state.Kind) {
		e := &ops{Engine: state.NewMemory()}
		r := newWindowRig(t, e, kind, 0)
		for at := int64(1); at <= 50; at++ {
			r.put("a", at, "x")
			r.s.Expire(at - 2)
			r.commit()
		}
		persist(t, r.db)
		r.wantStored("", 0) // they wait
		persistAll(t, r.db)
		r.wantStored("a@48=x a@49=x a@50=x", 50)
		if want := map[state.Kind]int{state.KindWindow: 3, state.KindWindowByKey: 6}[kind]; e.n != want {
			t.Errorf("%d rows were written or deleted, want %d", e.n, want)
		}
	})
}

func TestAnOldVersionOfARowLeavesTheEngineWhenTheRowExpires(t *testing.T) {
	eachWindowKind(t, func(t *testing.T, kind state.Kind) {
		r := newWindowRig(t, state.NewMemory(), kind, 0)
		r.put("a", 10, "old")
		r.put("b", 10, "the same")
		r.commit()
		persistAll(t, r.db)
		r.put("a", 10, "new")
		r.commit()
		r.s.Expire(11) // within a segment
		r.commit()
		for at := range int64(9) { // makes the store forget what it can
			r.put("c", 20+at, "x")
		}
		persistAll(t, r.db)
		if got, _ := r.stored(); strings.Contains(got, "old") {
			t.Errorf("the engine has %q", got)
		}
	})
}

func TestARowThatCameAndWentBetweenWritesNeverReachesTheEngine(t *testing.T) {
	e := &ops{Engine: state.NewMemory()}
	r := newRig(t, e, state.Options{})
	r.do("a=1", "b=1")
	r.commit()
	r.do("-a", "b=2")
	r.commit()
	r.persist()
	wantStored(t, e, "b=2", 4)
	if e.n != 1 {
		t.Errorf("%d rows were written or deleted, want 1", e.n)
	}
	r.do("-b")
	r.commit()
	r.persist()
	wantStored(t, e, "", 5)
}

func TestWhatWaitsIsStoredAtTheEnd(t *testing.T) {
	for name, end := range map[string]func(d *state.DB) error{"Close": (*state.DB).Close, "Rewind": (*state.DB).Rewind} {
		t.Run(name, func(t *testing.T) {
			r := newWindowRig(t, borrowed{state.NewMemory()}, state.KindWindow, 0)
			r.put("a", 1, "x")
			r.db.SetMeta("time", 7)
			r.commit()
			persist(t, r.db)
			r.wantStored("", 0)
			if m := newWindowRig(t, borrowed{r.e}, state.KindWindow, 0).db.Meta(); len(m) > 0 {
				t.Errorf("the engine has %v of a commit whose rows it has not got", m)
			}
			r.put("b", 2, "open")
			must(t, end(r.db))
			r.wantStored("a@1=x", 1)
			o := newWindowRig(t, r.e, state.KindWindow, 0)
			if m := o.db.Meta(); m["time"] != 7 {
				t.Errorf("meta is %v", m)
			}
		})
	}
}

func TestRowsDoNotWaitInTooMuchMemory(t *testing.T) {
	r := newWindowRig(t, state.NewMemory(), state.KindWindow, 1000)
	r.put("a", 1, strings.Repeat("x", 1000))
	r.commit()
	persist(t, r.db)
	if n := r.db.PendingBytes(); n != 0 {
		t.Errorf("%d bytes wait", n)
	}
}

// twoRig has a store whose rows expire beside one that is always written.
type twoRig struct {
	t      testing.TB
	e      *failing
	db     *state.DB
	k      *state.KV[string, string]
	w      *state.Window[string, string]
	commit func()
}

func newTwoRig(t testing.TB) *twoRig {
	r := &twoRig{t: t, e: &failing{Engine: state.NewMemory()}}
	var err error
	r.db, err = state.Open(r.e, state.Options{Stores: []state.Spec{{Name: "k"}, {Name: "w", Kind: state.KindWindow, Segment: 10}}})
	must(t, err)
	r.k, err = state.OpenKV(r.db, "k", codec.String, codec.String)
	must(t, err)
	r.w, err = state.OpenWindow(r.db, "w", codec.String, codec.String)
	must(t, err)
	n := int64(0)
	r.commit = func() {
		n++
		r.db.Committed(func(*state.Part) (int64, bool) { return n, true })
	}
	return r
}

func (r *twoRig) wantPositions(k, w int64) {
	r.t.Helper()
	other, err := state.Open(borrowed{r.e}, state.Options{Stores: []state.Spec{{Name: "k"}, {Name: "w", Kind: state.KindWindow}}})
	must(r.t, err)
	for name, db := range map[string]*state.DB{"in memory": r.db, "on the engine": other} {
		if a, b := db.Part("k").Position(), db.Part("w").Position(); a != k || b != w {
			r.t.Errorf("positions %s are %d and %d, want %d and %d", name, a, b, k, w)
		}
	}
}

func TestThePositionOfAStoreThatIsLeftOutStays(t *testing.T) {
	r := newTwoRig(t)
	must(t, r.k.Put("a", "x", 1))
	must(t, r.w.Put("a", 1, "x", 1))
	r.commit()
	persist(t, r.db)
	r.wantPositions(1, 0)
	must(t, r.k.Put("a", "y", 1))
	r.commit()
	persistAll(t, r.db)
	r.wantPositions(2, 2)
}

// What a failed Write would have deleted, the next one that leaves the store
// out has not.
func TestRowsThatAFailedWriteWouldHaveDeletedAreDeletedLater(t *testing.T) {
	r := newTwoRig(t)
	must(t, r.w.Put("a", 5, "x", 1))
	r.commit()
	persistAll(t, r.db)
	r.w.Expire(20)
	must(t, r.w.Put("a", 30, "x", 1))
	r.commit()
	for range 7 {
		persist(t, r.db)
	}
	r.e.err = fmt.Errorf("no space")
	w := r.db.Persist()
	r.db.Persisted(w, w.Commit())
	r.e.err = nil
	must(t, r.k.Put("a", "x", 1))
	r.commit()
	persistAll(t, r.db)
	if n := engineRows(t, r.e); n != 2 {
		t.Errorf("%d rows on the engine, want 2", n)
	}
}

func TestEntriesThatHaveExpiredLeaveTheMemory(t *testing.T) {
	eachWindowKind(t, func(t *testing.T, kind state.Kind) {
		r := newWindowRig(t, state.NewMemory(), kind, 0)
		most := int64(0)
		for at := int64(1); at <= 5000; at++ {
			r.put(fmt.Sprint("key ", at%100), at, "x")
			r.s.Expire(at - 20)
			if at%10 == 0 {
				r.commit()
			}
			if at == 500 {
				most = r.db.PendingBytes()
			}
		}
		if n := r.db.PendingBytes(); n > 2*most {
			t.Errorf("%d bytes wait, %d after a tenth of the records", n, most)
		}
		for _, rows := range []state.WindowRows[string, string]{r.s.All(), r.s.ByStart(0, 1e6)} {
			if got := windows(t, rows); len(strings.Fields(got)) != 2*21 {
				t.Errorf("rows are %q", got)
			}
		}
	})
}

// A crash at any operation on the disk leaves of the rows that had not expired
// by then exactly what the changelog says up to the position, and of the others
// some of it.
func TestACrashAtAnyOperationLeavesTheRowsThatHaveNotExpired(t *testing.T) {
	eachWindowKind(t, func(t *testing.T, kind state.Kind) {
		for seed := range uint64(3) {
			crashWindows(t, kind, seed)
		}
	})
}

func crashWindows(t *testing.T, kind state.Kind, seed uint64) {
	c := &crashes{fs: vfs.NewCrashableMem(), stride: 1, seed: seed}
	cache := []int64{4 << 10, 1 << 20}[seed%2] // in one hardly anything can wait
	r := newWindowRig(t, openCrashed(t, errorfs.Wrap(c.fs, c)), kind, cache)
	rnd := rand.New(rand.NewPCG(seed, 4))
	now := int64(0)
	for i := range 60 {
		for range 10 {
			now += rnd.Int64N(4)
			at, key := max(now-rnd.Int64N(60), 0), fmt.Sprint("key-", rnd.IntN(5))
			if rnd.IntN(4) == 0 {
				must(t, r.s.Delete(key, at, now))
			} else {
				r.put(key, at, fmt.Sprintf("%0*d", 1+rnd.IntN(2000), i))
			}
		}
		r.s.Expire(now - 80)
		c.setBound(max(now-80, 0))
		r.commit()
		if i%2 == 0 {
			persist(t, r.db)
		}
		if i%15 == 0 {
			pos := r.db.Part("s").Position()
			must(t, r.db.Flush())
			c.setFlushed(pos)
		}
	}
	must(t, r.db.Close())
	if len(c.clones) < 100 {
		t.Fatalf("only %d crashes", len(c.clones))
	}
	for _, clone := range c.clones {
		checkWindowCrash(t, kind, clone, r.log)
	}
}

func checkWindowCrash(t *testing.T, kind state.Kind, c crashClone, log []state.Row) {
	t.Helper()
	r := newWindowRig(t, openCrashed(t, c.fs), kind, 0)
	defer r.db.Close()
	part := r.db.Part("s")
	pos := part.Position()
	if pos < c.flushed {
		t.Errorf("crash before %s: position %d, but %d were flushed", c.at, pos, c.flushed)
	}
	r.wantFold(c.at, log[:pos], c.bound)
	must(t, part.Apply(slices.Values(log[pos:]), int64(len(log))))
	r.wantFold(c.at+", restored", log, c.bound)
}

// wantFold wants the changelog's rows, of those before the bound some.
func (r *windowRig) wantFold(when string, log []state.Row, bound int64) {
	r.t.Helper()
	want := map[string]string{}
	for _, row := range log {
		key, at := string(row.Key[:len(row.Key)-12]), int64(0)
		for _, b := range row.Key[len(row.Key)-12 : len(row.Key)-4] {
			at = at<<8 | int64(b)
		}
		place := fmt.Sprintf("%016d %s", at, key)
		if row.Value == nil {
			delete(want, place)
		} else {
			want[place] = string(row.Value)
		}
	}
	for row, err := range r.s.All() {
		must(r.t, err)
		place := fmt.Sprintf("%016d %s", row.Start, row.Key)
		if v, ok := want[place]; !ok || v != row.Value {
			r.t.Fatalf("%s: %s is %q, want %q (%v)", when, place, row.Value, v, ok)
		}
		delete(want, place)
	}
	for place := range want {
		if place >= fmt.Sprintf("%016d", bound) {
			r.t.Fatalf("%s: %s is missing, the bound is %d", when, place, bound)
		}
	}
}
