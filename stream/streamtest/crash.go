package streamtest

// A Point is a place on the commit path.
type Point string

// The places where [Driver.CrashAt] can kill the instance.
const (
	BeforeOffsets Point = "C2" // outputs were sent, offsets were not
	BeforeCommit  Point = "C4" // all was sent
	UnknownCommit Point = "C5" // the commit was sent, and nobody heard the answer
	AfterCommit   Point = "C6" // committed, nothing stored yet
	AfterStore    Point = "C7" // committed and stored
)

// CrashAt kills the instance when it next comes to p and starts another on
// what disk and broker hold.
func (d *Driver) CrashAt(p Point) { d.w.KillAt(d.p, string(p)) }
