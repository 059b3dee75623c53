package changelog_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/semelstream/semel/changelog"
	"github.com/semelstream/semel/state"
)

// A store on disk that crashes while it is restored, again and again, holds
// what its position says, and the next restore goes on from there.
func TestARestoreGoesOnAfterACrashFromThePositionOnDisk(t *testing.T) {
	for seed := range uint64(30) {
		rnd := rand.New(rand.NewPCG(seed, 2))
		s, l, _, _ := one("")
		for range 40 {
			for range 5 {
				l.words = append(l.words, fmt.Sprintf("%c=%d", 'k'+rnd.IntN(6), rnd.IntN(100)))
			}
			l.words = append(l.words, fmt.Sprintf("%c-", 'k'+rnd.IntN(6)), []string{"commit", "commit", "abort"}[rnd.IntN(3)])
		}
		s.limit = 3
		disk := vfs.NewCrashableMem()
		var at int64
		resumed := 0
		for done := false; !done; {
			e, err := state.OpenPebble("state", state.PebbleOptions{FS: disk})
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			to := open(t, e)
			at = to.Position()
			if got, want := to.rows(t).String(), l.fold(0, at).String(); got != want {
				t.Fatalf("seed %d: after a crash at position %d: %q, want %q", seed, at, got, want)
			}
			if at > 0 && at < l.end() {
				resumed++
			}
			j := job(to, 0, l.end())
			j.Done = func(err error) {
				if err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				done = true
			}
			r := changelog.NewRestorer(s)
			r.Add(j)
			for n := 1 + rnd.IntN(12); n > 0 && !done; n-- {
				step(t, r)
			}
			if done {
				wantRows(t, to, l.fold(0, l.end()).String())
			} else if rnd.IntN(3) > 0 { // else nothing of it may be left
				if err := to.db.Flush(); err != nil {
					t.Fatal(err)
				}
			}
			s.Unassign(tp0)
			crashed := disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: rnd.IntN(101), RNG: rnd})
			if err := to.db.Close(); err != nil {
				t.Fatal(err)
			}
			disk = crashed
		}
		if resumed < 3 {
			t.Errorf("seed %d: resumed %d times", seed, resumed)
		}
	}
}
