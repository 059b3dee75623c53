package runtime

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/semelstream/semel/changelog"
	"github.com/semelstream/semel/internal/seam"
	"github.com/semelstream/semel/stream/internal/graph"
)

// start checks the cluster and the topics, makes what is missing of the app's
// own, and so finds how many tasks there are. It comes before joining, so that
// an instance that cannot work takes no tasks from one that can.
func (a *App) start(ctx context.Context) error {
	if !a.cfg.AtLeastOnce {
		if err := a.env.Broker.Check(ctx); err != nil {
			return err
		}
	}
	if err := a.findTopics(ctx); err != nil {
		return err
	}
	matches, err := a.find(ctx)
	if err != nil {
		return err
	}
	a.found = matches
	if err := a.countTasks(); err != nil {
		return err
	}
	if err := a.checkGroup(ctx); err != nil {
		return err
	}
	missing, err := a.missingTopics()
	if err != nil {
		return err
	}
	next, err := a.succeed(ctx)
	if err != nil {
		return err
	}
	if err := a.makeTopics(ctx, missing); err != nil {
		return err
	}
	if err := a.checkTopics(); err != nil {
		return err
	}
	if err := a.saveTopology(ctx, next); err != nil {
		return err
	}
	return a.openGlobals()
}

// provide does what start does for topics, when other topics match.
func (a *App) provide(ctx context.Context) error {
	if err := a.describeTopics(ctx); err != nil {
		return err
	}
	if err := a.countTasks(); err != nil {
		return err
	}
	missing, err := a.missingTopics()
	if err != nil {
		return err
	}
	if err := a.makeTopics(ctx, missing); err != nil {
		return err
	}
	return a.checkTopics()
}

// findTopics gives topics that were made a moment ago some time: a broker may
// not have heard of them yet.
func (a *App) findTopics(ctx context.Context) error {
	for tries := 1; ; tries++ {
		err := a.describeTopics(ctx)
		if tries == 20 || !errors.Is(err, ErrNoTopic) {
			return err
		}
		if cerr := a.env.Clock.Sleep(ctx, 100*time.Millisecond); cerr != nil {
			return cerr
		}
	}
}

// describeTopics asks for every topic that the graph names.
func (a *App) describeTopics(ctx context.Context) error {
	names := a.graph.TopicNames(a.cfg.App)
	if a.keepsTopology() {
		names = append(names, a.topologyTopic())
	}
	slices.Sort(names)
	found, err := a.env.Broker.Topics(ctx, slices.Compact(names)...)
	if err != nil {
		return fmt.Errorf("describing topics: %w", err)
	}
	a.mu.Lock()
	if a.topics == nil {
		a.topics = map[string]seam.Topic{}
	}
	for _, name := range names {
		delete(a.topics, name)
	}
	maps.Copy(a.topics, found) // what was learned at run time stays
	a.mu.Unlock()
	for _, t := range a.graph.Topics {
		if t.Internal || t.Dynamic || t.Pattern != nil {
			continue
		}
		if _, ok := found[t.Name]; !ok {
			return fault("NO-TOPIC", "a topic of the topology does not exist", "topic "+t.Name+a.usedBy(t), ErrNoTopic,
				"create it, or correct the name in the topology")
		}
	}
	return nil
}

// usedBy says which operators name the topic.
func (a *App) usedBy(t *graph.Topic) string {
	var s []string
	for _, n := range a.graph.Nodes {
		if n.Topic == t {
			s = append(s, n.Name+" at "+n.Where)
		}
	}
	if len(s) == 0 {
		return ""
	}
	return ", used by " + strings.Join(s, ", ")
}

