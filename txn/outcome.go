package txn

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"os"
	"strconv"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// An Outcome is what to do about an error: the verdict of [Judge].
//
// A [Producer] that returned an error is spent, whatever the verdict: close
// it. The verdict then says what comes after.
type Outcome uint8

const (
	// OutcomeNone is the verdict on nil and on the end of a context: nothing
	// is wrong with the transaction's world, somebody wants to stop.
	OutcomeNone Outcome = iota
	// OutcomeRetry passes by itself: the same again, a little later.
	OutcomeRetry
	// OutcomeAbort ends this transaction without effect: rewind to the stable
	// offsets and process the same records again.
	OutcomeAbort
	// OutcomeNewProducer is an abort where somebody or something took the
	// transactional id's epoch: only a new Producer goes on, after Init.
	OutcomeNewProducer
	// OutcomeUnknown may have committed or not: never guess. New Producer,
	// Init, and the stable offsets of [Committed] decide.
	OutcomeUnknown
	// OutcomeRejoin is an abort because the group went on without this member:
	// rejoin, and process what the group then assigns.
	OutcomeRejoin
	// OutcomeFatal is cured by no repetition: somebody must change a
	// permission, a configuration or a program.
	OutcomeFatal
)

// String is the outcome's name, for logs.
func (o Outcome) String() string {
	names := [...]string{"none", "retry", "abort", "new producer", "unknown", "rejoin", "fatal"}
	if int(o) < len(names) {
		return names[o]
	}
	return "outcome " + strconv.Itoa(int(o))
}

var (
	// ErrUnknownOutcome is in the chain of every error of a commit that may
	// have happened all the same.
	ErrUnknownOutcome = errors.New("it is not known whether the transaction committed")
	// ErrNoMember refuses offsets without a group member. Kafka accepts such a
	// TxnOffsetCommit in a group that has other members, with no fence at all.
	ErrNoMember = errors.New("offsets are only committed as a member of the group with its generation")
	// ErrEmpty refuses to end a transaction that has partitions but no record:
	// the client would send nothing, and what was added would leak into the
	// next transaction. Offsets alone go by [Producer.CommitOffsets].
	ErrEmpty = errors.New("the transaction has partitions but no record was produced")
	// ErrSpent is what a Producer says after an error.
	ErrSpent = errors.New("the producer failed before and must be replaced")
	// ErrClusterUnfit is in the chain of [CheckCluster]'s refusal.
	ErrClusterUnfit = errors.New("the cluster is not fit for exactly-once")
)

// Judge says what to do about an error of this package or of a Kafka client
// in the middle of a transaction. It is the one place where errors are judged.
func Judge(err error) Outcome {
	if err == nil {
		return OutcomeNone
	}
	for _, s := range sentinels {
		if errors.Is(err, s.err) {
			return s.outcome
		}
	}
	if ke, ok := errors.AsType[*kerr.Error](err); ok {
		return judgeCode(ke)
	}
	return judgeTransport(err)
}

// sentinels are judged before anything that they wrap, in this order.
var sentinels = []struct {
	err     error
	outcome Outcome
}{
	// Half of the commits that failed in broker failovers had happened.
	{ErrUnknownOutcome, OutcomeUnknown},
	{errFatal, OutcomeFatal},
	{ErrClusterUnfit, OutcomeFatal},
	{ErrLostMarkers, OutcomeFatal},
	// The member is between two lives; the group will say which comes.
	{ErrNoMember, OutcomeRejoin},
	// The id's open transaction must be ended by Init, nothing else reaches it.
	{ErrEmpty, OutcomeNewProducer},
	{ErrSpent, OutcomeNewProducer},
	{kgo.ErrClientClosed, OutcomeNewProducer},
	// kgo gives a record up only when it cannot know whether it was written.
	{kgo.ErrRecordTimeout, OutcomeNewProducer},
	{kgo.ErrRecordRetries, OutcomeNewProducer},
	{kgo.ErrAborting, OutcomeAbort},
	// More records in one transaction than the buffer holds: no repetition helps.
	{kgo.ErrMaxBuffered, OutcomeFatal},
}

// judgeCode judges what a broker said.
func judgeCode(ke *kerr.Error) Outcome {
	if o, ok := codes[ke]; ok {
		return o
	}
	// A code that is new to us: as Kafka says, else by a fresh start, which is
	// safe for every error because the stable offsets decide what to repeat.
	if ke.Retriable {
		return OutcomeRetry
	}
	return OutcomeNewProducer
}

