package model

import (
	"context"
	"fmt"
	"iter"
	"math"
	"runtime/debug"
	"slices"
	"time"

	"github.com/semelstream/semel/internal/assert"
)

// A co is a goroutine of a process, turned by hand.
type co struct {
	id   int
	name string
	life *life
	next func() (struct{}, bool)
	stop func()
	give func(struct{}) bool // gives the turn back; false: the process is dead

	// Where it waits.
	at   string
	wake int64           // until when, virtual ns
	ctx  context.Context // whose end ends the wait, or nil
	busy bool            // for something on its way, not for time or input

	over  bool
	panic string
}

// killed unwinds a coroutine of a dead process.
type killed struct{}

const forever = math.MaxInt64

// spawn starts a coroutine; it has its first turn later.
func (w *World) spawn(l *life, name string, f func()) {
	if l.dead {
		return
	}
	w.born++
	c := &co{id: w.born, name: l.p.name + "/" + name, life: l, wake: w.broker.now, at: "start", busy: true}
	c.next, c.stop = iter.Pull(func(yield func(struct{}) bool) {
		c.give = yield
		defer func() {
			c.over, w.reap = true, true
			if e := recover(); e != nil && e != any(killed{}) {
				c.panic = fmt.Sprintf("%v\n\n%s", e, debug.Stack())
			}
		}()
		f()
	})
	w.cos = append(w.cos, c)
}

// turn lets c go on until it waits again.
func (w *World) turn(c *co) {
	w.cur = c
	defer func() { w.cur = nil }() // also when a test ends itself in there
	c.next()
	w.cur = nil
	if c.panic != "" {
		panic(fmt.Sprintf("seed %d, turn %d, %s: %s", w.cfg.Seed, w.stats.Turns, c.name, c.panic))
	}
}

// wait gives the turn back until the time comes, ctx ends, or someone makes
// the coroutine's wake earlier.
func (w *World) wait(ctx context.Context, until int64, busy bool, at string) {
	c := w.self()
	c.at, c.wake, c.busy, c.ctx = at, until, busy, nil
	if ctx != nil && ctx.Done() != nil {
		c.ctx = ctx
	}
	if !c.give(struct{}{}) {
		panic(killed{})
	}
	c.ctx, c.busy = nil, true
}

// self is the coroutine whose turn it is. The dead have none: a deferred call
// of theirs ends here.
func (w *World) self() *co {
	c := w.cur
	assert.That(c != nil, "a call from outside of the processes of a World")
	if c.life.dead {
		panic(killed{})
	}
	return c
}

// pause waits for d, at least a little, so that no loop of waits stops time.
func (w *World) pause(ctx context.Context, d time.Duration, busy bool, at string) {
	w.wait(ctx, w.after(d), busy, at)
}

func (w *World) after(d time.Duration) int64 {
	d = max(d, time.Microsecond)
	if int64(d) > math.MaxInt64-w.broker.now {
		return forever
	}
	return w.broker.now + int64(d)
}

// rouse ends the wait of c, if it waits.
func (w *World) rouse(c *co) {
	c.wake, c.busy = min(c.wake, w.broker.now), true
}

// bury unwinds the coroutines of dead processes and forgets those that are
// over.
func (w *World) bury() {
	if !w.reap {
		return
	}
	w.reap = false
	for i := 0; i < len(w.cos); i++ { //nolint:intrange // unwinding may spawn
		if c := w.cos[i]; c.life.dead && !c.over {
			w.cur = c
			c.stop()
			w.cur = nil
			c.over = true
		}
	}
	w.cos = slices.DeleteFunc(w.cos, func(c *co) bool { return c.over })
	w.reap = false
}
