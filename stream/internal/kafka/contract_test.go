package kafka

import (
	"testing"

	"github.com/semelstream/semel/internal/seam"
	"github.com/semelstream/semel/internal/seam/seamtest"
	"github.com/semelstream/semel/txn"
)

// The contract of package seam, on an embedded broker and on a real Kafka.
func TestContract(t *testing.T) {
	everywhere(t, func(t *testing.T, w world) {
		seamtest.Run(t, seamtest.World{
			Run: func(t *testing.T, body func(seam.Env)) {
				env, closeEnv, err := NewEnv(w.config(t))
				ok(t, err)
				defer closeEnv()
				body(env)
			},
			Rejoin:  func(err error) bool { return txn.Judge(err) == txn.OutcomeRejoin },
			Session: w.session(),
			Evict: func(env seam.Env, group, instance string) {
				evict(env.Broker.(*broker), group, instance)
			},
		})
	})
}

// evict removes a static member behind its back.
func evict(b *broker, name, instance string) {
	(&group{cfg: seam.GroupConfig{Group: name, Instance: instance}, admin: b.admin, log: b.log}).leave()
}
