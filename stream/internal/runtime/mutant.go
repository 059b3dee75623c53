//go:build !semelmutant

package runtime

// mutant names a deliberate fault of the commit protocol. It is empty, and
// costs nothing, but in builds with the tag semelmutant: those prove that the
// simulator and the crash checker notice.
const mutant = ""
