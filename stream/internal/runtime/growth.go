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
	now := p.app.env.Clock.Now()
	if p.id != 0 || now.Before(p.growAt) {
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
