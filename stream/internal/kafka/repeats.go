package kafka

import (
	"sync"
	"time"
)

// sayAgain is how often a warning of a client is repeated while it goes on. A
// client tries a broker that is away 20 times a second.
const sayAgain = 10 * time.Second

// repeats lets a warning through once each sayAgain.
type repeats struct {
	now func() time.Time

	mu   sync.Mutex
	said map[string]*repeat
}

type repeat struct {
	at time.Time // when it was said
	n  int       // how often it was not, since
}

func newRepeats() *repeats { return &repeats{now: time.Now, said: map[string]*repeat{}} }

// say says whether to log what, and how often it was held back since it was
// logged last.
func (r *repeats) say(what string) (say bool, held int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now, last := r.now(), r.said[what]
	if last != nil && now.Sub(last.at) < sayAgain {
		last.n++
		return false, 0
	}
	if last != nil {
		held = last.n
	}
	if len(r.said) > 1000 { // no client has that much to say
		clear(r.said)
	}
	r.said[what] = &repeat{at: now}
	return true, held
}