// countTasks finds the partition counts of repartition topics and the tasks of
// each sub-topology: as many as the largest of its sources has partitions. A
// repartition topic has, if the user did not say, as many partitions as the
// sub-topology that writes it has tasks, and topics that must agree adopt the
// count of the one that is given.
func (a *App) countTasks() error {
	counts := map[*graph.Topic]int32{}
	a.counts = counts
	behind := a.behindPatterns()
	for _, t := range a.graph.Topics {
		name := t.FullName(a.cfg.App)
		switch {
		case t.Dynamic:
		case t.Pattern != nil:
			for _, n := range a.found[t] {
				counts[t] = max(counts[t], n)
			}
		case behind[t]:
			counts[t] = a.partitions(name) // as it was made
		case !t.Internal:
			counts[t] = a.partitions(name)
		case t.Partitions > 0:
			counts[t] = int32(t.Partitions)
		}
	}
	for range len(a.graph.Subs) + 1 {
		for _, s := range a.graph.Subs {
			a.spread(s, counts, behind)
		}
	}
	var tasks []int32
	for _, s := range a.graph.Subs {
		n := int32(0)
		for _, t := range s.Sources {
			n = max(n, counts[t])
		}
		if n == 0 && !a.graph.HasPatterns() { // with patterns it may wait for a first topic
			return fault("PARTITIONS", "the number of partitions of a repartition topic cannot be found",
				"sub-topology "+strconv.Itoa(s.ID), nil, "give it with the option Partitions")
		}
		tasks = append(tasks, n)
		if err := a.checkCopartitioned(s, counts); err != nil {
			return err
		}
	}
	a.mu.Lock()
	a.tasks = tasks
	a.mu.Unlock()
	for _, t := range slices.SortedFunc(maps.Keys(counts), func(x, y *graph.Topic) int { return cmp.Compare(x.Name, y.Name) }) {
		if t.Internal {
			if err := a.note(t.FullName(a.cfg.App), counts[t]); err != nil {
				return err
			}
		}
	}
	return nil
}

// behindPatterns are the repartition topics whose count follows from what matches
// when they are made. They keep it: records find their partitions by it, and the
// topics that match come and go.
func (a *App) behindPatterns() map[*graph.Topic]bool {
	out := map[*graph.Topic]bool{}
	for _, s := range a.graph.Subs {
		if !slices.ContainsFunc(s.Sources, func(t *graph.Topic) bool { return t.Pattern != nil }) {
			continue
		}
		for _, t := range s.Sinks {
			if t.Internal && t.Partitions == 0 && !t.Follows && !a.inCopartition(t) {
				out[t] = true
			}
		}
	}
	return out
}

// spread works out counts that follow from others in one sub-topology. Those of
// fixed topics stay as they are, if they are known.
func (a *App) spread(s *graph.Sub, counts map[*graph.Topic]int32, fixed map[*graph.Topic]bool) {
	for _, group := range s.Copart {
		n := int32(0)
		for _, t := range group {
			n = max(n, counts[t])
		}
		for _, t := range group {
			if t.Pattern == nil && (counts[t] == 0 || t.Follows) {
				counts[t] = n
			}
		}
	}
	n := int32(0)
	for _, t := range s.Sources {
		n = max(n, counts[t])
	}
	for _, t := range s.Sinks {
		if t.Internal && t.Partitions == 0 && !t.Follows && !a.inCopartition(t) && (!fixed[t] || counts[t] == 0) {
			counts[t] = max(counts[t], n)
		}
	}
	for _, t := range s.Sinks {
		if t.Internal && !t.Follows && counts[t] == 0 {
			counts[t] = n
		}
	}
}

// inCopartition says that the topic must agree with one whose count is given.
func (a *App) inCopartition(t *graph.Topic) bool {
	for _, s := range a.graph.Subs {
		for _, group := range s.Copart {
			if slices.Contains(group, t) && slices.ContainsFunc(group, func(o *graph.Topic) bool { return !o.Internal || o.Partitions > 0 }) {
				return true
			}
		}
	}
	return false
}

func (a *App) checkCopartitioned(s *graph.Sub, counts map[*graph.Topic]int32) error {
	for _, group := range s.Copart {
		var all []counted
		for _, t := range group {
			all = append(all, a.counted(t, counts)...)
		}
		for _, c := range all[min(1, len(all)):] {
			if first := all[0]; c.n != first.n {
				return fault("COPARTITION", "topics that are joined or share a store have different numbers of partitions",
					fmt.Sprintf("%s has %d, %s has %d; %s", first.name, first.n, c.name, c.n, strings.TrimPrefix(a.usedBy(c.topic), ", ")),
					ErrIncompatible, "put Repartition in front of the join or store for one of them, or make the topics alike")
			}
		}
	}
	return nil
}

