//go:build semelmutant

package runtime_test

import (
	"testing"

	"github.com/semelstream/semel/stream/internal/runtime"
)

// Each mutant is a mistake that the protocol's rules forbid; the simulator
// must notice every one of them.
func TestMutantsAreKilled(t *testing.T) {
	for _, name := range runtime.Mutants {
		t.Run(name, func(t *testing.T) {
			runtime.SetMutant(name)
			defer runtime.SetMutant("")
			for seed := range uint64(3000) {
				if _, bad := runSeed(t, simConfig(seed), 2, 2, 120, simTime, nil); len(bad) > 0 {
					t.Logf("killed by seed %d: %s", seed, bad[0])
					return
				}
			}
			t.Errorf("survived")
		})
	}
}
