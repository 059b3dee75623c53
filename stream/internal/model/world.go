// Package model is an in-memory Kafka with a scheduler, in which the runtime
// runs unchanged and is replayed from a seed.
//
// A World holds a broker and processes. Every goroutine of a process is a
// coroutine that gives up its turn in broker calls, sleeps, signal waits and
// named stops, and nowhere else; the seed picks whose turn is next, how long
// an answer takes, what is lost and who dies. There is no goroutine
// scheduler, no clock and no map order in it, so the same seed is the same
// run, to the last turn.
//
// The broker does what a real one does and an embedded fake does not: EndTxn
// answers before its markers are written, one partition after the other, in
// any order; requests in between get CONCURRENT_TRANSACTIONS; InitProducerID
// aborts in the background; offsets in a transaction are unstable until their
// marker; a zombie's epoch never comes back; a request may act after its
// sender died. What it promises is checked by internal/seam/seamtest, as for
// the real ones.
//
// A World belongs to one goroutine: the one that calls its methods.
package model

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/semelstream/semel/internal/assert"
)

// A Config is what a World is made of. The zero Config is a world with no
// faults.
type Config struct {
	Seed   uint64
	Faults Faults
	// Instant leaves out the time that requests take: a request acts and is
	// answered without a turn, and markers are written at once. Nothing is
	// lost then, whatever Faults say. For tests of a topology, not of a
	// runtime.
	Instant bool
	// Restart starts a process again that was killed or whose main returned
	// an error, a random time later. Otherwise call [Process.Restart].
	Restart bool
	// Trace keeps a line for each thing that happens, see [World.Trace].
	Trace bool
	// Start is when virtual time begins; default 2026-01-01 UTC.
	Start time.Time
	// TxnTimeout ends open transactions; default 10 s.
	TxnTimeout time.Duration
	// Rebalance is how long a member may keep what it should give up before
	// it is put out of the group; default 60 s.
	Rebalance time.Duration
}

// Faults are how often something bad happens. None happens while a World is
// quiet, see [World.Quiet].
type Faults struct {
	Crash  int // kill -9 of the process whose turn it is, in 10,000 turns
	Freeze int // SIGSTOP of it for up to 15 s, in 10,000 turns
	Net    int // requests that are lost, unanswered or slow, in 1,000
	Late   int // requests that act up to 3 s later, when their sender no longer waits, in 1,000
	GiveUp int // lost requests of a transaction that are not tried again, in 100
}

// Stats count what happened.
type Stats struct {
	Turns, Crashes, Freezes, Exits, NetFaults, Late int
}

// A World is a broker, processes and time.
type World struct {
	cfg    Config
	rand   *rand.Rand
	broker *broker
	procs  []*Process
	cos    []*co
	born   int   // coroutines until now
	run    []*co // scratch of step
	cur    *co   // whose turn it is
	late   []late
	polls  []*consumer // parked in Poll
	reap   bool        // some coroutine is over or of a dead process
	quiet  bool
	hash   uint64
	lines  []string
	stats  Stats
}

// New makes a World.
func New(cfg Config) *World {
	if cfg.Start.IsZero() {
		cfg.Start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	}
	if cfg.TxnTimeout == 0 {
		cfg.TxnTimeout = 10 * time.Second
	}
	if cfg.Rebalance == 0 {
		cfg.Rebalance = time.Minute
	}
	w := &World{cfg: cfg, rand: rand.New(rand.NewPCG(cfg.Seed, 0x5e3e1)), broker: newBroker(cfg.Start), hash: 14695981039346656037}
	w.broker.txnTimeout, w.broker.rebalance = int64(cfg.TxnTimeout), int64(cfg.Rebalance)
	w.broker.changed = w.changed
	w.broker.markerDelay, w.broker.eager = w.markerDelay, cfg.Instant
	return w
}

// Now is the virtual time.
func (w *World) Now() time.Time { return w.broker.time() }

// Elapsed is the virtual time since the World began.
func (w *World) Elapsed() time.Duration { return time.Duration(w.broker.now) }

// Rand is the World's source of random numbers, for whoever drives it.
func (w *World) Rand() *rand.Rand { return w.rand }

// Hash is of all turns until now: two runs with the same hash are the same.
func (w *World) Hash() uint64 { return w.hash }

// Stats are the counts until now.
func (w *World) Stats() Stats { return w.stats }

