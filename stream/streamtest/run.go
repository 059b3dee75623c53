package streamtest

import (
	"fmt"

	"github.com/semelstream/semel/stream"
)

// Run is [New] where there is no test, as in an Example: script works with the
// driver. What would fail a test is a panic, so that an Example cannot go on
// with a topology that has failed, and needs no lines to check for it.
func Run(define func(*stream.Builder), script func(d *Driver), opts ...Option) {
	tb := &noTest{}
	defer tb.clean()
	script(newDriver(tb, define, opts))
}

// A tester is what a Driver asks of a test. It is less than [testing.TB], which
// nobody but package testing can implement. Fatal and Fatalf do not return.
type tester interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
	Cleanup(f func())
}

// noTest stands for the test in [Run].
type noTest struct{ cleanups []func() }

func (*noTest) Helper()           {}
func (*noTest) Fatal(args ...any) { panic("streamtest: " + fmt.Sprint(args...)) }
func (*noTest) Fatalf(format string, args ...any) {
	panic("streamtest: " + fmt.Sprintf(format, args...))
}
func (n *noTest) Cleanup(f func()) { n.cleanups = append(n.cleanups, f) }

func (n *noTest) clean() {
	for len(n.cleanups) > 0 {
		last := len(n.cleanups) - 1
		f := n.cleanups[last]
		n.cleanups = n.cleanups[:last]
		f()
	}
}
