// Package bridge lets streamtest and the simulator run a public topology
// without a door in package stream's public API. Package stream fills the
// variables when it is loaded.
package bridge

import (
	"github.com/semelstream/semel/stream/internal/runtime"
)

var (
	// Program is a *stream.Topology as the runtime runs it.
	Program func(topology any, app string) runtime.Program
	// Policy is a stream.ErrorPolicy as the runtime asks it.
	Policy func(policy any, app string) runtime.Policy
)
