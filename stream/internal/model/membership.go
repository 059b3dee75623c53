package model

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/semelstream/semel/internal/assert"
	"github.com/semelstream/semel/internal/seam"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// defaultSession is a member's session if its config does not say.
const defaultSession = 6 * time.Second

// beatsPerSession is how many heartbeats there are in a session.
const beatsPerSession = 15

// membership is seam.Group. Heartbeats are a goroutine of their own, so they
// go on while a change waits to be done; they stop only with the process.
type membership struct {
	l   *link
	cfg seam.GroupConfig

	id         string // "" while no member
	generation int32
	owned      []seam.Task
	seq        int
	matched    map[seam.Task][]seam.TP // what owned tasks read of topics that match
	news       bool                    // our facts may be new to the leader
	rejoin     bool
	update     bool // our Subs are new to the leader

	change *seam.Change // offered, or handed out and not done
	handed bool
	err    error // fatal
	closed bool

	beat *signal // for the heartbeats
	next *signal // for Next
}

// Group implements seam.Broker.
func (l *link) Group(ctx context.Context, cfg seam.GroupConfig) (seam.Group, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if cfg.Session == 0 {
		cfg.Session = defaultSession
	}
	g := &membership{l: l, cfg: cfg, beat: &signal{w: l.w}, next: &signal{w: l.w}}
	l.w.spawn(l.life, "group", g.run)
	return g, nil
}

func (g *membership) run() {
	ctx := context.Background()
	for !g.closed && g.err == nil {
		if g.id == "" {
			g.join(ctx)
		}
		g.heartbeat(ctx)
		if g.id != "" && !g.rejoin {
			g.beat.Wait(ctx, g.cfg.Session/beatsPerSession)
		}
	}
}

func (g *membership) facts() (f seam.Facts) {
	if g.cfg.Facts != nil {
		f = g.cfg.Facts()
		f.Lags = maps.Clone(f.Lags)
	}
	return f
}

func (g *membership) join(ctx context.Context) {
	facts := g.facts()
	id, err := ask(ctx, g.l, plain("JoinGroup"), func() (string, error) { return g.l.w.broker.join(g.cfg, facts), nil })
	assert.That(err == nil, "joining failed: %v", err)
	g.id, g.generation, g.news = id, -1, false
}

// claims is what we hold or were told to take.
func (g *membership) claims() []seam.Task {
	c := slices.Clone(g.owned)
	if g.change != nil {
		c = append(c, g.change.Assigned...)
	}
	return c
}

func (g *membership) heartbeat(ctx context.Context) {
	g.seq++
	h := beat{group: g.cfg.Group, id: g.id, instance: g.cfg.Instance, seq: g.seq, owns: g.claims(), rejoin: g.rejoin}
	if g.update {
		h.subs = g.cfg.Subs
	}
	if g.news || g.rejoin {
		f := g.facts()
		h.facts = &f
	}
	type answer struct {
		generation int32
		tasks      []seam.Task
		matched    map[seam.Task][]seam.TP
	}
	var got answer
	err := g.l.call(ctx, "Heartbeat", func() (err error) {
		var a answer
		if a.generation, a.tasks, err = g.l.w.broker.heartbeat(h); err == nil && h.seq == g.seq {
			a.matched = g.l.w.broker.matched(h.group, a.tasks)
			got = a
		}
		return err
	})
	switch {
	case g.closed:
	case errors.Is(err, errLost):
	case errors.Is(err, kerr.UnknownMemberID):
		g.lose(ctx)
	case err != nil: // fenced by another one with our instance id
		g.id, g.err = "", err
		g.next.Notify()
	default:
		g.news = got.generation != g.generation
		g.generation = got.generation
		if h.rejoin {
			g.rejoin = false
		}
		if h.subs != nil && sameSubs(h.subs, g.cfg.Subs) {
			g.update = false
		}
		g.compare(got.tasks, got.matched)
	}
}

// compare offers the difference between what we have and what we should have. A
// task that reads other topics than before is given up and taken anew.
func (g *membership) compare(want []seam.Task, matched map[seam.Task][]seam.TP) {
	if g.change != nil {
		return
	}
	ch := &seam.Change{Assigned: without(want, g.owned), Revoked: without(g.owned, want), Matched: matched}
	for _, t := range want {
		if slices.Contains(g.owned, t) && !slices.Equal(matched[t], g.matched[t]) {
			ch.Assigned, ch.Revoked = append(ch.Assigned, t), append(ch.Revoked, t)
		}
	}
	slices.SortFunc(ch.Assigned, seam.Task.Compare)
	slices.SortFunc(ch.Revoked, seam.Task.Compare)
	if len(ch.Assigned)+len(ch.Revoked) > 0 {
		g.offer(ch)
	}
}

func without(a, b []seam.Task) (out []seam.Task) {
	for _, t := range a {
		if !slices.Contains(b, t) {
			out = append(out, t)
		}
	}
	slices.SortFunc(out, seam.Task.Compare)
	return out
}

func (g *membership) offer(ch *seam.Change) {
	ch.Done = func() {
		if g.change != ch {
			return // twice
		}
		g.owned, g.matched = append(without(g.owned, ch.Revoked), ch.Assigned...), ch.Matched
		g.change, g.handed = nil, false
		g.beat.Notify()
	}
	g.change = ch
	g.next.Notify()
}

// lose is being no member any more. A change that nobody has seen is void;
// one that is being obeyed comes to its end first.
func (g *membership) lose(ctx context.Context) {
	g.id = ""
	if !g.handed {
		g.change = nil
	}
	g.done(ctx)
	if len(g.owned) > 0 && !g.closed {
		g.offer(&seam.Change{Revoked: g.owned, Lost: true})
		g.done(ctx)
	}
}

// done waits until no change is under way.
func (g *membership) done(ctx context.Context) {
	for g.change != nil && !g.closed {
		g.beat.Wait(ctx, forever)
	}
}

func (g *membership) Next(ctx context.Context) (seam.Change, error) {
	for {
		switch {
		case g.closed:
			return seam.Change{}, kgo.ErrClientClosed
		case ctx.Err() != nil:
			return seam.Change{}, ctx.Err()
		case g.handed:
			assert.That(false, "%s waits for a change before the last one is done", g.cfg.Instance)
		case g.change != nil:
			g.handed = true
			return *g.change, nil
		case g.err != nil:
			return seam.Change{}, g.err
		}
		g.next.Wait(ctx, forever)
	}
}

// nobody is an id that no member has.
const nobody = "nobody"

func (g *membership) Member() seam.Member {
	m := seam.Member{Group: g.cfg.Group, ID: g.id, Instance: g.cfg.Instance, Generation: g.generation}
	if g.id == "" {
		m.ID = nobody
	}
	return m
}

func (g *membership) Rejoin() {
	g.rejoin = true
	g.beat.Notify()
}

func (g *membership) Update(subs []seam.Sub) {
	g.cfg.Subs = subs
	g.update, g.rejoin = true, true
	g.beat.Notify()
}

func (g *membership) Close(leave bool) {
	if g.closed {
		return
	}
	g.closed, g.id = true, ""
	g.beat.Notify()
	g.next.Notify()
	if leave {
		_ = tell(context.Background(), g.l, plain("LeaveGroup"), func() error {
			g.l.w.broker.leave(g.cfg.Group, g.cfg.Instance)
			return nil
		})
	}
}