// A counted is a topic with its partitions.
type counted struct {
	topic *graph.Topic
	name  string
	n     int32
}

// counted are the topics that t stands for: one, or all that match.
func (a *App) counted(t *graph.Topic, counts map[*graph.Topic]int32) (out []counted) {
	if t.Pattern == nil {
		return []counted{{t, t.FullName(a.cfg.App), counts[t]}}
	}
	for _, name := range slices.Sorted(maps.Keys(a.found[t])) {
		out = append(out, counted{t, name, a.found[t][name]})
	}
	return out
}

// note keeps the partition count of an internal topic, which must be what an
// existing one has.
func (a *App) note(name string, n int32) error {
	if t, ok := a.topic(name); ok && t.Partitions != n && n > 0 {
		return fault("PARTITIONS", "an internal topic has another number of partitions than the topology needs",
			fmt.Sprintf("topic %s has %d, needed are %d", name, t.Partitions, n), ErrIncompatible,
			"input topics have grown, or the app id was used by another topology: go back to the old partition count, or begin anew under another AppID")
	}
	return nil
}

// missingTopics are the app's own topics that do not exist.
func (a *App) missingTopics() ([]seam.TopicSpec, error) {
	var specs []seam.TopicSpec
	add := func(spec seam.TopicSpec) error {
		if spec.Partitions == 0 {
			return nil // nothing matches yet: it is made when something does
		}
		if err := a.note(spec.Name, spec.Partitions); err != nil {
			return err
		}
		if a.unknown(spec.Name) {
			specs = append(specs, spec)
		}
		return nil
	}
	for _, t := range a.graph.Topics {
		if t.Internal && t.Source {
			spec := seam.TopicSpec{Name: t.FullName(a.cfg.App), Partitions: a.counts[t], Replication: a.cfg.Replication, Config: repartitionConfig()}
			if err := add(spec); err != nil {
				return nil, err
			}
		}
	}
	for _, s := range a.graph.Stores {
		if !s.NoChangelog && s.Source == nil {
			if err := add(a.changelogSpec(s)); err != nil {
				return nil, err
			}
		}
	}
	if a.keepsTopology() {
		if err := add(a.topologySpec()); err != nil {
			return nil, err
		}
	}
	return specs, nil
}

// makeTopics creates them.
func (a *App) makeTopics(ctx context.Context, specs []seam.TopicSpec) error {
	if len(specs) == 0 {
		return nil
	}
	if a.cfg.CreateNothing {
		return fault("NO-TOPIC", "internal topics are missing and Config.CreateNothing is set", specNames(specs), ErrNoTopic,
			"create them with these numbers of partitions")
	}
	if err := a.env.Broker.Create(ctx, specs); err != nil {
		return fmt.Errorf("creating internal topics (%s): %w", specNames(specs), err)
	}
	return a.describeTopics(ctx)
}

func (a *App) changelogSpec(s *graph.Store) seam.TopicSpec {
	return changelog.Spec(a.cfg.App, s.Name, a.tasks[s.Sub], a.cfg.Replication, changelogConfig(s), s.Config)
}

// cleanupText is what of a topic's configuration decides how long rows live,
// and with which times.
func cleanupText(config map[string]string) string {
	var s []string
	for _, k := range []string{"cleanup.policy", "message.timestamp.type", "min.compaction.lag.ms", "retention.ms", "retention.bytes"} {
		if v, ok := config[k]; ok {
			s = append(s, k+"="+v)
		}
	}
	return strings.Join(s, " and ")
}

func specNames(specs []seam.TopicSpec) string {
	var s []string
	for _, t := range specs {
		s = append(s, fmt.Sprintf("%s with %d", t.Name, t.Partitions))
	}
	return strings.Join(s, ", ")
}

// repartitionConfig is what Kafka Streams gives its repartition topics: they
// are purged by hand once processed.
func repartitionConfig() map[string]string {
	return map[string]string{
		"cleanup.policy": "delete", "retention.ms": "-1", "segment.bytes": "52428800", "message.timestamp.type": "CreateTime",
	}
}

