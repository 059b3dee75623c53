package model

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
)

// link is seam.Broker for one life of a process.
type link struct {
	w    *World
	life *life
}

// errLost: no answer came. It is retriable, as what a client says of a broken
// connection.
var errLost = fmt.Errorf("model: no answer came: %w", kerr.RequestTimedOut)

// late is a request on the wire whose sender does not wait for it any more,
// and may be dead.
type late struct {
	at int64
	f  func()
}

// What happens to a request.
const (
	faultNone       = iota
	faultLost       // it never arrives
	faultUnanswered // it acts, the answer is lost
	faultSlow
	faultLate // given up; it arrives later
)

// Times of requests.
const (
	shortest  = 50 * time.Microsecond
	spread    = int64(400 * time.Microsecond)
	patience  = 20 * time.Millisecond // until an answer is given up
	slowest   = int64(2 * time.Second)
	latest    = int64(3 * time.Second)
	backoff   = 5 * time.Millisecond
	hurry     = time.Millisecond // between tries while markers are being written
	pollDelay = 200 * time.Microsecond
)

// call sends one request: f is what the broker does with it. It takes two
// turns, one until the request arrives, one after it acted; at each the
// sender may die. f is run at most once, perhaps after call has returned, so
// it must hold what was true when it was sent, and write its answer to where
// only this request's answer is read.
func (l *link) call(ctx context.Context, what string, f func() error) error {
	w := l.w
	c := w.self()
	if err := ctx.Err(); err != nil {
		return err
	}
	if w.cfg.Instant {
		return f()
	}
	arrives := w.broker.now + w.latency()
	w.wait(ctx, arrives, true, what+">")
	if ctx.Err() != nil && w.broker.now < arrives {
		w.send(c, arrives, what, f)
		return ctx.Err()
	}
	switch w.fault() {
	case faultLost:
		w.logf(c.name, "%s lost", what)
		w.pause(ctx, patience, true, what+" lost")
		return errLost
	case faultUnanswered:
		err := f()
		w.logf(c.name, "%s: %v, answer lost", what, err)
		w.pause(ctx, patience, true, what+" unanswered")
		return errLost
	case faultLate:
		w.send(c, w.broker.now+w.rand.Int64N(latest), what, f)
		w.pause(ctx, patience, true, what+" late")
		return errLost
	case faultSlow:
		arrives = w.broker.now + w.rand.Int64N(slowest)
		w.wait(ctx, arrives, true, what+" slow")
		if ctx.Err() != nil && w.broker.now < arrives {
			w.send(c, arrives, what, f)
			return ctx.Err()
		}
	}
	err := f()
	if w.cfg.Trace {
		w.logf(c.name, "%s: %v", what, err)
	}
	w.wait(ctx, w.broker.now+w.latency(), true, what+"<")
	return err
}

func (w *World) latency() int64 { return int64(shortest) + w.rand.Int64N(spread) }

func (w *World) fault() int {
	f := w.cfg.Faults
	if w.quiet || f.Net+f.Late == 0 {
		return faultNone
	}
	switch n := w.rand.IntN(1000); {
	case n < f.Net:
		w.stats.NetFaults++
		return faultLost + w.rand.IntN(faultSlow-faultLost+1)
	case n < f.Net+f.Late:
		return faultLate // counted when it arrives
	}
	return faultNone
}

// send leaves a request on the wire.
func (w *World) send(c *co, at int64, what string, f func() error) {
	name := c.name
	w.late = append(w.late, late{at, func() {
		err := f() // nobody hears the answer
		w.logf(name, "%s arrives late: %v", what, err)
	}})
}

// arrive lets late requests act.
func (w *World) arrive() {
	for i := 0; i < len(w.late); i++ {
		if l := w.late[i]; w.broker.now >= l.at {
			w.late = slices.Delete(w.late, i, i+1)
			i--
			w.stats.Late++
			l.f()
		}
	}
}

// A how says how a request is tried again.
type how struct {
	what   string
	pause  time.Duration
	giveUp bool  // sometimes stop after a lost answer, as a client does whose deadline is up
	again  error // an answer that passes by itself
}

// ask sends a request until it is answered with something else than h.again.
// What an answer brings counts only if it came: an earlier try may act later,
// and writes its answer to where nobody reads it.
func ask[T any](ctx context.Context, l *link, h how, f func() (T, error)) (T, error) {
	for {
		var got T
		err := l.call(ctx, h.what, func() (err error) {
			got, err = f()
			return err
		})
		switch {
		case err == nil:
			return got, nil
		case ctx.Err() != nil:
			return *new(T), ctx.Err()
		case errors.Is(err, errLost):
			if h.giveUp && l.w.givesUp() {
				return *new(T), err
			}
		case h.again == nil || !errors.Is(err, h.again):
			return *new(T), err
		}
		l.w.pause(ctx, h.pause, true, h.what+" again")
	}
}

// tell is ask for requests whose answer is yes or no.
func tell(ctx context.Context, l *link, h how, f func() error) error {
	_, err := ask(ctx, l, h, func() (struct{}, error) { return struct{}{}, f() })
	return err
}

func (w *World) givesUp() bool { return !w.quiet && w.rand.IntN(100) < w.cfg.Faults.GiveUp }

// plain is how most requests are tried again.
func plain(what string) how { return how{what: what, pause: backoff} }
