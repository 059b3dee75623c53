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
	commitBoth      = "commit-both"       // rows of the open transaction are committed with those of the ending one
	prepareEarly    = "prepare-early"     // the next transaction is committed before the outcome of the last one is known
	overtake        = "overtake"          // records go out before those of the last transaction are written
)

// Mutants are all of them.
var Mutants = []string{storeBeforeEnd, offsetsOutside, skipRewind, keepRevoked, guessOutcome, dropLast, restoreToStable, commitBoth, prepareEarly, overtake}
