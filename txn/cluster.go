package txn

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// TransactionVersion is the cluster's finalized transaction.version; 0 if it
// has none.
func TransactionVersion(ctx context.Context, cl *kgo.Client) (int16, error) {
	v, _, err := transactionVersion(ctx, cl)
	return v, err
}

func transactionVersion(ctx context.Context, cl *kgo.Client) (have, possible int16, err error) {
	err = again(ctx, "txn: asking for the cluster's features", func() error {
		req := kmsg.NewPtrApiVersionsRequest()
		req.ClientSoftwareName, req.ClientSoftwareVersion = "semel", "1"
		resp, err := req.RequestWith(ctx, cl)
		if err != nil {
			return err
		}
		if err := kerr.ErrorForCode(resp.ErrorCode); err != nil {
			return err
		}
		for _, f := range resp.FinalizedFeatures {
			if f.Name == transactionFeature {
				have = f.MaxVersionLevel
			}
		}
		for _, f := range resp.SupportedFeatures {
			if f.Name == transactionFeature {
				possible = f.MaxVersion
			}
		}
		return nil
	})
	return have, possible, err
}

const transactionFeature = "transaction.version"

// CheckCluster refuses clusters whose finalized transaction.version is below
// 2 (KIP-890, Kafka 4.0): there Kafka itself can lose or tear transactions.
// The refusal wraps [ErrClusterUnfit] and says what to do. Other errors are
// about reaching the cluster, which is retried until ctx ends.
func CheckCluster(ctx context.Context, cl *kgo.Client) error {
	have, possible, err := transactionVersion(ctx, cl)
	if err != nil || have >= 2 {
		return err
	}
	seeds, _ := cl.OptValue(kgo.SeedBrokers).([]string)
	return unfit(strings.Join(seeds, ","), have, possible)
}

func unfit(brokers string, have, possible int16) error {
	todo := "upgrade the brokers to Kafka 4.0 or later, then enable it"
	if possible >= 2 {
		todo = "enable it"
	}
	return fmt.Errorf("txn: %w [SEMEL-TXN-VERSION]: transaction.version is %d on %s, exactly-once needs 2, "+
		"because below it a broker can add a late record to the next transaction, or lose one (KIP-890); %s: "+
		"kafka-features --bootstrap-server %s upgrade --feature transaction.version=2", ErrClusterUnfit, have, brokers, todo, brokers)
}

// withFix adds to an authorization error which permission is missing; name is
// the transactional id, group or topic that the step was about.
func withFix(err error, name string) error {
	for _, f := range fixes {
		if errors.Is(err, f.err) {
			return fmt.Errorf("%w: grant %s to the application's principal", err, fmt.Sprintf(f.grant, name))
		}
	}
	return err
}

var fixes = []struct {
	err   *kerr.Error
	grant string
}{
	{kerr.TransactionalIDAuthorizationFailed, "Write and Describe on the transactional id %q"},
	{kerr.GroupAuthorizationFailed, "Read on the group %q"},
	{kerr.TopicAuthorizationFailed, "Read on the inputs and Write on the outputs (this was about %q)"},
	{kerr.ClusterAuthorizationFailed, "IdempotentWrite or Describe on the cluster (this was about %q)"},
}
