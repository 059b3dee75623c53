package stream

import (
	"github.com/semelstream/semel/stream/internal/bridge"
	"github.com/semelstream/semel/stream/internal/runtime"
)

func init() {
	bridge.Program = func(topology any, app string) runtime.Program { return topology.(*Topology).withApp(app) }
	bridge.Policy = func(policy any, app string) runtime.Policy {
		p, ok := policy.(ErrorPolicy)
		if !ok || p == nil {
			return nil
		}
		return p.runtime(app)
	}
}
