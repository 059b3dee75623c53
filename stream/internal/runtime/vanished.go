package runtime

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"go.uber.org/zap"

	"github.com/semelstream/semel/internal/seam"
)

// A topic that matched a pattern may be deleted at any time, and that is no
// error: the next look leaves it out, and the group takes it from its tasks.
// Until then fetches and commits of it fail, with what ends the app for a topic
// that is named. So these errors are caught on their way into the runtime.

// vanished is such an error. It ends the session and not the app; it hides its
// cause, so that nobody judges it by that.
type vanished struct{ text string }

func (v *vanished) Error() string {
	return "a topic that matched a pattern is there no more: " + v.text
}

// vanished is err, as a *vanished if it is about the topics of patterns among
// tps, and as it was if it may be about another topic.
func (a *App) vanished(ctx context.Context, err error, tps []seam.TP) error {
	if !errors.Is(err, kerr.UnknownTopicOrPartition) && !errors.Is(err, kerr.UnknownTopicID) {
		return err
	}
	matched, named := map[string]bool{}, map[string]bool{}
	for _, tp := range tps {
		if a.isMatched(tp.Topic) {
			matched[tp.Topic] = true
		} else {
			named[tp.Topic] = true
		}
	}
	if len(matched) == 0 {
		return err
	}
	there, terr := a.env.Broker.Topics(ctx, slices.Sorted(maps.Keys(named))...)
	if terr != nil || len(there) < len(named) {
		return err
	}
	a.lookSoon()
	return &vanished{err.Error()}
}

// isMatched says that a pattern matches the name.
func (a *App) isMatched(name string) bool {
	by, err := a.matching(name)
	return by != nil && err == nil
}

// watchedBroker is the Broker of an app with patterns.
type watchedBroker struct {
	seam.Broker
	app *App
}

func (b watchedBroker) Txn(ctx context.Context, id string) (seam.Txn, error) {
	t, err := b.Broker.Txn(ctx, id)
	if err != nil {
		return nil, err
	}
	return watchedTxn{t, b.app}, nil
}

// watchedTxn is its Txn. Those who do one thing after the other on the Txn itself
// are not the runtime, so that only transactions by Open and Turn are watched.
type watchedTxn struct {
	seam.Txn
	app *App
}

func (t watchedTxn) Poll(ctx context.Context, max int, wait time.Duration) ([]seam.Batch, error) {
	batches, err := t.Txn.Poll(ctx, max, wait)
	var pe *seam.PartitionError
	if errors.As(err, &pe) {
		err = t.app.vanished(ctx, err, []seam.TP{pe.TP})
	}
	return batches, err
}

func (t watchedTxn) Open() seam.Transaction { return watchedTransaction{t.Txn.Open(), t.app} }

func (t watchedTxn) Turn() seam.Transaction { return watchedTransaction{t.Txn.Turn(), t.app} }

type watchedTransaction struct {
	seam.Transaction
	app *App
}

func (x watchedTransaction) Prepare(ctx context.Context, m seam.Member, offs seam.Offsets) error {
	return x.app.vanished(ctx, x.Transaction.Prepare(ctx, m, offs), offs.Sorted())
}

func (x watchedTransaction) CommitOffsets(ctx context.Context, m seam.Member, offs seam.Offsets) error {
	return x.app.vanished(ctx, x.Transaction.CommitOffsets(ctx, m, offs), offs.Sorted())
}

// zapTopics are what has come and gone, for the log.
func zapTopics(before, now map[string]int32) []zap.Field {
	return []zap.Field{zap.Strings("new", missingFrom(now, before)), zap.Strings("gone", missingFrom(before, now))}
}

func missingFrom(a, b map[string]int32) (names []string) {
	for _, name := range slices.Sorted(maps.Keys(a)) {
		if _, ok := b[name]; !ok {
			names = append(names, name)
		}
	}
	return names
}
