package stream

import (
	"math"
	"testing"
	"time"

	"github.com/semelstream/semel/stream/internal/runtime"
)

func TestTimerWaitsOnItsGrid(t *testing.T) {
	for _, c := range []struct {
		name    string
		s       Schedule
		wallNow int64
		first   int64
		looks   []int64 // times at which it is due, in order
		next    []int64 // what it waits for after each
	}{
		{"stream time from zero", Schedule{Every: 10 * time.Millisecond}, 0, 0, []int64{6, 10, 45}, []int64{10, 20, 50}},
		{"anchored", Schedule{Every: 10 * time.Millisecond, From: time.UnixMilli(7)}, 0, 7, []int64{8, 17, 45}, []int64{17, 27, 47}},
		{"wall clock", Schedule{Every: time.Second, WallClock: true}, 1700, 2000, []int64{2000, 5500}, []int64{3000, 6000}},
		{"wall clock on a point", Schedule{Every: time.Second, WallClock: true}, 2000, 3000, nil, nil},
		{"anchored wall clock in the future", Schedule{Every: time.Second, From: time.UnixMilli(2500), WallClock: true}, 0, 2500, []int64{2500, 6500}, []int64{3500, 7500}},
		{"anchored wall clock in the past", Schedule{Every: time.Second, From: time.UnixMilli(2500), WallClock: true}, 9000, 9500, nil, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			var calls []int64
			tm := newTimer(c.s, c.wallNow, func(now int64) error { calls = append(calls, now); return nil })
			if tm.due() != c.first {
				t.Fatalf("first due at %d, want %d", tm.due(), c.first)
			}
			for i, now := range c.looks {
				if tm.due() > now {
					t.Fatalf("not due at %d", now)
				}
				if err := tm.fire(now); err != nil {
					t.Fatal(err)
				}
				if tm.due() != c.next[i] {
					t.Fatalf("after %d due at %d, want %d", now, tm.due(), c.next[i])
				}
				if calls[i] != now {
					t.Fatalf("was handed %d at %d", calls[i], now)
				}
			}
		})
	}
}

func TestTimerCancelledInItsOwnFunctionIsNeverDueAgain(t *testing.T) {
	var tm *timer
	tm = newTimer(Schedule{Every: time.Second}, 0, func(int64) error { (&Timer{tm}).Cancel(); return nil })
	if err := tm.fire(1500); err != nil {
		t.Fatal(err)
	}
	if tm.due() != math.MaxInt64 {
		t.Fatalf("due at %d", tm.due())
	}
}

func TestTimerResumesAtItsOwnScheduleAtTheLatest(t *testing.T) {
	tm := newTimer(Schedule{Every: time.Second}, 0, nil)
	if tm.resume(7000, runtime.NoTime); tm.due() != 7000 {
		t.Fatalf("due at %d with unknown time, want what was saved", tm.due())
	}
	if tm.resume(2000, 5500); tm.due() != 2000 {
		t.Fatalf("due at %d, want the missed call", tm.due())
	}
	year := int64(365 * 24 * time.Hour / time.Millisecond)
	if tm.resume(year, 5500); tm.due() != 6000 {
		t.Fatalf("due at %d, want the next point of the new schedule", tm.due())
	}
}
