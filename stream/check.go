package stream

import (
	"fmt"
	"slices"
	"strings"

	"github.com/semelstream/semel/stream/internal/graph"
)

// check finds the mistakes that show only in the whole graph, which has been
// cut.
func (b *Builder) check() {
	if len(b.graph.Nodes) == 0 {
		b.problems = append(b.problems, &problem{where: "topology", text: "it reads nothing; begin with Builder.Stream or Builder.Table"})
	} else if len(b.graph.Subs) == 0 && len(b.graph.Globals) == len(b.graph.Nodes) {
		b.problem(b.graph.Nodes[0], "the topology has global tables and nothing that would read them; add a Builder.Stream or Builder.Table")
	}
	b.checkSources()
	b.checkPatterns()
	b.checkPolicies()
	b.checkStores()
	for _, sub := range b.graph.Subs {
		for _, group := range sub.Copart {
			b.checkGroup(group)
		}
	}
}

// checkSources finds operators that no record reaches.
func (b *Builder) checkSources() {
	for _, n := range b.graph.Nodes {
		if n.Sub >= 0 || n.Kind == graph.GlobalTable {
			continue
		}
		if len(n.Parents) == 0 {
			b.problem(n, "nothing is connected to it; name it in the option Uses of the processor that emits to it")
		} else if b.onCycle(n) {
			b.problem(n, "its records come back to it; send them through a topic with Repartition, or take the loop out")
		}
	}
}

// checkPatterns finds topics that two sources would read: the group has one
// position for each of their partitions. Of two patterns only the topics that
// there are can tell.
func (b *Builder) checkPatterns() {
	for _, n := range b.graph.Nodes {
		if n.Kind != graph.Source || n.Topic.Pattern == nil {
			continue
		}
		for _, o := range b.graph.Nodes {
			if o.Kind == graph.Source && o.Topic.Pattern == nil && !o.Topic.Internal && n.Topic.Matches(o.Topic.Name) {
				b.problem(n, "its pattern %q matches topic %q, which is read at %s too; use a pattern that leaves it out, or take the other source away",
					n.Topic.Name, o.Topic.Name, o.Where)
			}
		}
	}
}

// checkPolicies finds policies that could never do what they say.
func (b *Builder) checkPolicies() {
	for _, n := range b.graph.Nodes {
		topic, ok := b.policies[n.ID].deadLetters()
		if !ok {
			continue
		}
		if t := matching(b.graph, topic); t != nil {
			b.problem(n, "its dead letters would be read again: pattern %q matches topic %q; change the pattern so that it leaves the topic out, or give the topic another name", t.Name, topic)
		}
		if n.Kind == graph.GlobalTable {
			b.problem(n, "a global table is read outside of transactions, so that its policy cannot be DeadLetter; give it Skip or Fail")
		}
	}
}

// matching is the pattern by which g would read what it writes to a topic that
// its nodes do not name; nil if none does.
func matching(g *graph.Graph, topic string) *graph.Topic {
	written := func(t *graph.Topic) bool { return t.Sink && t.Name == topic }
	if strings.HasPrefix(topic, "__") || slices.ContainsFunc(g.Topics, written) {
		return nil // no pattern matches it
	}
	if i := slices.IndexFunc(g.Topics, func(t *graph.Topic) bool { return t.Matches(topic) }); i >= 0 {
		return g.Topics[i]
	}
	return nil
}

// onCycle says that n is its own ancestor.
func (b *Builder) onCycle(n *graph.Node) bool {
	seen := map[*graph.Node]bool{}
	var up func(m *graph.Node) bool
	up = func(m *graph.Node) bool {
		for _, p := range m.Parents {
			if p == n {
				return true
			}
			if !seen[p] {
				seen[p] = true
				if up(p) {
					return true
				}
			}
		}
		return false
	}
	return up(n)
}

func (b *Builder) checkStores() {
	for _, s := range b.graph.Stores {
		if s.Node == nil && s.Sub < 0 {
			b.problems = append(b.problems, &problem{s.Where, fmt.Sprintf("store %q", s.Name),
				"no processor uses it; name it in a processor's option Uses, or take it out"})
		}
		if s.Source != nil && s.Source.Reset != (graph.Reset{}) {
			b.problems = append(b.problems, &problem{s.Where, fmt.Sprintf("store %q", s.Name), fmt.Sprintf(
				"its topic %q is to be read from a later point than the beginning, but a table is all of its topic; leave FromEnd or FromAgo out", s.Source.Name)})
		}
	}
}

// checkGroup compares topics that are brought together by key. Their
// partition counts are compared at start, when they are known, but for those
// that the topology sets.
func (b *Builder) checkGroup(group []*graph.Topic) {
	group = slices.DeleteFunc(slices.Clone(group), func(t *graph.Topic) bool { return t.Explicit })
	for _, t := range group {
		first := group[0]
		if p, ok := t.Partition.(partitioner); ok && p.multicast {
			b.groupProblem(group, "topic %q is multicast: records of one key are in several partitions, so it cannot be joined or share a store with others; read a topic that is not", t.Name)
			return
		}
		if t.Partition != first.Partition {
			b.groupProblem(group, "topics %q and %q meet by key, but are partitioned by %v and by %v; give both the same PartitionBy, or send one through Repartition where the other has none",
				first.Name, t.Name, partitionedBy(first.Partition), partitionedBy(t.Partition))
			return
		}
	}
	var fixed *graph.Topic
	for _, t := range group {
		switch {
		case t.Partitions == 0:
		case fixed == nil:
			fixed = t
		case t.Partitions != fixed.Partitions:
			b.groupProblem(group, "repartition topics %q and %q meet by key, but have %d and %d partitions; give both the same Partitions",
				fixed.Name, t.Name, fixed.Partitions, t.Partitions)
			return
		}
	}
}

// groupProblem is the problem of the operator where the topics of group meet:
// the first that all of them reach.
func (b *Builder) groupProblem(group []*graph.Topic, format string, args ...any) {
	for _, n := range b.graph.Nodes {
		if len(n.Parents) > 0 && reached(n, group) {
			b.problem(n, format, args...)
			return
		}
	}
	var names []string
	for _, t := range group {
		names = append(names, t.Name)
	}
	b.problems = append(b.problems, &problem{"topology", "topics " + strings.Join(names, ", "), fmt.Sprintf(format, args...)})
}

func reached(n *graph.Node, group []*graph.Topic) bool {
	from := map[*graph.Topic]bool{}
	for _, t := range graph.SourcesOf(n) {
		from[t] = true
	}
	for _, t := range group {
		if !from[t] {
			return false
		}
	}
	return true
}