// codes are the errors that the steps of a transaction can meet.
var codes = map[*kerr.Error]Outcome{
	// The coordinator is loading, moving or away. In a failover every one of
	// these is normal for as long as the dead broker's session lasts.
	kerr.CoordinatorLoadInProgress: OutcomeRetry,
	kerr.CoordinatorNotAvailable:   OutcomeRetry,
	kerr.NotCoordinator:            OutcomeRetry,
	kerr.RequestTimedOut:           OutcomeRetry,
	kerr.NetworkException:          OutcomeRetry,
	kerr.BrokerNotAvailable:        OutcomeRetry,
	kerr.ThrottlingQuotaExceeded:   OutcomeRetry,
	kerr.RebootstrapRequired:       OutcomeRetry,
	// Markers of the last transaction are still being written; for Init also
	// markers that a partition does not take (min.insync.replicas).
	kerr.ConcurrentTransactions: OutcomeRetry,
	// A transaction that could change the offsets is under way.
	kerr.UnstableOffsetCommit: OutcomeRetry,
	// The leader moves.
	kerr.NotLeaderForPartition:        OutcomeRetry,
	kerr.LeaderNotAvailable:           OutcomeRetry,
	kerr.ReplicaNotAvailable:          OutcomeRetry,
	kerr.FencedLeaderEpoch:            OutcomeRetry,
	kerr.UnknownLeaderEpoch:           OutcomeRetry,
	kerr.OffsetNotAvailable:           OutcomeRetry,
	kerr.EligibleLeadersNotAvailable:  OutcomeRetry,
	kerr.KafkaStorageError:            OutcomeRetry,
	kerr.NotEnoughReplicas:            OutcomeRetry,
	kerr.NotEnoughReplicasAfterAppend: OutcomeRetry,
	kerr.PreferredLeaderNotAvailable:  OutcomeRetry,
	kerr.NotController:                OutcomeRetry,
	kerr.FetchSessionIDNotFound:       OutcomeRetry,
	kerr.InvalidFetchSessionEpoch:     OutcomeRetry,
	kerr.ListenerNotFound:             OutcomeRetry,
	kerr.StaleBrokerEpoch:             OutcomeRetry,
	// Damaged on the way, the broker refused it whole.
	kerr.CorruptMessage: OutcomeRetry,
	// Topic ids of a topic made anew: metadata catches up.
	kerr.UnknownTopicID:      OutcomeRetry,
	kerr.InconsistentTopicID: OutcomeRetry,

	// Another partition of the request was refused, so this one was not tried.
	kerr.OperationNotAttempted: OutcomeAbort,
	// The broker asks for an abort, and allows one.
	kerr.TransactionAbortable: OutcomeAbort,

	// The epoch is gone: timed out by the broker, fenced by another instance,
	// or expired. Aborted, and not this process's death (KAFKA-20785).
	kerr.InvalidProducerEpoch:         OutcomeNewProducer,
	kerr.ProducerFenced:               OutcomeNewProducer,
	kerr.InvalidProducerIDMapping:     OutcomeNewProducer,
	kerr.UnknownProducerID:            OutcomeNewProducer,
	kerr.OutOfOrderSequenceNumber:     OutcomeNewProducer,
	kerr.DuplicateSequenceNumber:      OutcomeNewProducer,
	kerr.InvalidTxnState:              OutcomeNewProducer,
	kerr.TransactionCoordinatorFenced: OutcomeNewProducer,
	kerr.TransactionalIDNotFound:      OutcomeNewProducer,
	kerr.UnknownServerError:           OutcomeNewProducer,

	// The group went on: others may already read the partitions.
	kerr.IllegalGeneration:    OutcomeRejoin,
	kerr.UnknownMemberID:      OutcomeRejoin,
	kerr.FencedInstanceID:     OutcomeRejoin,
	kerr.StaleMemberEpoch:     OutcomeRejoin,
	kerr.FencedMemberEpoch:    OutcomeRejoin,
	kerr.UnreleasedInstanceID: OutcomeRejoin,
	kerr.RebalanceInProgress:  OutcomeRejoin,
	kerr.MemberIDRequired:     OutcomeRejoin,
	kerr.GroupIDNotFound:      OutcomeRejoin,

	// A permission is missing.
	kerr.TopicAuthorizationFailed:           OutcomeFatal,
	kerr.GroupAuthorizationFailed:           OutcomeFatal,
	kerr.ClusterAuthorizationFailed:         OutcomeFatal,
	kerr.TransactionalIDAuthorizationFailed: OutcomeFatal,
	kerr.DelegationTokenAuthorizationFailed: OutcomeFatal,
	kerr.DelegationTokenExpired:             OutcomeFatal,
	kerr.SaslAuthenticationFailed:           OutcomeFatal,
	kerr.UnsupportedSaslMechanism:           OutcomeFatal,
	kerr.IllegalSaslState:                   OutcomeFatal,
	kerr.SecurityDisabled:                   OutcomeFatal,
	// The topic is missing or cannot take the record. Missing is only fatal
	// after our own loops waited for metadata to catch up.
	kerr.UnknownTopicOrPartition:     OutcomeFatal,
	kerr.InvalidTopicException:       OutcomeFatal,
	kerr.InvalidPartitions:           OutcomeFatal,
	kerr.MessageTooLarge:             OutcomeFatal,
	kerr.RecordListTooLarge:          OutcomeFatal,
	kerr.InvalidRecord:               OutcomeFatal,
	kerr.InvalidTimestamp:            OutcomeFatal,
	kerr.PolicyViolation:             OutcomeFatal,
	kerr.UnsupportedForMessageFormat: OutcomeFatal,
	kerr.UnsupportedCompressionType:  OutcomeFatal,
	kerr.InvalidRequiredAcks:         OutcomeFatal,
	// Records that were to be read are gone; going on would skip silently.
	kerr.OffsetOutOfRange:           OutcomeFatal,
	kerr.OffsetMovedToTieredStorage: OutcomeFatal,
	// The client or its configuration does not fit the cluster.
	kerr.UnsupportedVersion:        OutcomeFatal,
	kerr.InvalidRequest:            OutcomeFatal,
	kerr.InvalidConfig:             OutcomeFatal,
	kerr.InvalidGroupID:            OutcomeFatal,
	kerr.InvalidTransactionTimeout: OutcomeFatal,
	kerr.InvalidSessionTimeout:     OutcomeFatal,
	kerr.InconsistentGroupProtocol: OutcomeFatal,
	kerr.GroupMaxSizeReached:       OutcomeFatal,
	kerr.OffsetMetadataTooLarge:    OutcomeFatal,
	kerr.InvalidCommitOffsetSize:   OutcomeFatal,
	kerr.UnsupportedAssignor:       OutcomeFatal,
	kerr.FeatureUpdateFailed:       OutcomeFatal,
}

