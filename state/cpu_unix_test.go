//go:build unix

package state_test

import (
	"syscall"
	"time"
)

// cpuTime is what the process has used, which other processes lengthen less than
// the time on the wall.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
