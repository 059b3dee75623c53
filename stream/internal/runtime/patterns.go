package runtime

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/semelstream/semel/internal/seam"
	"github.com/semelstream/semel/stream/internal/graph"
)

// A source may read all topics that match a pattern. Which there are is found at
// the start and looked at again now and then; what a task reads is what the
// group's leader has assigned, since members hear of topics one after the other.
// A change goes
//
//	look: other topics match; count tasks, make what is missing, Group.Update
//	the leader plans with what it knows
//	member: tasks that read other topics are revoked and assigned in one change
//
// and the tasks are opened anew, at the committed offsets of what they read.
// What follows is of the first preparer, which looks, but for reads.

// MatchInterval is how often topics are looked for.
const MatchInterval = 5 * time.Second

// found are the topics that match, with their partitions.
type found map[*graph.Topic]map[string]int32

// all are the topics of all patterns.
func (f found) all() map[string]int32 {
	out := map[string]int32{}
	for _, topics := range f {
		maps.Copy(out, topics)
	}
	return out
}

// find asks for the topics that match; nothing without patterns.
func (a *App) find(ctx context.Context) (found, error) {
	out := found{}
	for _, t := range a.patterns() {
		out[t] = map[string]int32{}
	}
	if len(out) == 0 {
		return out, nil
	}
	all, err := a.env.Broker.AllTopics(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing the topics: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		by, err := a.matching(name)
		if err != nil {
			return nil, err
		}
		if by != nil {
			out[by][name] = all[name]
		}
	}
	return out, nil
}

func (a *App) patterns() (out []*graph.Topic) {
	for _, t := range a.graph.Topics {
		if t.Pattern != nil {
			out = append(out, t)
		}
	}
	return out
}

// matching is the pattern that matches a topic's name; nil if there is none. It
// is an error if there are two: the group has one position for each partition.
func (a *App) matching(name string) (by *graph.Topic, err error) {
	if a.isOwn(name) {
		return nil, nil
	}
	for _, t := range a.patterns() {
		if !t.Matches(name) {
			continue
		}
		if by != nil {
			return nil, fault("PATTERN", "a topic matches the patterns of two sources",
				fmt.Sprintf("topic %s matches %q%s, and %q%s", name, by.Name, a.usedBy(by), t.Name, a.usedBy(t)), ErrIncompatible,
				"change the patterns so that no topic matches both, or read all of it by one source")
		}
		by = t
	}
	return by, nil
}

// ownSuffixes are what names of an app's internal topics end with, those of
// earlier versions included.
var ownSuffixes = []string{"-changelog", "-repartition", "-subscription-registration-topic", "-subscription-response-topic", "-semel-topology"}

// isOwn says that no pattern matches the topic: it is Kafka's, or the app's own,
// and to read what one has written oneself would never end.
func (a *App) isOwn(name string) bool {
	if strings.HasPrefix(name, "__") {
		return true
	}
	if slices.ContainsFunc(a.graph.Topics, func(t *graph.Topic) bool { return t.Sink && !t.Internal && t.Name == name }) {
		return true
	}
	return strings.HasPrefix(name, a.cfg.App+"-") &&
		slices.ContainsFunc(ownSuffixes, func(end string) bool { return strings.HasSuffix(name, end) })
}

// look asks what matches now, and has the group plan anew if that has changed.
func (a *App) look(ctx context.Context) error {
	a.mu.Lock()
	g, before := a.group, a.found
	a.mu.Unlock()
	if g == nil {
		return nil
	}
	now, err := a.find(ctx)
	if err != nil {
		return err
	}
	if err := grownMatch(before.all(), now.all()); err != nil {
		return err
	}
	if maps.Equal(before.all(), now.all()) {
		return nil
	}
	a.setFound(now)
	if err := a.provide(ctx); err != nil {
		a.setFound(before) // it is new to the next look, too
		return err
	}
	a.log.Info("other topics match the patterns than before", zapTopics(before.all(), now.all())...)
	g.Update(a.subs())
	return nil
}

func (a *App) setFound(f found) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.found = f
	for name := range a.first {
		if _, ok := f.all()[name]; !ok {
			delete(a.first, name) // if it comes back it is new
		}
	}
}

// grownMatch refuses a topic that has got more partitions, as for all inputs.
func grownMatch(before, now map[string]int32) error {
	for _, name := range slices.Sorted(maps.Keys(now)) {
		if was, ok := before[name]; ok && now[name] != was {
			return grown(name, was, now[name])
		}
	}
	return nil
}

// lookSoon has somebody look without waiting for it. Any goroutine may call it.
func (a *App) lookSoon() {
	a.looks.Store(true)
	for _, p := range a.preparers {
		if p.id == 0 {
			p.wake()
		}
	}
}

// LookSoon has the app look for topics that match its patterns; for tests.
func (a *App) LookSoon() { a.lookSoon() }

// subs are the sub-topologies as the group must know them.
func (a *App) subs() []seam.Sub {
	a.mu.Lock()
	defer a.mu.Unlock()
	subs := make([]seam.Sub, len(a.graph.Subs))
	for i, s := range a.graph.Subs {
		sub := seam.Sub{Tasks: a.tasks[i], Stateful: len(s.Stores) > 0}
		for _, t := range s.Sources {
			if t.Pattern == nil {
				sub.Topics = append(sub.Topics, t.FullName(a.cfg.App))
				continue
			}
			sub.Patterns = append(sub.Patterns, t.Pattern)
			if sub.Matched == nil {
				sub.Matched = map[string]int32{}
			}
			maps.Copy(sub.Matched, a.found[t])
		}
		subs[i] = sub
	}
	return subs
}

// A task reads what the group has said, also if it is opened again after an
// error.

// setReads takes down what assigned tasks read of topics that match.
func (a *App) setReads(ch seam.Change) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, t := range ch.Revoked {
		delete(a.reads, t)
	}
	for _, t := range ch.Assigned {
		if tps := ch.Matched[t]; len(tps) > 0 {
			a.reads[t] = tps
		}
	}
}

// readsOf are the partitions of topics matching pattern that a task reads.
func (a *App) readsOf(id seam.Task, pattern *graph.Topic) (out []seam.TP) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, tp := range a.reads[id] {
		if pattern.Matches(tp.Topic) {
			out = append(out, tp)
		}
	}
	return out
}

// noteFirst takes down what matches at the start, given what the group has read,
// and for which of it the Reset of its source holds: for all when the group has
// never read any of them. What comes later is read from its beginning, so that
// nothing of it is missed.
func (a *App) noteFirst(read []string) {
	a.first = map[string]bool{}
	for _, t := range a.patterns() {
		begun := slices.ContainsFunc(read, t.Matches)
		for name := range a.found[t] {
			a.first[name] = !begun || slices.Contains(read, name)
		}
	}
}

// appeared says that the input's topic was not there when the app started, so
// that nobody can have read it before.
func (a *App) appeared(in *input) bool {
	if in.topic.Pattern == nil {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	_, old := a.first[in.tp.Topic]
	return !old
}

// resetOf says where an input begins that has no offset.
func (a *App) resetOf(in *input) graph.Reset {
	if in.topic.Pattern == nil {
		return in.topic.Reset
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.first[in.tp.Topic] {
		return in.topic.Reset
	}
	return graph.Reset{}
}
