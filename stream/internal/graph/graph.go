// Package graph is a topology as data: nodes, sub-topologies, stores and
// topics, with no types of keys and values and nothing that runs. Package
// stream fills it, the runtime reads it, and descriptions are made from it.
package graph

import (
	"regexp"
	"slices"
)

// A Graph is a whole topology. It is immutable once [Graph.Cut] has returned.
type Graph struct {
	Nodes  []*Node  // in order of declaration, parents before children
	Stores []*Store // in order of declaration
	Topics []*Topic // every topic that is read or written, in order of first use
	Subs   []*Sub   // made by Cut

	Globals []*Global // in order of declaration
}

// A Node is an operator.
type Node struct {
	ID       int
	Kind     string // "source", "filter", "aggregate", "sink", ...
	Name     string // given or generated; unique
	Given    bool   // the user gave the name
	Where    string // file:line of the topology
	Parents  []*Node
	Children []*Node
	Topic    *Topic   // of sources and sinks
	Stores   []*Store // that it reads or writes
	Global   *Global  // that it is or joins
	Sub      int      // set by Cut
}

// A Topic is read or written. Internal ones are named without the app's
// prefix here; see [Topic.FullName].
type Topic struct {
	Name       string
	Internal   bool // a repartition topic of this app: made, purged and validated by it
	Whole      bool // of an internal topic: its full name is Name behind the app's, with nothing after it
	Follows    bool // of an internal topic: it has as many partitions as the topics that it meets, whoever writes it
	Explicit   bool // each record says its partition, so that it meets topics of any partition function
	Partitions int  // of a repartition topic if the user set it; else 0: that of the sub-topology that writes it
	Dynamic    bool // a sink that chooses the topic by record: Name is empty
	Partition  any  // the custom partition function, for comparing joined topics; nil is murmur2
	Source     bool // some node reads it
	Sink       bool // some node writes it
	Reset      Reset

	// Pattern is of a source that reads whatever topics match, which change while
	// the app runs; nil of all others. Name is its text, and no topic's name.
	Pattern *regexp.Regexp
}

// Matches says whether the whole of a topic's name matches the pattern of t.
func (t *Topic) Matches(name string) bool { return t.Pattern != nil && t.Pattern.MatchString(name) }

// Whole is re for whole names, as Kafka Streams matches them: to read
// "old-orders" by "orders" would be a surprise.
func Whole(re *regexp.Regexp) *regexp.Regexp {
	return regexp.MustCompile(`\A(?:` + re.String() + `)\z`) // it has compiled before
}

// HasPatterns says that the topics which are read may change.
func (g *Graph) HasPatterns() bool {
	return slices.ContainsFunc(g.Topics, func(t *Topic) bool { return t.Pattern != nil })
}

// FullName is the topic's name on the broker.
func (t *Topic) FullName(app string) string {
	switch {
	case !t.Internal:
		return t.Name
	case t.Whole:
		return app + "-" + t.Name
	}
	return app + "-" + t.Name + "-repartition"
}

// TopicNames are all topics that are known by name: inputs, outputs, the app's own.
func (g *Graph) TopicNames(app string) (names []string) {
	for _, t := range g.Topics {
		if !t.Dynamic && t.Pattern == nil {
			names = append(names, t.FullName(app))
		}
	}
	for _, s := range g.Stores {
		if !s.NoChangelog && s.Source == nil {
			names = append(names, s.ChangelogName(app))
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// A Reset says where a source begins when the group has no offset for it.
type Reset struct {
	End bool
	Ago int64 // milliseconds, if positive
}

// A StoreKind is a store's shape.
type StoreKind string

// The kinds of stores.
const (
	KeyValue  StoreKind = "key-value"
	Window    StoreKind = "window"
	Session   StoreKind = "session"
	Versioned StoreKind = "versioned"
)

// A Store is a state store.
type Store struct {
	Name        string
	Kind        StoreKind
	InMemory    bool
	NoChangelog bool
	Config      map[string]string // of the changelog topic
	Source      *Topic            // this topic is the changelog; none of its own is written
	Node        *Node             // that declared it
	Where       string
	Sub         int // set by Cut

	// Key and Value are the names of the codecs of its rows.
	Key, Value string
	// Windows says what the starts of its rows mean, where that is not the time
	// of a record: rows that were cut otherwise are other rows.
	Windows string

	// Panes is of window stores whose rows are of panes, of which windows are
	// made.
	Panes bool

	// Retain is for how long rows are kept, in milliseconds: a window's from its
	// start, a session's from its end, a version's from when the next one began.
	Retain int64
	// ByKey is of window stores in which the windows of one key are looked up
	// together, rather than the windows of one time.
	ByKey bool
	// Duplicates is of window stores that keep several rows under one key and
	// start.
	Duplicates bool
	// Once is of window stores whose rows are put once and then only expire.
	Once bool
	// NeverEarly is of window stores whose rows are of records at the start of
	// their window or later. What is older in the changelog than all that is kept
	// is of windows that are not.
	NeverEarly bool
	// ByTime is of stores that are also walked through in order of the ends of
	// their windows or sessions.
	ByTime bool
	// Format is the number that each row in the changelog says in its header "v"
	// that it is written in, as Kafka Streams' suppress does; 0 is no header.
	Format byte
}

// ChangelogName is the changelog topic's name on the broker.
func (s *Store) ChangelogName(app string) string {
	if s.Source != nil {
		return s.Source.FullName(app)
	}
	return app + "-" + s.Name + "-changelog"
}

// A Global is a global table: a topic that every process reads whole, outside
// of all tasks, and that every task may look up.
type Global struct {
	Store    string // its name among the stores
	Topic    *Topic
	Node     *Node // that stands for it; in no sub-topology
	InMemory bool
}

// A Sub is a sub-topology: nodes that are connected without a topic in
// between or share a store. It runs as one task per partition of its sources.
type Sub struct {
	ID      int
	Nodes   []*Node  // in topological order
	Sources []*Topic // in order of declaration; a record of topic i goes to Instance.Push(i, ...)
	Sinks   []*Topic // fixed ones, in order of declaration
	Stores  []*Store
	Copart  [][]*Topic // groups of sources that must have the same partition count and function, because a join or a shared store needs it
}
