package model

import (
	"context"
	"fmt"
	"time"

	"github.com/semelstream/semel/internal/seam"
)

// A Process runs main in a World, over and over if it dies; its disk stays.
type Process struct {
	w    *World
	name string
	main func(seam.Env, *Disk) error
	disk *Disk
	life *life
	err  error

	restartAt  int64 // 0: not planned
	killAt     string
	killAtTurn int
	turns      int
}

// A life is from a start of a process to its end.
type life struct {
	p      *Process
	n      int
	dead   bool
	frozen int64 // SIGSTOP until
}

// Start starts a process with an empty disk. When main returns the process is
// over, with all its goroutines.
func (w *World) Start(name string, main func(env seam.Env, disk *Disk) error) *Process {
	p := &Process{w: w, name: name, main: main, disk: newDisk(w), life: &life{dead: true}}
	w.procs = append(w.procs, p)
	p.Restart()
	return p
}

// Name is the name it was started with.
func (p *Process) Name() string { return p.name }

// Disk is its disk.
func (p *Process) Disk() *Disk { return p.disk }

// Alive says whether it runs.
func (p *Process) Alive() bool { return !p.life.dead }

// Err is what main returned in the last life that ended by itself.
func (p *Process) Err() error { return p.err }

// Turns counts the turns of its goroutines in all lives.
func (p *Process) Turns() int { return p.turns }

// Restart starts a dead process again on its disk.
func (p *Process) Restart() {
	if p.Alive() {
		return
	}
	w := p.w
	p.restartAt = 0
	p.life = &life{p: p, n: p.life.n + 1}
	env := w.env(p.life)
	w.logf(p.name, "starts, life %d", p.life.n)
	l := p.life
	w.spawn(l, "main", func() {
		err := p.main(env, p.disk)
		p.err = err
		w.stats.Exits++
		w.logf(p.name, "exits: %v", err)
		w.end(l, err != nil)
	})
}

// Kill is kill -9: no goroutine of the process has another turn, and the disk
// keeps what a crash leaves.
func (w *World) Kill(p *Process) {
	if p.life.dead {
		return
	}
	w.stats.Crashes++
	w.logf(p.name, "CRASH")
	w.end(p.life, true)
}

// KillAt kills the process the next time it comes to the named stop.
func (w *World) KillAt(p *Process, stop string) { p.killAt = stop }

// KillAtTurn kills the process at its n-th turn.
func (w *World) KillAtTurn(p *Process, n int) { p.killAtTurn = n }

// Freeze is SIGSTOP, and SIGCONT after d. What the process has on its way
// goes on.
func (w *World) Freeze(p *Process, d time.Duration) {
	w.stats.Freezes++
	w.logf(p.name, "stopped for %v", d)
	p.life.frozen = w.broker.now + int64(d)
}

// end ends a life.
func (w *World) end(l *life, again bool) {
	l.dead, w.reap = true, true
	l.p.disk.crash()
	if !again || !w.cfg.Restart {
		return
	}
	down := w.rand.Int64N(int64(time.Second))
	if w.rand.IntN(5) == 0 {
		down = int64(8 * time.Second) // longer than a short session: the tasks move
	}
	l.p.restartAt = w.broker.now + down + 1
}

func (w *World) restart() {
	for _, p := range w.procs {
		if p.restartAt > 0 && w.broker.now >= p.restartAt {
			p.Restart()
		}
	}
}

// strike is what may happen to a process instead of a turn.
func (w *World) strike(c *co) bool {
	p := c.life.p
	p.turns++
	if p.turns == p.killAtTurn {
		w.logf(c.name, "dies at %s", c.at)
		w.Kill(p)
		return true
	}
	f := w.cfg.Faults
	if w.quiet || f.Crash+f.Freeze == 0 {
		return false
	}
	switch n := w.rand.IntN(10_000); {
	case n < f.Crash:
		w.logf(c.name, "dies at %s", c.at)
		w.Kill(p)
	case n < f.Crash+f.Freeze:
		w.Freeze(p, time.Duration(w.rand.Int64N(int64(15*time.Second))))
	default:
		return false
	}
	return true
}

// env is the world of one life.
func (w *World) env(l *life) seam.Env {
	return seam.Env{
		Broker: &link{w: w, life: l},
		Clock:  clock{w},
		Stops:  func(point string) { w.stop(point) },
		Go:     func(name string, f func()) { w.spawn(l, name, f) },
		Signal: func() seam.Signal { return &signal{w: w} },
		Rand:   w.rand.Uint64,
		Log:    w.logger(l.p.name),
	}
}

// stop is a named stop: a place to die at, and another turn for others.
func (w *World) stop(point string) {
	c := w.self()
	if p := c.life.p; p.killAt == point {
		p.killAt = ""
		w.logf(c.name, "dies at stop %s", point)
		w.Kill(p)
		panic(killed{})
	}
	if !w.cfg.Instant {
		w.wait(context.Background(), w.broker.now, true, point)
	}
}

// String is for messages.
func (p *Process) String() string { return fmt.Sprintf("%s (life %d)", p.name, p.life.n) }

// Stop kills all processes for good, so that nothing of the World is left.
func (w *World) Stop() {
	for _, p := range w.procs {
		p.life.dead = true
		p.restartAt = 0
	}
	w.reap = true
	for w.reap {
		w.bury()
	}
}