// Quiet ends the faults: no request is lost any more, nobody dies by himself,
// frozen processes go on.
func (w *World) Quiet() {
	w.quiet = true
	for _, p := range w.procs {
		p.life.frozen = 0
	}
}

// Step turns one coroutine, or moves time to the next thing that happens. It
// returns false when nothing will ever happen by itself.
func (w *World) Step() bool { return w.step(math.MaxInt64) }

// RunUntil steps until cond holds, and returns false if it does not within
// limit of virtual time.
func (w *World) RunUntil(cond func() bool, limit time.Duration) bool {
	end := w.broker.now + int64(limit)
	for !cond() {
		if !w.step(end) {
			return cond()
		}
	}
	return true
}

// Advance runs for d of virtual time.
func (w *World) Advance(d time.Duration) {
	end := w.broker.now + int64(d)
	for w.step(end) {
	}
	w.broker.now = max(w.broker.now, end)
	w.broker.tick()
}

// Idle says that everything waits for time or input: no request or marker is
// on its way, and no coroutine has its turn.
func (w *World) Idle() bool {
	if len(w.late) > 0 || len(w.broker.preparing) > 0 || w.reap {
		return false
	}
	for _, c := range w.cos {
		if c.busy || c.wake <= w.broker.now || c.life.frozen > w.broker.now {
			return false
		}
	}
	return !slices.ContainsFunc(w.procs, func(p *Process) bool { return p.restartAt > 0 })
}

// step is Step that does not go beyond the time end; it returns false when
// nothing is left until then.
func (w *World) step(end int64) bool {
	assert.That(w.cur == nil, "a process of a World turns the World")
	w.bury()
	w.restart()
	w.broker.tick()
	w.writeMarkers()
	w.arrive()
	next := w.runnable()
	if len(w.run) == 0 {
		return w.sleep(next, end)
	}
	c := w.run[0]
	if len(w.run) > 1 {
		c = w.run[w.rand.IntN(len(w.run))]
	}
	w.mix(uint64(w.broker.now)<<8 | uint64(len(w.run)))
	w.mix(uint64(c.id))
	w.stats.Turns++
	if w.strike(c) {
		return true
	}
	w.turn(c)
	return true
}

// runnable fills run with the coroutines that could go on now, and returns
// when the next one could.
func (w *World) runnable() (next int64) {
	w.run, next = w.run[:0], math.MaxInt64
	now := w.broker.now
	for _, c := range w.cos {
		at := c.wake
		if c.ctx != nil && c.ctx.Err() != nil {
			at = now
		}
		if at = max(at, c.life.frozen); at <= now {
			w.run = append(w.run, c)
		} else {
			next = min(next, at)
		}
	}
	return next
}

// markerStep is how far time moves at most while markers are to be written.
const markerStep = 500 * int64(time.Microsecond)

// sleep moves time to the next thing that happens.
func (w *World) sleep(next, end int64) bool {
	next = min(next, w.broker.next)
	for _, l := range w.late {
		next = min(next, l.at)
	}
	for _, t := range w.broker.preparing {
		next = min(next, max(t.notBefore, w.broker.now+markerStep))
	}
	for _, p := range w.procs {
		if p.restartAt > 0 {
			next = min(next, p.restartAt)
		}
	}
	if next > end || next == math.MaxInt64 {
		return false
	}
	w.broker.now = max(next, w.broker.now+1)
	return true
}

// writeMarkers writes some of the markers that are outstanding, in any order,
// now or later.
func (w *World) writeMarkers() {
	for i := 0; i < len(w.broker.preparing); i++ {
		t := w.broker.preparing[i]
		n := len(w.broker.preparing)
		if w.broker.now >= t.notBefore && w.rand.IntN(4) == 0 {
			w.broker.writeMarker(t, w.rand.IntN(len(t.markers)))
		}
		if len(w.broker.preparing) < n {
			i--
		}
	}
}

// markerDelay is mostly nothing, and sometimes, as on a busy broker, long.
func (w *World) markerDelay() int64 {
	if !w.cfg.Instant && !w.quiet && w.cfg.Faults.Net > 0 && w.rand.IntN(20) == 0 {
		return w.rand.Int64N(800 * int64(time.Millisecond))
	}
	return 0
}

func (w *World) mix(v uint64) { w.hash = (w.hash ^ v) * 1099511628211 }
