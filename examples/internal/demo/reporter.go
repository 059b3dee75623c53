package demo

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/semelstream/semel/stream"
)

// A Reporter writes what its process did, a line each time something changed:
//
//	transactions aborted records restores
type Reporter struct {
	mu                               sync.Mutex
	out                              io.Writer
	commits, aborts, records, stores int
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

func (r *Reporter) print() {
	fmt.Fprintln(r.out, r.commits, r.aborts, r.records, r.stores)
}
