package runtime

import (
	"context"
	"errors"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/semelstream/semel/internal/seam"
	"github.com/semelstream/semel/txn"
)

// explain is [Explain] for this app.
func (a *App) explain(err error) error { return Explain(a.cfg.App, err) }

// Explain gives an error that ends the app a code and a hint, unless it has
// one. Where it comes from is in its text already.
func Explain(app string, err error) error {
	var f *Fault
	var s *Stopper
	switch {
	case err == nil, errors.As(err, &f), errors.As(err, &s), errors.Is(err, context.Canceled):
		return err
	}
	for _, k := range known {
		for _, code := range k.is {
			if errors.Is(err, code) {
				return fault(k.code, k.what, whereOf(app, err), err, k.do)
			}
		}
	}
	if txn.Judge(err) == txn.OutcomeFatal {
		return fault("KAFKA", "the brokers refuse what the app needs", whereOf(app, err), err,
			"see the cause: it does not go away by itself")
	}
	return err
}

// whereOf names the app, and the topic if a record was refused.
func whereOf(app string, err error) string {
	where := "app " + app
	var p *seam.ProduceError
	if errors.As(err, &p) {
		where += ", topic " + p.Record.Topic
	}
	return where
}

// known are errors of Kafka that users can mend, the first that fits counts.
var known = []struct {
	code, what, do string
	is             []error
}{
	{"TXN-VERSION", "the cluster is not fit for exactly-once",
		"do what the cause says; Config.AllowTransactionV1 goes on without, and Config.AtLeastOnce needs no transactions",
		[]error{txn.ErrClusterUnfit}},
	{"LOST-MARKERS", "brokers have lost the markers of a transaction that has ended",
		"do what the cause says; nothing is lost, and nothing is processed until then",
		[]error{txn.ErrLostMarkers}},
	{"ACL", "a permission is missing",
		"give the app's principal what the cause names; the reference lists all that an app needs",
		[]error{kerr.TopicAuthorizationFailed, kerr.GroupAuthorizationFailed, kerr.ClusterAuthorizationFailed,
			kerr.TransactionalIDAuthorizationFailed, kerr.DelegationTokenAuthorizationFailed}},
	{"LOGIN", "the brokers do not accept the app's credentials",
		"correct the SASL options in Config.Client",
		[]error{kerr.SaslAuthenticationFailed, kerr.UnsupportedSaslMechanism, kerr.IllegalSaslState, kerr.SecurityDisabled, kerr.DelegationTokenExpired}},
	{"TOO-LARGE", "a record is too large for its topic",
		"raise the topic's max.message.bytes and start again, or make smaller records",
		[]error{kerr.MessageTooLarge, kerr.RecordListTooLarge}},
	{"NO-TOPIC", "a topic is not there any more",
		"create it again, or correct its name in the topology; if it was made anew, begin anew under another AppID",
		[]error{kerr.UnknownTopicOrPartition, kerr.InvalidTopicException}},
	{"OFFSET-META", "the operators' times do not fit into the metadata of the committed offsets",
		"raise the brokers' offset.metadata.max.bytes",
		[]error{kerr.OffsetMetadataTooLarge, kerr.InvalidCommitOffsetSize}},
}
