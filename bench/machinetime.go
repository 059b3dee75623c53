package main

import (
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

// parseMachineTime reads the first line of /proc/stat: hundredths of seconds as
// user, nice, system, idle, waiting for disks, and the rest busy. A disk's wait
// is idle. What a hypervisor took (steal) is busy; guests count as user already.
func parseMachineTime(stat string) (m machineTime) {
	line, _, _ := strings.Cut(stat, "\n")
	f := strings.Fields(line)
	if len(f) < 5 || f[0] != "cpu" {
		return m
	}
	for i, s := range f[1:min(len(f), 9)] {
		n, err := strconv.ParseFloat(s, 64)
		switch {
		case err != nil:
			return machineTime{}
		case i == 3 || i == 4:
			m.idle += n / 100
		default:
			m.busy += n / 100
		}
	}
	return m
}

// since is what was done since an earlier look.
func (m machineTime) since(before machineTime) (busy, idle float64) {
	return m.busy - before.busy, m.idle - before.idle
}
