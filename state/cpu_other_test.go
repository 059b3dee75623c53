//go:build !unix

package state_test

import "time"

func cpuTime() time.Duration { return 0 }