// judgeTransport judges what did not come from a broker. Dial errors are
// asked for before contexts: a dial that timed out also is a
// context.DeadlineExceeded, of nobody's context.
func judgeTransport(err error) Outcome {
	if certificate(err) {
		return OutcomeFatal
	}
	if _, ok := errors.AsType[*net.OpError](err); ok {
		return OutcomeRetry
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return OutcomeNone
	}
	// A broker that closes a connection before its first answer dies, or wants
	// SASL. kgo guesses the second; in a failover the first is true, and the
	// loops say aloud what they wait for.
	if _, ok := errors.AsType[*kgo.ErrFirstReadEOF](err); ok {
		return OutcomeRetry
	}
	if _, ok := errors.AsType[*kgo.ErrDataLoss](err); ok {
		return OutcomeFatal
	}
	for _, e := range []error{io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, os.ErrDeadlineExceeded} {
		if errors.Is(err, e) {
			return OutcomeRetry
		}
	}
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		return OutcomeRetry // names of restarting brokers come back
	}
	if kgo.IsRetryableBrokerErr(err) {
		return OutcomeRetry // a connection that died under the request, by errors that kgo does not export
	}
	if te, ok := errors.AsType[interface {
		error
		Temporary() bool
	}](err); ok && te.Temporary() {
		return OutcomeRetry
	}
	// Unknown: start afresh, and let the stable offsets decide what to repeat.
	return OutcomeNewProducer
}

// certificate finds TLS handshakes that no repetition cures.
func certificate(err error) bool {
	_, a := errors.AsType[x509.UnknownAuthorityError](err)
	_, b := errors.AsType[x509.HostnameError](err)
	_, c := errors.AsType[x509.CertificateInvalidError](err)
	_, d := errors.AsType[*tls.CertificateVerificationError](err)
	_, e := errors.AsType[tls.RecordHeaderError](err)
	return a || b || c || d || e
}

// errFatal marks what [Fatal] made.
var errFatal = errors.New("fatal")
