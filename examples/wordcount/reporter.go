package main

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/semelstream/semel/stream"
)

// A reporter writes what its process did, a line each time something changed:
//
//	transactions aborted records restores
type reporter struct {
	mu                               sync.Mutex
	out                              io.Writer
	commits, aborts, records, stores int
}

func newReporter(out io.Writer) *reporter { return &reporter{out: out} }

// OnTransaction implements [stream.HookTransaction].
func (r *reporter) OnTransaction(_, records int, _ time.Duration, err error) {
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
func (r *reporter) OnRestore(s stream.Restore) {
	if !s.Done {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stores++
	r.print()
}

func (r *reporter) print() {
	fmt.Fprintln(r.out, r.commits, r.aborts, r.records, r.stores)
}
