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
	for _, s := range []string{"", "intr 5", "cpu a b c d e", "cpu 1 2", "cpu 1 2 3 4 5 6 7 x"} {
		if got := parseMachineTime(s); got != (machineTime{}) {
			t.Errorf("%q: got %+v", s, got)
		}
	}
}

func TestWhatNobodyTellsIsNotANumber(t *testing.T) {
	silent, told := &result{Records: 10, CPU: 1}, &result{Records: 10, CPU: 1, Others: 1, Idle: 2}
	if !math.IsNaN(silent.others()) || !math.IsNaN(silent.idle()) {
		t.Errorf("others %v us, idle %v %%; want neither", silent.others(), silent.idle())
	}
	if told.others() != 1e5 || told.idle() != 50 {
		t.Errorf("others %v us, idle %v %%; want 100000 and 50", told.others(), told.idle())
	}
}
