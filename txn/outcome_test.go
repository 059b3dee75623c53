package txn

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/semelstream/semel/internal/seam"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// never are the codes that no request of a transaction, a fetch or a group
// answers with. A code that is neither here nor in codes is new: decide.
var never = []string{
	"INVALID_FETCH_SIZE", "STALE_CONTROLLER_EPOCH", "TOPIC_ALREADY_EXISTS", "INVALID_REPLICATION_FACTOR", "INVALID_REPLICA_ASSIGNMENT",
	"LOG_DIR_NOT_FOUND", "REASSIGNMENT_IN_PROGRESS", "DELEGATION_TOKEN_AUTH_DISABLED", "DELEGATION_TOKEN_NOT_FOUND",
	"DELEGATION_TOKEN_OWNER_MISMATCH", "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED", "INVALID_PRINCIPAL_TYPE", "NON_EMPTY_GROUP",
	"TOPIC_DELETION_DISABLED", "ELECTION_NOT_NEEDED", "NO_REASSIGNMENT_IN_PROGRESS", "GROUP_SUBSCRIBED_TO_TOPIC",
	"RESOURCE_NOT_FOUND", "DUPLICATE_RESOURCE", "UNACCEPTABLE_CREDENTIAL", "INCONSISTENT_VOTER_SET", "INVALID_UPDATE_VERSION",
	"PRINCIPAL_DESERIALIZATION_FAILURE", "SNAPSHOT_NOT_FOUND", "POSITION_OUT_OF_RANGE", "DUPLICATE_BROKER_REGISTRATION",
	"BROKER_ID_NOT_REGISTERED", "INCONSISTENT_CLUSTER_ID", "FETCH_SESSION_TOPIC_ID_ERROR", "INELIGIBLE_REPLICA", "NEW_LEADER_ELECTED",
	"MISMATCHED_ENDPOINT_TYPE", "UNSUPPORTED_ENDPOINT_TYPE", "UNKNOWN_CONTROLLER_ID", "UNKNOWN_SUBSCRIPTION_ID", "TELEMETRY_TOO_LARGE",
	"INVALID_REGISTRATION", "INVALID_RECORD_STATE", "SHARE_SESSION_NOT_FOUND", "INVALID_SHARE_SESSION_EPOCH", "FENCED_STATE_EPOCH",
	"INVALID_VOTER_KEY", "DUPLICATE_VOTER", "VOTER_NOT_FOUND", "INVALID_REGULAR_EXPRESSION", "STREAMS_INVALID_TOPOLOGY",
	"STREAMS_INVALID_TOPOLOGY_EPOCH", "STREAMS_TOPOLOGY_FENCED", "SHARE_SESSION_LIMIT_REACHED", "GROUP_DELETION_FAILED",
	"STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED", "CONTROLLER_ID_NOT_REGISTERED",
}

func TestEveryErrorCodeIsJudged(t *testing.T) {
	no := map[string]bool{}
	for _, m := range never {
		if codeNamed(m) == nil {
			t.Errorf("%s is no error code", m)
		}
		no[m] = true
	}
	for c := int16(-1); c < 500; c++ {
		e, _ := errors.AsType[*kerr.Error](kerr.ErrorForCode(c))
		if e == nil || e == kerr.UnknownServerError && c != -1 {
			continue
		}
		_, judged := codes[e]
		if judged == no[e.Message] {
			t.Errorf("%s (%d): judged %v, listed as never coming %v", e.Message, c, judged, no[e.Message])
		}
		if judged && Judge(fmt.Errorf("wrapped: %w", e)) != codes[e] {
			t.Errorf("%s is judged %v behind a wrapping", e.Message, Judge(e))
		}
	}
}

