//go:build semelmutant

package runtime

import "os"

var mutant = os.Getenv("SEMEL_MUTANT")

// SetMutant chooses the fault, for tests within one process.
func SetMutant(name string) { mutant = name }
