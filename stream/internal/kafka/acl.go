package kafka

import (
	"errors"
	"fmt"

	"github.com/semelstream/semel/txn"
	"github.com/twmb/franz-go/pkg/kerr"
)

// refusals are the codes of a permission that is missing.
var refusals = []*kerr.Error{
	kerr.TopicAuthorizationFailed, kerr.GroupAuthorizationFailed, kerr.ClusterAuthorizationFailed,
	kerr.TransactionalIDAuthorizationFailed,
}

// explain adds to a refusal which permission is missing on what. Package txn
// does that itself.
func explain(err error, operation, resource string) error {
	if err == nil {
		return nil
	}
	for _, r := range refusals {
		if errors.Is(err, r) {
			return fmt.Errorf("%w: grant %s on %s to the application's principal", err, operation, resource)
		}
	}
	return err
}

// transient says that the same will work a little later: leaders and
// coordinators move, brokers restart.
func transient(err error) bool { return txn.Judge(err) == txn.OutcomeRetry }
