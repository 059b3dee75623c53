package state_test

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/semelstream/semel/state"
	"github.com/semelstream/semel/state/statetest"
)

// kept is a memory engine that outlives its closing.
type kept struct{ state.Engine }

func (kept) Close() error { return nil }

func (k kept) Open() (state.Engine, error) { return k, nil }
func (kept) Crash(uint64) bool             { return false }

func TestMemoryPassesTheSuite(t *testing.T) {
	statetest.Run(t, func(testing.TB) statetest.Disk { return kept{state.NewMemory()} })
}

func TestPebblePassesTheSuite(t *testing.T) {
	statetest.Run(t, func(t testing.TB) statetest.Disk { return newCrashDisk(t) })
}

// crashDisk is Pebble on a disk in memory that can crash.
type crashDisk struct {
	t      testing.TB
	fs     *vfs.MemFS
	engine state.Engine
	budget *state.Budget
}

func newCrashDisk(t testing.TB) *crashDisk {
	d := &crashDisk{t: t, fs: vfs.NewCrashableMem(), budget: state.NewBudget(1<<20, 64)}
	t.Cleanup(d.budget.Close)
	return d
}

func (d *crashDisk) Open() (state.Engine, error) {
	e, err := state.OpenPebble("state", state.PebbleOptions{FS: d.fs, Budget: d.budget, MemTableSize: 64 << 10})
	d.engine = e
	return e, err
}

func (d *crashDisk) Crash(choice uint64) bool {
	old := d.engine
	d.fs = d.fs.CrashClone(crashConfig(choice))
	if err := old.Close(); err != nil { // on the disk of before, which nobody looks at
		d.t.Fatal(err)
	}
	return true
}
