package demo

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/semelstream/semel/stream"
)

// counters are what a process did, as it reports them: a line of four numbers.
type counters struct{ commits, aborts, records, stores int }

func (c counters) add(o counters) counters {
	return counters{c.commits + o.commits, c.aborts + o.aborts, c.records + o.records, c.stores + o.stores}
}

func (c counters) String() string {
	return fmt.Sprintln(c.commits, c.aborts, c.records, c.stores)
}

// parse reads a line back. The last one of a process that was killed may be
// cut.
func parse(line string) (c counters, ok bool) {
	n, err := fmt.Sscan(line, &c.commits, &c.aborts, &c.records, &c.stores)
	return c, err == nil && n == 4
}

// A Reporter is a hook that writes what its process did, a line each time
// something changed: transactions committed and aborted, records, stores
// restored.
type Reporter struct {
	mu  sync.Mutex
	out io.Writer
	counters
}

// NewReporter returns a Reporter that writes to out.
func NewReporter(out io.Writer) *Reporter { return &Reporter{out: out} }

// OnTransaction implements [stream.HookTransaction].
func (r *Reporter) OnTransaction(_, records int, _ time.Duration, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.aborts++
	} else {
		r.commits++
		r.records += records
	}
	r.print()
}

// OnRestore implements [stream.HookRestore].
func (r *Reporter) OnRestore(s stream.Restore) {
	if !s.Done {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stores++
	r.print()
}

// print ignores errors: without a reader nobody misses the numbers.
func (r *Reporter) print() { _, _ = io.WriteString(r.out, r.counters.String()) }
