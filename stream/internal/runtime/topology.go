package runtime

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/zap"

	"github.com/semelstream/semel/internal/seam"
	"github.com/semelstream/semel/txn"
)

// A version that starts where another one ran finds its offsets, changelogs and
// state directories. The topology topic says what that other one was. It has
// one partition and is compacted; the last record counts. Whoever starts reads
// it before it makes anything, and writes it, if it is another one, before it
// joins the group.
//
// Two versions that start at the same moment may both find what ran before, and
// the later record stays. Nothing is lost by that: each fits what it found, and
// whoever starts next is compared with the one that stayed.

// topologyKey is the key of every record, so that compaction leaves one.
const topologyKey = "topology"

// topologyTopic has a name that no changelog or repartition topic has.
func (a *App) topologyTopic() string { return a.cfg.App + "-semel-topology" }

// keepsTopology says that there is something that the next version can fail to
// fit. With patterns the group's client also needs a topic that is there whatever
// matches.
func (a *App) keepsTopology() bool {
	if a.graph.HasPatterns() {
		return true
	}
	for _, t := range a.graph.Topics {
		if t.Internal {
			return true
		}
	}
	return len(a.graph.Stores) > 0
}

func (a *App) topologySpec() seam.TopicSpec {
	return seam.TopicSpec{
		Name: a.topologyTopic(), Partitions: 1, Replication: a.cfg.Replication, Config: map[string]string{"cleanup.policy": "compact"},
	}
}

// succeed refuses state that does not fit. What it returns is to be saved; nil
// if it is there already.
func (a *App) succeed(ctx context.Context) ([]byte, error) {
	if !a.keepsTopology() {
		return nil, nil
	}
	saved, err := a.savedTopology(ctx)
	if err != nil {
		return nil, err
	}
	s, err := a.prog.Succeed(saved)
	if err != nil {
		return nil, a.misfit(err, "see whether another program writes the topic; if it is of no use any more, delete it: nothing is compared then")
	}
	misfits := s.Misfits
	for _, u := range s.Unread {
		var left map[seam.TP]int64
		if err := a.untilDone(ctx, "reading what is left in "+u.Topic, func() (err error) {
			left, err = Unprocessed(ctx, a.env.Broker, a.cfg.App, u.Topic)
			return err
		}); err != nil {
			return nil, err
		}
		if len(left) > 0 {
			misfits = append(misfits, u.Misfit)
		}
	}
	if len(misfits) > 0 {
		return nil, a.misfit(fmt.Errorf("%w: %s", ErrIncompatible, strings.Join(misfits, "; ")),
			"the topic has the version that ran last; if that is a newer one than this, start no more of this")
	}
	for _, n := range s.Notes {
		a.log.Info("the topology has changed", zap.String("what", n))
	}
	if bytes.Equal(s.Saved, saved) {
		return nil, nil
	}
	return s.Saved, nil
}

func (a *App) misfit(err error, do string) error {
	return fault("TOPOLOGY", "what the version before has left does not fit this one", "topic "+a.topologyTopic(), err, do)
}

// savedTopology is what the version before has saved; nil if there was none.
func (a *App) savedTopology(ctx context.Context) (saved []byte, err error) {
	if a.unknown(a.topologyTopic()) {
		return nil, nil
	}
	tps := []seam.TP{{Topic: a.topologyTopic()}}
	err = a.untilDone(ctx, "reading the topology topic", func() error {
		starts, err := a.env.Broker.Starts(ctx, tps)
		if err != nil {
			return err
		}
		return readStable(ctx, a.env.Broker, starts, func(_ seam.TP, r *kgo.Record) bool {
			saved = slices.Clone(r.Value)
			return false
		})
	})
	return saved, err
}

// saveTopology writes what succeed has returned.
func (a *App) saveTopology(ctx context.Context, value []byte) error {
	if value == nil {
		return nil
	}
	return a.untilDone(ctx, "writing the topology topic", func() error {
		t, err := a.env.Broker.Txn(ctx, a.txnPrefix()+a.cfg.Instance+"-topology")
		if err != nil {
			return err
		}
		defer t.Close()
		tp := seam.TP{Topic: a.topologyTopic()}
		if err := t.Add(ctx, []seam.TP{tp}); err != nil {
			return err
		}
		t.Produce([]*kgo.Record{{Topic: tp.Topic, Key: []byte(topologyKey), Value: value, Timestamp: a.env.Clock.Now()}})
		if err := t.Prepare(ctx, seam.Member{}, nil); err != nil {
			return err
		}
		return t.End(ctx, true) // if nobody knows whether it did, it is written again
	})
}

// untilDone repeats a step whose errors pass, until ctx ends. It comes before
// joining, so that nobody waits for it but this process.
func (a *App) untilDone(ctx context.Context, what string, step func() error) error {
	for failures := 1; ; failures++ {
		err := step()
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil || txn.Judge(err) == txn.OutcomeFatal:
			return fmt.Errorf("%s: %w", what, err)
		}
		a.log.Warn("the app cannot start yet", zap.String("step", what), zap.Error(err))
		if cerr := a.env.Clock.Sleep(ctx, backoff(failures)); cerr != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
	}
}
