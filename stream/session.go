package stream

// The rules of sessions, apart from stores and values.
//
// A session is [start, end], the times of its first and last record, both
// included. A record reaches the sessions that are at most gap away and becomes
// one session with them.
//
// A session is open while end + gap + grace >= stream time, because a record
// at end + gap still belongs to it at that very time, also without any grace.
// What is not open is never touched again, however long its row is kept, so
// that a final result can be told as soon as a session is not open.

// A session is a kind of sessions.
type session struct{ gap, grace int64 }

// open is the earliest end of a session that is open at stream time now.
func (s session) open(now int64) int64 { return now - s.gap - s.grace }

// reach says which sessions a record at t becomes one with: those that end at
// earliestEnd or later and begin at latestStart or earlier.
func (s session) reach(t, now int64) (earliestEnd, latestStart int64) {
	return max(t-s.gap, s.open(now), 0), windowEnd(t, s.gap)
}

// A span of time, both ends included.
type period struct{ start, end int64 }

// with is the period from the first to the last of both.
func (p period) with(o period) period {
	return period{min(p.start, o.start), max(p.end, o.end)}
}

// point: there is one time in it.
func (p period) point() bool { return p.start == p.end }
