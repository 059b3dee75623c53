// Package statetest is the suite that every [state.Engine] passes.
package statetest

import (
	"testing"

	"github.com/semelstream/semel/state"
)

// A Disk is a place for one engine at a time.
type Disk interface {
	// Open opens the engine as the disk has it. The one before was closed, or
	// died in a Crash.
	Open() (state.Engine, error)
	// Crash ends the open engine without closing it. The disk keeps all that
	// was flushed and, as choice has it, any prefix of later Writes. It
	// returns false, and does nothing, if the disk cannot do that.
	Crash(choice uint64) bool
}

// Run runs the suite on the disks that fresh makes, empty ones, which are good
// until the end of t.
func Run(t *testing.T, fresh func(t testing.TB) Disk) {
	t.Run("Engine", func(t *testing.T) { testEngine(t, fresh) })
	t.Run("Model", func(t *testing.T) { testModel(t, fresh) })
	t.Run("Windows", func(t *testing.T) { testWindows(t, fresh) })
}

// open opens the engine of a fresh disk until the end of t.
func open(t testing.TB, fresh func(t testing.TB) Disk) state.Engine {
	t.Helper()
	e, err := fresh(t).Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}
