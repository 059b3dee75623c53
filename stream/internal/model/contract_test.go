package model

import (
	"strings"
	"testing"
	"time"

	"github.com/semelstream/semel/internal/seam"
	"github.com/semelstream/semel/internal/seam/seamtest"
	"github.com/semelstream/semel/txn"
)

// contract runs the suite in worlds of the config.
func contract(t *testing.T, cfg Config) {
	seamtest.Run(t, seamtest.World{
		Run: func(t *testing.T, body func(seam.Env)) {
			cfg.Trace = true
			w := New(cfg)
			defer w.Stop()
			defer func() {
				if t.Failed() {
					t.Logf("seed %d\n%s", cfg.Seed, strings.Join(w.Trace(), "\n"))
				}
			}()
			p := w.Start("p", func(env seam.Env, _ *Disk) error { body(env); return nil })
			current = w
			if !w.RunUntil(func() bool { return !p.Alive() }, 10*time.Minute) {
				t.Error("it hangs")
			}
		},
		Rejoin:  func(err error) bool { return txn.Judge(err) == txn.OutcomeRejoin },
		Session: 6 * time.Second,
		Evict:   func(_ seam.Env, group, instance string) { current.broker.leave(group, instance) },
	})
}

// current is the world that turns.
var current *World

func TestContract(t *testing.T) { contract(t, Config{Seed: 1}) }

func TestContractWithoutTime(t *testing.T) { contract(t, Config{Seed: 1, Instant: true}) }

// Requests that are lost, unanswered, slow or late change nothing of what is
// promised, except to a fixed time.
func TestContractOnABadNetwork(t *testing.T) {
	n := uint64(20)
	if testing.Short() {
		n = 3
	}
	for seed := range n {
		contract(t, Config{Seed: seed, Faults: Faults{Net: 30}})
	}
}
