package state_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/semelstream/semel/state"
)

// crashConfig loses nothing, all or half of what was not synced.
func crashConfig(choice uint64) vfs.CrashCloneCfg {
	return vfs.CrashCloneCfg{
		UnsyncedDataPercent: []int{0, 0, 50, 100}[choice%4],
		RNG:                 rand.New(rand.NewPCG(choice, 1)),
	}
}

// crashes takes a clone of the disk, as a crash would leave it, before every
// stride-th operation on it.
type crashes struct {
	fs      *vfs.MemFS
	stride  int
	seed    uint64
	mu      sync.Mutex
	n       int
	flushed int64 // what the disk must have
	bound   int64 // before which rows have expired
	clones  []crashClone
}

type crashClone struct {
	at      string
	fs      *vfs.MemFS
	flushed int64
	bound   int64
}

func (c *crashes) MaybeError(op errorfs.Op) error {
	if op.Kind == errorfs.OpLock { // MemFS.Lock and CrashClone dead-lock
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n++; c.n%c.stride == 0 {
		clone := c.fs.CrashClone(crashConfig(c.seed + uint64(c.n/c.stride)))
		c.clones = append(c.clones, crashClone{fmt.Sprintf("operation %d (%v of %s)", c.n, op.Kind, op.Path), clone, c.flushed, c.bound})
	}
	return nil
}

func (c *crashes) String() string { return "crashes" }

func (c *crashes) setFlushed(pos int64) {
	c.mu.Lock()
	c.flushed = pos
	c.mu.Unlock()
}

func (c *crashes) setBound(before int64) {
	c.mu.Lock()
	c.bound = before
	c.mu.Unlock()
}

func openCrashed(t testing.TB, fs vfs.FS) state.Engine {
	t.Helper()
	e, err := state.OpenPebble("a/state", state.PebbleOptions{FS: fs, MemTableSize: 64 << 10})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestACrashAtAnyOperationLeavesTheChangelogUpToThePosition(t *testing.T) {
	for seed := range uint64(3) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { crashEverywhere(t, seed) })
	}
}

func crashEverywhere(t *testing.T, seed uint64) {
	c := &crashes{fs: vfs.NewCrashableMem(), stride: 1, seed: seed}
	r := newRig(t, openCrashed(t, errorfs.Wrap(c.fs, c)), state.Options{CacheBytes: 4 << 10})
	rnd := rand.New(rand.NewPCG(seed, 2))
	part := r.db.Part("s")
	for i := range 60 {
		for range 10 {
			k := fmt.Sprint("key-", rnd.IntN(200))
			if rnd.IntN(4) == 0 {
				r.do("-" + k)
			} else {
				r.do(fmt.Sprintf("%s=%0*d", k, rnd.IntN(2000), i)) // some Writes are larger than a memtable
			}
		}
		if i > 0 {
			r.end() // while the next one is open
		}
		r.freeze()
		if i%3 == 0 {
			r.persist()
		}
		if i%15 == 0 {
			pos := part.Position()
			must(t, r.db.Flush())
			c.setFlushed(pos)
		}
	}
	must(t, r.db.Close())
	t.Logf("%d crashes", len(c.clones))
	if len(c.clones) < 100 {
		t.Fatalf("only %d crashes", len(c.clones))
	}
	for _, clone := range c.clones {
		checkCrash(t, clone, r.log)
	}
}

// checkCrash opens what a crash left, checks it and restores the rest.
func checkCrash(t *testing.T, c crashClone, log []state.Row) {
	t.Helper()
	r := newRig(t, openCrashed(t, c.fs), state.Options{})
	defer r.db.Close()
	part := r.db.Part("s")
	pos := part.Position()
	if pos < c.flushed {
		t.Errorf("crash before %s: position %d, but %d were flushed", c.at, pos, c.flushed)
	}
	r.wantFold(c.at, log[:pos])
	must(t, part.Apply(func(yield func(state.Row) bool) {
		for _, row := range log[pos:] {
			if !yield(row) {
				return
			}
		}
	}, int64(len(log))))
	r.wantFold(c.at+", restored", log)
}

func (r *rig) wantFold(when string, log []state.Row) {
	r.t.Helper()
	want := map[string]string{}
	for _, row := range log {
		if row.Value == nil {
			delete(want, string(row.Key))
		} else {
			want[string(row.Key)] = string(row.Value)
		}
	}
	n := 0
	for row, err := range r.s.All() {
		must(r.t, err)
		if v, ok := want[row.Key]; !ok || v != row.Value {
			r.t.Fatalf("%s: %s is %q, want %q (%v)", when, row.Key, row.Value, v, ok)
		}
		n++
	}
	if n != len(want) {
		r.t.Fatalf("%s: %d rows, want %d", when, n, len(want))
	}
}
