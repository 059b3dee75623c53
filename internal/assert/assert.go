// Package assert has the checks that are always on: what cannot happen is
// asserted where it is written and again where it is read back.
package assert

import "fmt"

// That panics with the message if ok is false. A violated assertion is a bug
// of Semel's, never of its user.
func That(ok bool, format string, args ...any) {
	if !ok {
		panic("semel: assertion failed: " + fmt.Sprintf(format, args...))
	}
}
