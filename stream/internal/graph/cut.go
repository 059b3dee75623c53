package graph

import (
	"cmp"
	"slices"
)

// A Copart says that a node brings records of several topics together by key,
// so that these topics must be partitioned alike.
type Copart struct {
	Node   *Node
	Topics []*Topic
}

// Cut divides the graph into sub-topologies: nodes that are connected with no
// topic in between, or that share a store, are in one. Their ids go in order
// of the first source. What hangs on no source, and stores that no node uses,
// are in none: their Sub is -1. So is what lies on or behind a loop.
//
// The topics in each of joins, and all topics that reach one store, become
// groups in [Sub.Copart].
func (g *Graph) Cut(joins []Copart) {
	sets := g.connect()
	subOf := map[int]*Sub{} // by representative
	g.Subs = nil
	for _, n := range g.Nodes {
		if n.Kind == Source {
			root := sets.find(n.ID)
			if subOf[root] == nil {
				subOf[root] = &Sub{ID: len(g.Subs)}
				g.Subs = append(g.Subs, subOf[root])
			}
			s := subOf[root]
			s.Sources = append(s.Sources, n.Topic)
		}
	}
	for _, st := range g.Stores {
		st.Sub = -1
	}
	for _, n := range g.Nodes {
		n.Sub = -1
	}
	for _, n := range g.inOrder() {
		s := subOf[sets.find(n.ID)]
		if s == nil {
			continue
		}
		n.Sub = s.ID
		s.Nodes = append(s.Nodes, n)
		for _, st := range n.Stores {
			st.Sub = s.ID
		}
	}
	g.fillSubs()
	g.group(joins)
}

// The kinds of nodes that mean something to this package.
const (
	Source      = "source"
	Sink        = "sink"
	GlobalTable = "global-table"
)

// connect finds out which nodes belong together.
func (g *Graph) connect() sets {
	s := newSets(len(g.Nodes))
	first := map[*Store]int{}
	for _, n := range g.Nodes {
		for _, p := range n.Parents {
			s.union(n.ID, p.ID)
		}
		for _, st := range n.Stores {
			if id, ok := first[st]; ok {
				s.union(n.ID, id)
			} else {
				first[st] = n.ID
			}
		}
	}
	return s
}

// inOrder are all nodes in topological order: parents before children, else
// in order of declaration.
func (g *Graph) inOrder() []*Node {
	waits := map[*Node]int{}
	var ready []*Node
	for _, n := range g.Nodes {
		if waits[n] = len(n.Parents); waits[n] == 0 {
			ready = append(ready, n)
		}
	}
	out := make([]*Node, 0, len(g.Nodes))
	for len(ready) > 0 {
		n := slices.MinFunc(ready, func(a, b *Node) int { return cmp.Compare(a.ID, b.ID) })
		ready = slices.DeleteFunc(ready, func(m *Node) bool { return m == n })
		out = append(out, n)
		for _, c := range n.Children {
			if waits[c]--; waits[c] == 0 {
				ready = append(ready, c)
			}
		}
	}
	return out
}

// fillSubs lists the stores and the fixed sinks of each sub-topology.
func (g *Graph) fillSubs() {
	for _, st := range g.Stores {
		if st.Sub >= 0 {
			s := g.Subs[st.Sub]
			s.Stores = append(s.Stores, st)
		}
	}
	for _, n := range g.Nodes {
		if n.Kind != Sink || n.Sub < 0 || n.Topic.Dynamic {
			continue
		}
		if s := g.Subs[n.Sub]; !slices.Contains(s.Sinks, n.Topic) {
			s.Sinks = append(s.Sinks, n.Topic)
		}
	}
}

// group makes the groups of topics that must be partitioned alike. Groups
// that overlap are one. A pattern is a group by itself where what it reads meets
// by key: it stands for many topics.
func (g *Graph) group(joins []Copart) {
	for _, sub := range g.Subs {
		s := newSets(len(sub.Sources))
		meets := map[*Topic]bool{}
		together := func(topics []*Topic) {
			for _, t := range topics {
				meets[t] = true
			}
			for _, t := range topics[min(1, len(topics)):] {
				s.union(slices.Index(sub.Sources, topics[0]), slices.Index(sub.Sources, t))
			}
		}
		for _, j := range joins {
			if j.Node.Sub == sub.ID {
				together(j.Topics)
			}
		}
		for _, st := range sub.Stores {
			together(g.reach(st))
		}
		sub.Copart = groups(sub.Sources, s, meets)
	}
}

// groups are the sets of two topics or more, and patterns of which the topics
// meet.
func groups(topics []*Topic, s sets, meets map[*Topic]bool) (out [][]*Topic) {
	bySet := make([][]*Topic, len(topics))
	for i, t := range topics {
		root := s.find(i)
		bySet[root] = append(bySet[root], t)
	}
	for _, group := range bySet {
		if len(group) > 1 || len(group) == 1 && group[0].Pattern != nil && meets[group[0]] {
			out = append(out, group)
		}
	}
	return out
}

// reach are the topics whose records reach the store.
func (g *Graph) reach(st *Store) []*Topic {
	var out []*Topic
	for _, n := range g.Nodes {
		if slices.Contains(n.Stores, st) {
			out = append(out, SourcesOf(n)...)
		}
	}
	return out
}

// SourcesOf are the topics whose records reach n with no topic in between, in
// order of declaration.
func SourcesOf(n *Node) []*Topic {
	var found []*Node
	seen := map[*Node]bool{}
	var up func(n *Node)
	up = func(n *Node) {
		if seen[n] {
			return
		}
		seen[n] = true
		if n.Kind == Source {
			found = append(found, n)
		}
		for _, p := range n.Parents {
			up(p)
		}
	}
	up(n)
	slices.SortFunc(found, func(a, b *Node) int { return cmp.Compare(a.ID, b.ID) })
	var topics []*Topic
	for _, n := range found {
		topics = append(topics, n.Topic)
	}
	return topics
}

// sets are disjoint sets of numbers; the smallest of each stands for it.
type sets []int

func newSets(n int) sets {
	s := make(sets, n)
	for i := range s {
		s[i] = i
	}
	return s
}

func (s sets) find(i int) int {
	for s[i] != i {
		s[i] = s[s[i]]
		i = s[i]
	}
	return i
}

func (s sets) union(a, b int) {
	a, b = s.find(a), s.find(b)
	s[max(a, b)] = min(a, b)
}
