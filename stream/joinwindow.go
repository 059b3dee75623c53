package stream

import (
	"time"

	"github.com/semelstream/semel/stream/internal/graph"
)

// A JoinWindow says how far apart in time two records may be that join, and
// how late they may come. Its parts are whole milliseconds.
type JoinWindow struct{ from, to, grace time.Duration }

// Within joins records at most d apart, the right one before or after the
// left one. A record that comes more than d and grace behind the newest one of
// both sides is dropped.
func Within(d, grace time.Duration) JoinWindow { return JoinWindow{-d, d, grace} }

// Between joins a left record at t with right records in [t+from, t+to].
// Between(0, d, grace) wants the right one at or after the left one,
// Between(-d, 0, grace) at or before it.
//
// A left record is late when it comes more than to and grace behind the newest
// record, a right one more than -from and grace, since no partner of theirs
// can be in time any more; what is negative counts as zero.
func Between(from, to, grace time.Duration) JoinWindow { return JoinWindow{from, to, grace} }

// longestJoin bounds what a join keeps, so that sums of times cannot overflow.
const longestJoin = 100 * 365 * 24 * time.Hour

// A joinSpan is a JoinWindow in milliseconds. A left record at t and a right
// one at u join if t-before <= u <= t+after.
type joinSpan struct{ before, after, grace int64 }

// span checks w for the join n.
func (w JoinWindow) span(b *Builder, n *graph.Node) joinSpan {
	fine := func(d time.Duration) bool {
		return -longestJoin <= d && d <= longestJoin && d%time.Millisecond == 0
	}
	switch {
	case w.from > w.to && w.from == -w.to:
		b.problem(n, "its window Within(%v, ...) is negative; give it a difference of at least 0", w.to)
	case w.from > w.to:
		b.problem(n, "its window begins at %v and ends before that, at %v; write Between(from, to, grace) with from at most to", w.from, w.to)
	case w.grace < 0:
		b.problem(n, "its grace %v is negative; give it at least 0", w.grace)
	case !fine(w.from) || !fine(w.to) || !fine(w.grace):
		b.problem(n, "its window from %v to %v with grace %v cannot be kept; use whole milliseconds and at most 100 years", w.from, w.to, w.grace)
	default:
		return joinSpan{-w.from.Milliseconds(), w.to.Milliseconds(), w.grace.Milliseconds()}
	}
	return joinSpan{}
}

// leftOpen is for how long after its time, at least, a left record may meet a
// partner that is in time; rightOpen is the same for a right record. Where the
// partners are all older it is not at all.
func (s joinSpan) leftOpen() int64  { return max(s.after, 0) }
func (s joinSpan) rightOpen() int64 { return max(s.before, 0) }

// retain is for how long after its time a record may be the partner of one
// that is in time. It is what Kafka Streams keeps, but for windows that lie
// altogether before or after a record: for these that would be too short.
func (s joinSpan) retain() int64 { return s.leftOpen() + s.rightOpen() + s.grace }
