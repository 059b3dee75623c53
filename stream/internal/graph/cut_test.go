package graph

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// A builder makes graphs for tests.
type builder struct{ Graph }

func (b *builder) node(kind string, parents ...*Node) *Node {
	n := &Node{ID: len(b.Nodes), Kind: kind, Name: fmt.Sprint(kind, len(b.Nodes))}
	b.Nodes = append(b.Nodes, n)
	for _, p := range parents {
		b.link(p, n)
	}
	return n
}

func (b *builder) link(parent, n *Node) {
	n.Parents = append(n.Parents, parent)
	parent.Children = append(parent.Children, n)
}

func (b *builder) source(topic string) *Node {
	n := b.node(Source)
	n.Topic = b.topic(topic)
	return n
}

func (b *builder) sink(topic string, parents ...*Node) *Node {
	n := b.node(Sink, parents...)
	n.Topic = b.topic(topic)
	return n
}

func (b *builder) topic(name string) *Topic {
	for _, t := range b.Topics {
		if t.Name == name {
			return t
		}
	}
	t := &Topic{Name: name}
	b.Topics = append(b.Topics, t)
	return t
}

func (b *builder) store(name string, users ...*Node) *Store {
	s := &Store{Name: name}
	b.Stores = append(b.Stores, s)
	for _, n := range users {
		n.Stores = append(n.Stores, s)
	}
	return s
}

func names(topics []*Topic) string {
	var out []string
	for _, t := range topics {
		out = append(out, t.Name)
	}
	return strings.Join(out, " ")
}

// text is what Cut made: per sub-topology nodes by ID, sources, sinks, stores
// and groups.
func (b *builder) text() string {
	var s strings.Builder
	for _, sub := range b.Subs {
		fmt.Fprintf(&s, "%d:", sub.ID)
		for _, n := range sub.Nodes {
			fmt.Fprintf(&s, " %d", n.ID)
		}
		fmt.Fprintf(&s, " | %s -> %s |", names(sub.Sources), names(sub.Sinks))
		for _, st := range sub.Stores {
			fmt.Fprintf(&s, " %s", st.Name)
		}
		for _, group := range sub.Copart {
			fmt.Fprintf(&s, " [%s]", names(group))
		}
		s.WriteString("\n")
	}
	return s.String()
}

func TestATopicInBetweenDivides(t *testing.T) {
	b := &builder{}
	a := b.source("a")
	b.sink("r", a)
	r := b.source("r")
	count := b.node("count", r)
	b.store("n", count)
	b.sink("out", count)
	b.Cut(nil)
	want := "0: 0 1 | a -> r |\n1: 2 3 4 | r -> out | n\n"
	if got := b.text(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestSubTopologiesAreNumberedByTheirFirstSource(t *testing.T) {
	b := &builder{}
	first, second, third := b.source("a"), b.source("b"), b.source("c")
	m := b.node("merge", third, first)
	b.sink("x", second)
	b.sink("y", m)
	b.Cut(nil)
	want := "0: 0 2 3 5 | a c -> y |\n1: 1 4 | b -> x |\n"
	if got := b.text(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if b.Nodes[4].Sub != 1 || b.Nodes[5].Sub != 0 {
		t.Error("nodes do not know their sub-topology")
	}
}

func TestASharedStoreUnitesAndMustBePartitionedAlike(t *testing.T) {
	b := &builder{}
	one, two, other := b.node("process", b.source("a")), b.node("process", b.source("b")), b.source("c")
	b.store("s", one, two)
	b.sink("x", other)
	b.Cut(nil)
	want := "0: 0 1 2 3 | a b ->  | s [a b]\n1: 4 5 | c -> x |\n"
	if got := b.text(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestMergedSourcesMustBePartitionedAlikeOnlyInFrontOfAStore(t *testing.T) {
	b := &builder{}
	m := b.node("merge", b.source("a"), b.source("b"))
	b.sink("x", m)
	b.Cut(nil)
	if got := b.Subs[0].Copart; got != nil {
		t.Errorf("without a store: %v", got)
	}
	b.store("s", b.node("count", m))
	b.Cut(nil)
	if got := b.Subs[0].Copart; len(got) != 1 || names(got[0]) != "a b" {
		t.Errorf("with a store: %v", got)
	}
}

func TestGroupsThatOverlapAreOne(t *testing.T) {
	b := &builder{}
	a, c, d, e := b.source("a"), b.source("c"), b.source("d"), b.source("e")
	j1, j2 := b.node("join", a, d), b.node("join", d, c)
	m := b.node("merge", j1, j2, e)
	b.Cut([]Copart{{j1, SourcesOf(j1)}, {j2, SourcesOf(j2)}})
	if got := b.Subs[0].Copart; len(got) != 1 || names(got[0]) != "a c d" {
		t.Errorf("got %v", got)
	}
	if got := names(SourcesOf(m)); got != "a c d e" {
		t.Errorf("sources of the merge are %q", got)
	}
}

func TestDynamicSinksAreNotListed(t *testing.T) {
	b := &builder{}
	a := b.source("a")
	b.sink("x", a)
	b.sink("x", a)
	b.node(Sink, a).Topic = &Topic{Dynamic: true}
	b.Cut(nil)
	if got := names(b.Subs[0].Sinks); got != "x" {
		t.Errorf("sinks are %q", got)
	}
}

func TestWhatHangsOnNoSourceIsInNoSubTopology(t *testing.T) {
	b := &builder{}
	b.sink("x", b.source("a"))
	loose := b.node("output")
	one, two := b.node("merge"), b.node("process")
	b.link(b.Nodes[0], one)
	b.link(one, two)
	b.link(two, one)
	s := b.store("unused")
	b.Cut(nil)
	for _, n := range []*Node{loose, one, two} {
		if n.Sub != -1 {
			t.Errorf("%s is in %d", n.Name, n.Sub)
		}
	}
	if s.Sub != -1 {
		t.Error("an unused store is in a sub-topology")
	}
}

// Parents may be declared after their children: outputs are.
func TestNodesAreInTopologicalOrder(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	for range 200 {
		b := &builder{}
		n := 2 + rnd.IntN(30)
		order := rnd.Perm(n) // order[i] is the place of node i
		for i := range n {
			if order[i] == 0 {
				b.source("a")
			} else {
				b.node("x")
			}
		}
		byPlace := make([]*Node, n)
		for i, p := range order {
			byPlace[p] = b.Nodes[i]
		}
		for p := 1; p < n; p++ {
			for range 1 + rnd.IntN(3) {
				b.link(byPlace[rnd.IntN(p)], byPlace[p])
			}
		}
		b.Cut(nil)
		got := b.Subs[0].Nodes
		if len(got) != n {
			t.Fatalf("%d of %d nodes", len(got), n)
		}
		for i, node := range got {
			for _, p := range node.Parents {
				if slices.Index(got, p) >= i {
					t.Fatalf("%s stands before its parent %s", node.Name, p.Name)
				}
			}
		}
	}
}