func TestJudge(t *testing.T) {
	refused := &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	unknown := func(err error) error { return endError("id", true, err) }
	timedOut, cancel := context.WithDeadline(context.Background(), time.Now())
	defer cancel()
	for _, c := range []struct {
		name string
		err  error
		want Outcome
	}{
		{"nothing", nil, OutcomeNone},
		{"somebody stops", context.Canceled, OutcomeNone},
		{"a step's end", again(timedOut, "step", func() error { return kerr.NotCoordinator }), OutcomeNone},
		{"a broker is down", refused, OutcomeRetry},
		{"a dial takes too long", dialTimeout(), OutcomeRetry},
		{"a connection ends", io.EOF, OutcomeRetry},
		{"a connection ends at its first answer", &kgo.ErrFirstReadEOF{}, OutcomeRetry},
		{"a name is gone while its broker restarts", &net.DNSError{IsNotFound: true}, OutcomeRetry},
		{"a certificate that nobody trusts", fmt.Errorf("dial: %w", x509.UnknownAuthorityError{}), OutcomeFatal},
		{"coordinator moves at EndTxn", unknown(kerr.NotCoordinator), OutcomeUnknown},
		{"fenced at EndTxn, maybe by its own repetition", unknown(kerr.ProducerFenced), OutcomeUnknown},
		{"broker down at EndTxn", unknown(refused), OutcomeUnknown},
		{"deadline at EndTxn", unknown(context.DeadlineExceeded), OutcomeUnknown},
		{"EndTxn that was never sent", unknown(kerr.OperationNotAttempted), OutcomeAbort},
		{"abort fails", endError("id", false, kerr.ProducerFenced), OutcomeNewProducer},
		{"fenced", kerr.ProducerFenced, OutcomeNewProducer},
		{"the transaction timed out", kerr.InvalidProducerEpoch, OutcomeNewProducer},
		{"the group went on", kerr.IllegalGeneration, OutcomeRejoin},
		{"a static member was replaced", kerr.FencedInstanceID, OutcomeRejoin},
		{"a stale epoch of KIP-848", kerr.StaleMemberEpoch, OutcomeRejoin},
		{"no member", checkMember(Member{Group: "g", Generation: -1}), OutcomeRejoin},
		{"nothing produced", ErrEmpty, OutcomeNewProducer},
		{"used after an error", fmt.Errorf("%w: %w", ErrSpent, kerr.NotCoordinator), OutcomeNewProducer},
		{"a record too large", &seam.ProduceError{Record: &kgo.Record{Topic: "t"}, Err: kerr.MessageTooLarge}, OutcomeFatal},
		{"a permission", withFix(kerr.GroupAuthorizationFailed, "g"), OutcomeFatal},
		{"a handler's fatal error", Fatal(kerr.NotCoordinator), OutcomeFatal},
		{"an old cluster", unfit("b:9092", 1, 2), OutcomeFatal},
		{"something else", errors.New("?"), OutcomeNewProducer},
	} {
		if got := Judge(c.err); got != c.want {
			t.Errorf("%s: %v is judged %q, not %q", c.name, c.err, got, c.want)
		}
	}
}

// dialTimeout is what a dial returns whose own deadline passed.
func dialTimeout() error {
	d := net.Dialer{Deadline: time.Now().Add(-time.Second)}
	_, err := d.Dial("tcp", "127.0.0.1:1")
	return err
}

func TestWorstOfPartitions(t *testing.T) {
	const none = ""
	for _, c := range []struct{ a, b, want string }{
		{none, none, none},
		{none, "NOT_COORDINATOR", "NOT_COORDINATOR"},
		{"NOT_COORDINATOR", none, "NOT_COORDINATOR"},
		{"OPERATION_NOT_ATTEMPTED", "TOPIC_AUTHORIZATION_FAILED", "TOPIC_AUTHORIZATION_FAILED"},
		{"TOPIC_AUTHORIZATION_FAILED", "OPERATION_NOT_ATTEMPTED", "TOPIC_AUTHORIZATION_FAILED"},
		{"CONCURRENT_TRANSACTIONS", "OPERATION_NOT_ATTEMPTED", "CONCURRENT_TRANSACTIONS"},
		{"CONCURRENT_TRANSACTIONS", "ILLEGAL_GENERATION", "ILLEGAL_GENERATION"},
		{"ILLEGAL_GENERATION", "CONCURRENT_TRANSACTIONS", "ILLEGAL_GENERATION"},
	} {
		of := func(s string) error {
			if s == none {
				return nil
			}
			return codeNamed(s)
		}
		if got := worst(of(c.a), of(c.b)); got != of(c.want) {
			t.Errorf("worst(%q, %q) = %v, want %q", c.a, c.b, got, c.want)
		}
	}
}
