package stream

import (
	"errors"
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/semelstream/semel/stream/internal/graph"
	"github.com/semelstream/semel/stream/internal/runtime"
)

// steps are the low bits of instance.at.
const (
	atFunction = iota
	atDecode
	atEncode
	atTimer
	stepBits = 2
)

var stepOps = [...]runtime.Op{
	atFunction: runtime.OpFunction, atDecode: runtime.OpDecode, atEncode: runtime.OpEncode, atTimer: runtime.OpTimer,
}

// enter notes that n's user function is about to run. Call it before each
// call, and again when a function goes on after records have left n.
func (o *opener) enter(n *graph.Node) { o.in.at = n.ID << stepBits }

// enterStep is enter for what is not the user's function.
func (o *opener) enterStep(n *graph.Node, step int) { o.in.at = n.ID<<stepBits | step }

// fail makes the failure of the record at hand, with n's policy. A failure
// that comes from further down, wrapped by whom it may be, stays the one it
// is.
func (o *opener) fail(n *graph.Node, op runtime.Op, err error) error {
	if f := (*runtime.Failure)(nil); errors.As(err, &f) {
		return f
	}
	return &runtime.Failure{Op: op, Operator: n.Name, Err: err, Policy: o.policy(n)}
}

// policy is n's own, if it has one.
func (o *opener) policy(n *graph.Node) runtime.Policy {
	if p := o.t.policies[n.ID]; p != nil {
		return p.runtime(o.app)
	}
	return nil
}

// recovered turns a panic into the failure of the record at hand.
func (in *instance) recovered(err *error) {
	p := recover() //nolint:revive // recovered is what is deferred
	if p == nil {
		return
	}
	cause, ok := p.(error)
	if !ok {
		cause = fmt.Errorf("%v", p)
	}
	var f *runtime.Failure
	if errors.As(cause, &f) { // a user threw what Emit had returned
		*err = f
		return
	}
	n := in.o.t.graph.Nodes[in.at>>stepBits]
	f = &runtime.Failure{
		Op: stepOps[in.at&(1<<stepBits-1)], Operator: n.Name, Err: panicked{cause}, Stack: debug.Stack(),
		Policy: in.o.policy(n),
	}
	if text, ok := p.(string); ok && strings.HasPrefix(text, assertion) {
		f.Policy = stop // no bug of ours is skipped
	}
	*err = f
}

// assertion is how panics of package assert begin.
const assertion = "semel: assertion failed"

// panicked is a panic as an error.
type panicked struct{ cause error }

func (p panicked) Error() string { return "panic: " + p.cause.Error() }
func (p panicked) Unwrap() error { return p.cause }
