package state_test

import (
	"math/rand/v2"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// crashConfig loses nothing, all or half of what was not synced.
func crashConfig(choice uint64) vfs.CrashCloneCfg {
	return vfs.CrashCloneCfg{
		UnsyncedDataPercent: []int{0, 0, 50, 100}[choice%4],
		RNG:                 rand.New(rand.NewPCG(choice, 1)),
	}
}
