package main

import (
	"sync"
	"time"

	"github.com/semelstream/semel/internal/seam"
)

// steps take the time between the named stops of the commit path. There is one
// clock for all workers, so they are for apps with a single one. The stops that
// it looks at come from the worker's goroutine and from that of its ending
// transaction, one after the other: the next one closes when the last has ended.
type steps struct {
	mu                             sync.Mutex
	at                             time.Time // of the last stop
	begun                          time.Time
	commit, flush, prepare, endTxn []time.Duration
}

// takeSteps has the stops of this process's apps taken.
func takeSteps() *steps {
	s := &steps{}
	seam.TestStops = s.stop
	return s
}

func (s *steps) stop(point string) {
	switch point {
	case "C1", "C2", "C4", "C5":
	default:
		return // of others, some of them of other goroutines
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	since := now.Sub(s.at)
	s.at = now
	switch point {
	case "C1":
		s.begun = now
	case "C2":
		s.flush = append(s.flush, since)
	case "C4":
		s.prepare = append(s.prepare, since)
	case "C5":
		s.endTxn = append(s.endTxn, since)
		s.commit = append(s.commit, now.Sub(s.begun))
	}
}

// forget drops what was before the mark.
func (s *steps) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.commit, s.flush, s.prepare, s.endTxn = nil, nil, nil, nil
}

func (s *steps) report(r *result) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r.Commit, r.Flush = quantilesOf(s.commit), quantilesOf(s.flush)
	r.Prepare, r.EndTxn = quantilesOf(s.prepare), quantilesOf(s.endTxn)
}
