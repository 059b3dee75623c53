package runtime

import (
	"context"
	"time"
)

// growthInterval is how often the inputs' partition counts are looked at. New
// partitions change no assignment of tasks, so that nothing else would tell of
// them, and their records would wait for ever.
const growthInterval = 15 * time.Second

// watchGrowth looks at the inputs now and then. It is the first preparer's,
// which has nothing else to do most of the time.
func (p *preparer) watchGrowth(ctx context.Context) {
	if p.id != 0 {
		return
	}
	p.watchMatches(ctx)
	now := p.app.env.Clock.Now()
	if now.Before(p.growAt) {
		return
	}
	first := p.growAt.IsZero() // the start has looked
	p.growAt = now.Add(growthInterval)
	if first {
		return
	}
	if err := p.app.checkGrowth(ctx); err != nil && ctx.Err() == nil {
		p.app.fail(err)
	}
}

// watchMatches looks for topics that match the patterns: now and then, and when
// somebody has heard that there are others.
func (p *preparer) watchMatches(ctx context.Context) {
	a := p.app
	if !a.graph.HasPatterns() {
		return
	}
	now := a.env.Clock.Now()
	if !a.looks.Load() && now.Before(p.lookAt) {
		return
	}
	first := p.lookAt.IsZero() && !a.looks.Load() // the start has looked
	a.looks.Store(false)
	p.lookAt = now.Add(MatchInterval)
	if first {
		return
	}
	if err := a.look(ctx); err != nil && ctx.Err() == nil {
		a.fail(err)
	}
}
