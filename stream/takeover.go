package stream

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.uber.org/zap"

	"github.com/semelstream/semel/internal/seam"
	"github.com/semelstream/semel/stream/internal/kafka"
	"github.com/semelstream/semel/stream/internal/runtime"
)

// ErrRunning is an application that cannot be taken over since it runs.
var ErrRunning = errors.New("the application is still running")

// TakeOverOptions are the user's word on what [TakeOver] cannot know.
type TakeOverOptions struct {
	// Dead says that no process of the old application runs any more. Members
	// that it left in the group are made to leave instead of waited for, which
	// takes 10s instead of their session. One that lives after all comes back
	// and is not taken over; it loses what it has not committed yet.
	Dead bool
	// New are stores and repartition topics that the old application did not
	// have, and that begin empty: stores by name, topics as they are called
	// behind the application's id and a dash.
	New []string
}

// TakeOver makes room for t where a Kafka Streams application of the same id
// was, so that [App.Run] goes on with its offsets, stores and repartition
// topics. Stop the old application first, and call TakeOver before Run, in one
// process. It
//
//   - refuses if a store or repartition topic of t is not there, since one that
//     is named otherwise here would begin empty, and stores by [Panes], which
//     Kafka Streams does not have;
//   - waits until the old members have left the group, [Config].Session (45s)
//     at most, or makes them leave, and fails with [ErrRunning] if they live;
//   - fences the transactional ids of the old application;
//   - refuses if the old application has read a topic that t does not read, and
//     there are records in it that it has not processed.
//
// It changes no topic and no offset and can be called again, also when t runs
// already. The guide from-kafka-streams has the rest: names, what carries over,
// and how to go back.
func TakeOver(ctx context.Context, t *Topology, cfg Config, opts TakeOverOptions) error {
	if t == nil {
		return errors.New("semel: no topology: make one with Build")
	}
	if err := cfg.check(); err != nil {
		return err
	}
	to := takeOver{t: t, cfg: cfg, opts: opts}
	return publicError(cfg.AppID, runtime.Explain(cfg.AppID, to.run(ctx)))
}

// takeOver is one call of TakeOver.
type takeOver struct {
	t      *Topology
	cfg    Config
	opts   TakeOverOptions
	broker seam.Broker
}

func (t *takeOver) run(ctx context.Context) error {
	if err := t.hasRows(); err != nil {
		return err
	}
	kc := kafka.Config{AppID: t.cfg.AppID, Brokers: t.cfg.Brokers, Client: t.cfg.Client, Logger: t.cfg.Logger,
		Topics: t.t.graph.TopicNames(t.cfg.AppID)}
	env, closeEnv, err := kafka.NewEnv(kc)
	if err != nil {
		return err
	}
	defer closeEnv()
	t.broker = env.Broker
	if err := t.hasTopics(ctx); err != nil {
		return err
	}
	room := kafka.Takeover{Group: t.cfg.AppID, Session: t.cfg.Session, Evict: t.opts.Dead}
	if err := room.Run(ctx, kc); err != nil {
		return t.refused(err)
	}
	return t.leavesNothing(ctx)
}

// refused says what to do about a group that is not to be had.
func (t *takeOver) refused(err error) error {
	f := &runtime.Fault{Code: "SEMEL-TAKEOVER", What: "the application cannot be taken over", Where: "app " + t.cfg.AppID, Err: err}
	switch {
	case errors.Is(err, kafka.ErrRunning):
		f.Err = fmt.Errorf("%w: %w", ErrRunning, err)
		f.Do = "stop it; if its session.timeout.ms is longer than Config.Session, wait that long and try again"
	case errors.Is(err, kafka.ErrForeign):
		f.Do = "see whether the AppID is the application.id of the Kafka Streams application"
	case errors.Is(err, kafka.ErrNoOffsets):
		f.Do = "see whether the AppID is the application.id of the Kafka Streams application; a new application needs no TakeOver"
	default:
		return err
	}
	return f
}

