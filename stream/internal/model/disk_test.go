package model

import (
	"math/rand/v2"
	"testing"

	"github.com/semelstream/semel/state"
	"github.com/semelstream/semel/state/statetest"
)

// crashing is a Disk for the suite that all engines pass.
type crashing struct{ *Disk }

func (c crashing) Open() (state.Engine, error) { return c.Disk.Open("s") }

func (c crashing) Crash(choice uint64) bool {
	c.w.rand = rand.New(rand.NewPCG(choice, 1))
	c.crash()
	return true
}

func TestEngine(t *testing.T) {
	statetest.Run(t, func(testing.TB) statetest.Disk { return crashing{New(Config{}).Start("p", nil).Disk()} })
}
