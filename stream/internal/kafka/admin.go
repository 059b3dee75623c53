package kafka

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/semelstream/semel/internal/seam"
	"github.com/semelstream/semel/txn"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/zap"
)

// admin asks of the cluster as a whole.
type admin struct {
	cl   *kgo.Client
	cfg  *Config
	log  *zap.Logger
	said sync.Map // topics whose purge failed
	size batchSizes
}

var _ seam.Admin = (*admin)(nil)

const (
	// complainAfter is when a step that is repeated says so, once.
	complainAfter = 10 * time.Second
	// topicPatience is how long a topic may be unknown before that is
	// believed: brokers hear of a new one after the other.
	topicPatience = 5 * time.Second
)

// again repeats a step while its error is one that passes, until ctx ends. The
// client's own retries do not cover a dial error met while it looks for a
// coordinator, nor the codes of single partitions.
func (a *admin) again(ctx context.Context, what string, step func() error) error {
	start, complained := time.Now(), false
	for n := 0; ; n++ {
		err := step()
		if err == nil {
			return nil
		}
		if cause := ctx.Err(); cause != nil {
			return fmt.Errorf("%s: %w (last: %v)", what, cause, err)
		}
		young := errors.Is(err, kerr.UnknownTopicOrPartition) && time.Since(start) < topicPatience
		if !transient(err) && !young {
			return fmt.Errorf("%s: %w", what, err)
		}
		if !complained && time.Since(start) > complainAfter {
			complained = true
			a.log.Warn("the cluster does not answer; still trying", zap.String("step", what), zap.Error(err))
		}
		if cause := sleep(ctx, min(3*time.Millisecond<<min(n, 6), 100*time.Millisecond)); cause != nil {
			return fmt.Errorf("%s: %w (last: %v)", what, cause, err)
		}
	}
}

// complainLater is for a step that is repeated elsewhere: it says so, once,
// unless stop is called before.
func (a *admin) complainLater(what string) (stop func()) {
	t := time.AfterFunc(complainAfter, func() {
		a.log.Warn("the cluster does not answer; still trying", zap.String("step", what), zap.Strings("brokers", a.cfg.Brokers))
	})
	return func() { t.Stop() }
}

// Check refuses clusters on which exactly-once does not hold.
func (a *admin) Check(ctx context.Context) error {
	if a.cfg.AtLeastOnce {
		return nil
	}
	stop := a.complainLater("asking for the cluster's features")
	defer stop()
	err := txn.CheckCluster(ctx, a.cl)
	if err != nil && a.cfg.AllowTransactionV1 && ctx.Err() == nil && txn.Judge(err) == txn.OutcomeFatal {
		a.log.Warn("going on although the cluster is not fit, as configured", zap.Error(err))
		return nil
	}
	return err
}

// Commit is a plain OffsetCommit, fenced by the member's generation.
func (a *admin) Commit(ctx context.Context, m seam.Member, offs seam.Offsets) error {
	if len(offs) == 0 {
		return nil
	}
	return txn.CommitOffsets(ctx, a.cl, m, offs)
}
