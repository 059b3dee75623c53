package main

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/semelstream/semel/stream"
)

// warmUps is how many runs go before those that count, at most.
const warmUps = 6

// warmUpBroker has runs with the most work for the broker until their median
// falls no further: a broker that has just started takes twice as long for
// everything until its code is compiled, which lasts minutes beside an
// application on two cores. A run has thousands of transactions; the others have
// twenty, too few for their steps to be compiled, and would measure the compiler.
// An embedded broker has nothing to compile.
func (b *bench) warmUpBroker(ctx context.Context) error {
	if !b.warm || b.c.embedded != nil {
		return nil
	}
	b.warmed = true
	last := math.Inf(1)
	for range warmUps {
		l := &latencyRun{topology: "latest", variant: "warming up", linger: 5 * time.Millisecond, set: func(s *spec) {
			s.Kind, s.Commit = kindApp, stream.Continuous
		}}
		if err := b.measureLatency(ctx, l); err != nil {
			return fmt.Errorf("%s: %w", l.topology, err)
		}
		b.say("warming up, p50 %.2f ms", l.q.P50)
		if l.q.P50 > 0.95*last {
			return nil
		}
		last = l.q.P50
	}
	return nil
}
