package runtime

// The mutants: what a mistake in the commit protocol would be, and where it
// is made.
const (
	storeBeforeEnd  = "store-before-end"  // rows reach the disk before the outcome of the commit is known
	offsetsOutside  = "offsets-outside"   // offsets are committed beside the transaction
	skipRewind      = "skip-rewind"       // after an abort reading goes on where it was
	keepRevoked     = "keep-revoked"      // a revoked task stays wanted
	guessOutcome    = "guess-outcome"     // an unknown outcome is taken for a commit
	dropLast        = "drop-last"         // the last record of a batch is passed over
	restoreToStable = "restore-to-stable" // a restore ends at the last stable offset
)

// Mutants are all of them.
var Mutants = []string{storeBeforeEnd, offsetsOutside, skipRewind, keepRevoked, guessOutcome, dropLast, restoreToStable}
