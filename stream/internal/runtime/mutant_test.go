//go:build semelmutant

package runtime_test

import (
	"fmt"
	"strings"
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
				if bad := mutantSeed(t, seed); len(bad) > 0 {
					t.Logf("killed by seed %d: %s", seed, bad[0])
					return
				}
			}
			t.Errorf("survived")
		})
	}
}

// mutantSeed runs a seed; an assertion of the program's own is a finding too.
func mutantSeed(t *testing.T, seed uint64) (bad []string) {
	defer func() {
		if p := recover(); p != nil {
			first, _, _ := strings.Cut(fmt.Sprint(p), "\n")
			bad = []string{first}
		}
	}()
	inputs, over := simLoad(seed)
	_, bad = runSeed(t, simConfig(seed), 2, 2, inputs, over, nil)
	return bad
}
