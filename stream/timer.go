package stream

import (
	"math"
	"time"

	"github.com/semelstream/semel/stream/internal/runtime"
)

// A Schedule says when a timer fires.
type Schedule struct {
	Every     time.Duration
	From      time.Time // fires at From, From+Every and so on; default at multiples of Every
	WallClock bool      // by the time of day instead of stream time, which stands still without records
}

// A Timer is a running schedule.
type Timer struct{ t *timer }

// Cancel stops the timer, also from within its own function. It is back when
// the task restarts and Init schedules it again.
func (t *Timer) Cancel() { t.t.cancelled = true }

// A timer is a schedule within a task. Its calls lie on a grid: from, from +
// every and so on. A call comes at the first look at or after a point of the
// grid; what was missed in between is one call.
//
// By stream time a timer whose grid began before the first record fires at
// that record; by wall clock it waits for the next point, since otherwise each
// first start would fire at once.
type timer struct {
	every, from int64 // milliseconds
	wall        bool
	next        int64 // the point of the grid that is waited for
	cancelled   bool
	call        func(now int64) error
}

func newTimer(s Schedule, wallNow int64, call func(now int64) error) *timer {
	t := &timer{every: s.Every.Milliseconds(), wall: s.WallClock, call: call}
	if !s.From.IsZero() {
		t.from = s.From.UnixMilli()
	}
	t.next = t.from
	if t.wall {
		t.next = t.after(wallNow)
	}
	return t
}

// due is when the timer wants to fire; math.MaxInt64 if never again.
func (t *timer) due() int64 {
	if t.cancelled {
		return math.MaxInt64
	}
	return t.next
}

// fire calls the timer's function. The timer waits for its next point before
// that, so that the function may cancel it.
func (t *timer) fire(now int64) error {
	t.next = t.after(now)
	return t.call(now)
}

// after is the first point of the grid past now.
func (t *timer) after(now int64) int64 {
	if now < t.from {
		return t.from
	}
	return now + t.every - (now-t.from)%t.every
}

// setBack follows a wall clock that was set back: a point of the grid further
// away than the next one would be waited for too long.
func (t *timer) setBack(now int64) { t.next = min(t.next, t.after(now)) }

// resume goes on where a former life of the task stopped. A due time further
// away than the schedule allows comes from another schedule, of an older
// version of the topology.
func (t *timer) resume(saved, now int64) {
	t.next = saved
	if now != runtime.NoTime {
		t.next = min(t.next, t.after(now))
	}
}
