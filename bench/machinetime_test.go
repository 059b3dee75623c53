package main

import (
	"math"
	"testing"
)

func TestTimeOfTheMachineIsBusyOrIdle(t *testing.T) {
	//                               user nice system idle iowait irq softirq steal guest
	before := parseMachineTime("cpu  100 0 50 1000 10 0 5 1 70 0\ncpu0 9 9 9 9\n")
	after := parseMachineTime("cpu  300 20 90 1100 30 10 15 6 90 0\ncpu0 9 9 9 9\n")
	busy, idle := after.since(before)
	if near := func(a, b float64) bool { return math.Abs(a-b) < 1e-9 }; !near(busy, 2.85) || !near(idle, 1.2) {
		t.Errorf("busy %v s, idle %v s; want 2.85 and 1.2", busy, idle)
	}
}

func TestAMachineWithoutProcHasNoTime(t *testing.T) {
	for _, s := range []string{"", "intr 5", "cpu a b c d e", "cpu 1 2"} {
		if got := parseMachineTime(s); got != (machineTime{}) {
			t.Errorf("%q: got %+v", s, got)
		}
	}
}
