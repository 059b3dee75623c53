package main

import (
	"errors"
	"os"
	"strconv"
	"strings"
)

// A machineTime is what all processors of the machine did since it started, in
// seconds. It is zero where there is no /proc.
type machineTime struct{ busy, idle float64 }

func lookAtMachine() machineTime {
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return machineTime{}
	}
	return parseMachineTime(string(b))
}

// parseMachineTime reads the first line of /proc/stat: user, nice, system, idle,
// waiting for disks, two of interrupts, and what a hypervisor took. A disk's wait
// is idle, a hypervisor's part busy; guests, who follow, count as user already.
func parseMachineTime(stat string) machineTime {
	line, _, _ := strings.Cut(stat, "\n")
	f := strings.Fields(line)
	if len(f) < 9 || f[0] != "cpu" {
		return machineTime{}
	}
	work, err := seconds(f[1:4])
	idle, err2 := seconds(f[4:6])
	rest, err3 := seconds(f[6:9])
	if errors.Join(err, err2, err3) != nil {
		return machineTime{}
	}
	return machineTime{busy: work + rest, idle: idle}
}

// seconds adds up times of /proc, which are in hundredths.
func seconds(ticks []string) (sum float64, err error) {
	for _, s := range ticks {
		n, err := strconv.ParseFloat(s, 64)
		if err != nil {
			return 0, err
		}
		sum += n / 100
	}
	return sum, nil
}

// since is what was done since an earlier look.
func (m machineTime) since(before machineTime) (busy, idle float64) {
	return m.busy - before.busy, m.idle - before.idle
}