// checkTopics validates what exists: the changelogs above all, since rows that
// a wrong policy deletes are lost.
func (a *App) checkTopics() error {
	for _, s := range a.graph.Stores {
		if s.NoChangelog {
			continue
		}
		name := s.ChangelogName(a.cfg.App)
		t, ok := a.topic(name)
		if a.tasks[s.Sub] == 0 {
			continue // nothing matches yet
		}
		if !ok {
			return fault("NO-TOPIC", "a changelog does not exist", "topic "+name, ErrNoTopic, "see whether it was deleted while the app started")
		}
		spec := a.changelogSpec(s)
		if s.Source != nil { // the topic's partitions and times are its own
			spec.Name, spec.Partitions = name, t.Partitions
			delete(spec.Config, "message.timestamp.type")
		}
		if err := changelog.Validate(spec, t); err != nil {
			return expires(spec, s.Name, err)
		}
	}
	for _, g := range a.graph.Globals {
		name := g.Topic.FullName(a.cfg.App)
		t, _ := a.topic(name)
		spec := seam.TopicSpec{Name: name, Partitions: t.Partitions, Config: map[string]string{"cleanup.policy": "compact"}}
		if err := changelog.Validate(spec, t); err != nil {
			return expires(spec, g.Store, err)
		}
	}
	return nil
}

func expires(spec seam.TopicSpec, store string, err error) error {
	return fault("CHANGELOG", "the configuration of a changelog loses rows or their times",
		fmt.Sprintf("topic %s of store %s: %v", spec.Name, store, err), ErrIncompatible,
		"set "+cleanupText(spec.Config)+" on the topic")
}

// checkGrowth refuses to go on when an input with state behind it has got more
// partitions: keys have moved between partitions, and their state has not.
func (a *App) checkGrowth(ctx context.Context) error {
	var names []string
	for _, t := range a.graph.Topics {
		if t.Source && !t.Internal && t.Pattern == nil {
			names = append(names, t.Name)
		}
	}
	found, err := a.env.Broker.Topics(ctx, names...)
	if err != nil {
		if ctx.Err() != nil {
			return nil //nolint:nilerr // the end of ctx is a clean stop
		}
		return fmt.Errorf("describing topics: %w", err)
	}
	for _, name := range names {
		t, ok := found[name]
		if was := a.partitions(name); ok && t.Partitions != was {
			return grown(name, was, t.Partitions)
		}
	}
	return nil
}

func grown(topic string, was, is int32) error {
	return fault("PARTITIONS", "an input topic has another number of partitions than when the app started",
		fmt.Sprintf("topic %s had %d, has %d", topic, was, is), ErrIncompatible,
		"restart the app; if state depends on the topic, begin anew under another AppID, since keys are in other partitions now")
}

// partitions is the partition count of a topic that tasks write to; 0 if there
// is none of that name.
func (a *App) partitions(name string) int32 {
	t, _ := a.topic(name)
	return t.Partitions
}

func (a *App) topic(name string) (seam.Topic, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	t, ok := a.topics[name]
	return t, ok
}

// unknown says that nobody has asked for the topic yet.
func (a *App) unknown(name string) bool {
	_, known := a.topic(name)
	return !known
}

// learn asks for a topic that is named at run time. It ends the app if a pattern
// matches the topic: to read what it writes itself would never end.
func (a *App) learn(ctx context.Context, name string) error {
	if a.isMatched(name) {
		err := fault("PATTERN", "a record is to be written to a topic that a pattern of this app matches", "topic "+name, ErrIncompatible,
			"change the pattern so that it leaves the topic out, or give the topic another name")
		a.fail(err)
		return err
	}
	found, err := a.env.Broker.Topics(ctx, name)
	if err != nil {
		return fmt.Errorf("describing topic %s: %w", name, err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.topics[name] = found[name]
	return nil
}

// maxRecord is the largest record that a topic takes.
func (a *App) maxRecord(name string) int {
	a.mu.Lock()
	config := a.topics[name].Config
	a.mu.Unlock()
	n, err := strconv.Atoi(config["max.message.bytes"])
	if err != nil {
		return 0
	}
	return n
}