// hasRows refuses stores whose rows Kafka Streams has kept otherwise.
func (t *takeOver) hasRows() error {
	for _, s := range t.t.graph.Stores {
		if s.Panes && !slices.Contains(t.opts.New, s.Name) {
			return &runtime.Fault{
				Code: "SEMEL-TAKEOVER", What: "the store's rows are of panes, which Kafka Streams does not have", Where: fmt.Sprintf("store %q", s.Name), Err: ErrIncompatible,
				Do: "leave Panes out, or give the store another name, and name it in TakeOverOptions.New, to begin empty",
			}
		}
	}
	return nil
}

// hasTopics refuses a topology with a store or repartition topic that is not
// there: under another name its rows would be left behind, and its offsets not.
func (t *takeOver) hasTopics(ctx context.Context) error {
	need, idle := t.internalTopics()
	found, err := t.broker.Topics(ctx, slices.Concat(need, idle)...)
	if err != nil {
		return fmt.Errorf("describing the internal topics: %w", err)
	}
	isThere := func(name string) bool { _, ok := found[name]; return ok }
	for _, name := range slices.DeleteFunc(idle, func(name string) bool { return !isThere(name) }) {
		t.cfg.Logger.Warn("a source table had a changelog that is not written any more: after a way back its rows would be old; ToTable would write it",
			zap.String("topic", name))
	}
	missing := slices.DeleteFunc(need, isThere)
	if len(missing) == 0 {
		return nil
	}
	return &runtime.Fault{
		Code: "SEMEL-TAKEOVER", What: "the old application has not had some of the topology's stores or repartition topics",
		Where: strings.Join(missing, ", "), Err: ErrIncompatible,
		Do: "give them the names that they have in Kafka Streams, or say in TakeOverOptions.New that they begin empty",
	}
}

// internalTopics are those that t needs, without what is said to be new, and
// the changelogs that Kafka Streams may have of tables which have none here.
func (t *takeOver) internalTopics() (need, idle []string) {
	for _, topic := range t.t.graph.Topics {
		name := topic.FullName(t.cfg.AppID)
		if topic.Internal && topic.Source && !slices.Contains(t.opts.New, strings.TrimPrefix(name, t.cfg.AppID+"-")) {
			need = append(need, name)
		}
	}
	for _, s := range t.t.graph.Stores {
		switch {
		case s.Source != nil:
			own := *s
			own.Source = nil
			idle = append(idle, own.ChangelogName(t.cfg.AppID))
		case !s.NoChangelog && !slices.Contains(t.opts.New, s.Name):
			need = append(need, s.ChangelogName(t.cfg.AppID))
		}
	}
	slices.Sort(need)
	return need, idle
}

// leavesNothing refuses a topology that does not read what the old application
// has not finished.
func (t *takeOver) leavesNothing(ctx context.Context) error {
	topics, err := t.broker.CommittedTopics(ctx, t.cfg.AppID)
	if err != nil {
		return err
	}
	for _, topic := range t.t.graph.Topics {
		if topic.Source {
			topics = slices.DeleteFunc(topics, func(name string) bool {
				return name == topic.FullName(t.cfg.AppID) || topic.Matches(name)
			})
		}
	}
	if len(topics) == 0 {
		return nil
	}
	left, err := t.unread(ctx, topics)
	if err != nil {
		return err
	}
	if len(left) == 0 {
		t.cfg.Logger.Info("topics that the old application has read, to their ends, are not read any more", zap.Strings("topics", topics))
		return nil
	}
	return &runtime.Fault{
		Code: "SEMEL-TAKEOVER", What: "the old application has not processed all records of topics that the topology does not read",
		Where: strings.Join(left, ", "), Err: ErrIncompatible,
		Do: "read them here too, give repartition topics the names that they have in Kafka Streams, or let the old application finish first; to leave the records, delete the group's offsets of these topics",
	}
}

// unread are the partitions of topics in which records wait, with the first.
func (t *takeOver) unread(ctx context.Context, topics []string) (left []string, err error) {
	// Nothing of the old application's is open any more, so nothing is fenced.
	first, err := runtime.Unprocessed(ctx, t.broker, t.cfg.AppID, topics...)
	for _, tp := range seam.SortedTPs(first) {
		left = append(left, fmt.Sprintf("%s from offset %d", tp, first[tp]))
	}
	return left, err
}
