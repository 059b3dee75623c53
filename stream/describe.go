package stream

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/semelstream/semel/internal/assert"
	"github.com/semelstream/semel/stream/internal/graph"
)

// Describe renders the graph as text that is the same on every run, fit for
// a golden file and for the console: sub-topologies, operators, stores,
// internal topics.
func (t *Topology) Describe() string {
	var s strings.Builder
	for _, sub := range describe(t.graph).Subs {
		fmt.Fprintf(&s, "sub-topology %d\n", sub.ID)
		for _, o := range sub.Operators {
			fmt.Fprintf(&s, "  %s\n", o.text())
		}
		for _, st := range sub.Stores {
			fmt.Fprintf(&s, "  %s\n", st.text())
		}
		for _, group := range sub.Copartitioned {
			fmt.Fprintf(&s, "  partitioned alike: %s\n", quoted(group))
		}
	}
	for _, g := range describe(t.graph).Globals {
		fmt.Fprintf(&s, "%s\n", g.text())
	}
	return s.String()
}

// DescribeJSON is [Topology.Describe] for programs. It says more of stores: the
// names of their codecs ([codec.Name]) and what their windows are.
func (t *Topology) DescribeJSON() []byte {
	out, err := json.MarshalIndent(describe(t.graph), "", "  ")
	assert.That(err == nil, "a description cannot be encoded: %v", err)
	return append(out, '\n')
}

// A description is a graph as it is shown.
type description struct {
	Subs    []subText    `json:"subTopologies"`
	Globals []globalText `json:"globalTables,omitempty"`
	Left    []storeText  `json:"left,omitempty"` // stores of earlier versions, in what an app keeps
}

type subText struct {
	ID            int            `json:"id"`
	Operators     []operatorText `json:"operators"`
	Stores        []storeText    `json:"stores,omitempty"`
	Copartitioned [][]string     `json:"partitionedAlike,omitempty"`
}

type operatorText struct {
	Name    string     `json:"name"`
	Kind    string     `json:"kind"`
	Parents []string   `json:"parents,omitempty"`
	Reads   *topicText `json:"reads,omitempty"`
	Writes  *topicText `json:"writes,omitempty"`
	Stores  []string   `json:"stores,omitempty"`
	Global  string     `json:"globalTable,omitempty"` // that it looks up
}

type topicText struct {
	Name        string `json:"name,omitempty"`
	Repartition bool   `json:"repartition,omitempty"`
	Whole       bool   `json:"whole,omitempty"`   // nothing follows the name of this repartition topic
	Dynamic     bool   `json:"dynamic,omitempty"` // chosen by record
	Pattern     bool   `json:"pattern,omitempty"` // all topics that match the name
	Partitions  int    `json:"partitions,omitempty"`
	PartitionBy string `json:"partitionBy,omitempty"` // the function's name, if there is one
	From        string `json:"from,omitempty"`        // where reading begins, if not at the beginning
}

type storeText struct {
	Name      string            `json:"name"`
	Kind      string            `json:"kind"`
	InMemory  bool              `json:"inMemory,omitempty"`
	Changelog bool              `json:"changelog"`
	Source    string            `json:"source,omitempty"` // the topic that is the changelog
	Config    map[string]string `json:"config,omitempty"`
	Retain    int64             `json:"retainMs,omitempty"`   // of windows, sessions and versions
	Double    bool              `json:"duplicates,omitempty"` // several rows under one key and start
	Once      bool              `json:"once,omitempty"`       // rows that are put once, many to a record of the changelog
	ByKey     bool              `json:"byKey,omitempty"`      // a window store whose rows lie by key, not by time
	Panes     bool              `json:"panes,omitempty"`      // rows are of panes, of which windows are made
	Windows   string            `json:"windows,omitempty"`    // what the starts of rows mean
	Key       string            `json:"key,omitempty"`        // codec
	Value     string            `json:"value,omitempty"`      // codec
	Format    byte              `json:"format,omitempty"`     // of rows in the changelog, if they say it
}

type globalText struct {
	Name     string    `json:"name"`
	Topic    topicText `json:"topic"`
	InMemory bool      `json:"inMemory,omitempty"`
}

func describe(g *graph.Graph) description {
	d := description{Subs: []subText{}}
	for _, sub := range g.Subs {
		s := subText{ID: sub.ID}
		for _, n := range sub.Nodes {
			s.Operators = append(s.Operators, describeNode(n))
		}
		for _, st := range sub.Stores {
			s.Stores = append(s.Stores, describeStore(st))
		}
		for _, group := range sub.Copart {
			var names []string
			for _, t := range group {
				names = append(names, t.Name)
			}
			s.Copartitioned = append(s.Copartitioned, names)
		}
		d.Subs = append(d.Subs, s)
	}
	for _, t := range g.Globals {
		d.Globals = append(d.Globals, globalText{t.Store, *describeTopic(t.Topic), t.InMemory})
	}
	return d
}

func describeNode(n *graph.Node) operatorText {
	o := operatorText{Name: n.Name, Kind: n.Kind}
	for _, p := range n.Parents {
		o.Parents = append(o.Parents, p.Name)
	}
	for _, s := range n.Stores {
		o.Stores = append(o.Stores, s.Name)
	}
	if n.Global != nil {
		o.Global = n.Global.Store
	}
	switch n.Kind {
	case graph.Source:
		o.Reads = describeTopic(n.Topic)
		o.Reads.From = fromText(n.Topic.Reset)
	case graph.Sink:
		o.Writes = describeTopic(n.Topic)
	}
	return o
}

func describeTopic(t *graph.Topic) *topicText {
	d := &topicText{Name: t.Name, Repartition: t.Internal, Whole: t.Whole, Dynamic: t.Dynamic, Pattern: t.Pattern != nil, Partitions: t.Partitions}
	if p, ok := t.Partition.(partitioner); ok {
		d.PartitionBy = p.function
	}
	return d
}

func fromText(r graph.Reset) string {
	switch {
	case r.End:
		return "the end"
	case r.Ago > 0:
		return (time.Duration(r.Ago) * time.Millisecond).String() + " ago"
	}
	return ""
}

func describeStore(s *graph.Store) storeText {
	d := storeText{Name: s.Name, Kind: string(s.Kind), InMemory: s.InMemory, Changelog: !s.NoChangelog, Config: s.Config, Retain: s.Retain, Double: s.Duplicates,
		Once: s.Once, ByKey: s.ByKey, Panes: s.Panes, Windows: s.Windows, Key: s.Key, Value: s.Value, Format: s.Format}
	if s.Source != nil {
		d.Source = s.Source.Name
	}
	return d
}

func (o operatorText) text() string {
	s := o.Name + ": " + o.Kind
	if len(o.Parents) > 0 {
		s += " of " + strings.Join(o.Parents, ", ")
	}
	if o.Reads != nil {
		s += " reads " + o.Reads.text()
	}
	if o.Writes != nil {
		s += " writes " + o.Writes.text()
	}
	if len(o.Stores) > 0 {
		s += " uses store " + quoted(o.Stores)
	}
	if o.Global != "" {
		s += fmt.Sprintf(" with global table %q", o.Global)
	}
	return s
}

func (g globalText) text() string {
	s := fmt.Sprintf("global table %q of %s", g.Name, g.Topic.text())
	if g.InMemory {
		s += ", in memory"
	}
	return s
}

func (t *topicText) text() string {
	if t.Dynamic {
		return "the topic that each record names"
	}
	s := fmt.Sprintf("topic %q", t.Name)
	switch {
	case t.Repartition:
		s = "repartition " + s
	case t.Pattern:
		s = fmt.Sprintf("topics matching %q", t.Name)
	}
	if t.Partitions > 0 {
		s += fmt.Sprintf(" of %d partitions", t.Partitions)
	}
	if t.PartitionBy != "" {
		s += " partitioned by " + t.PartitionBy
	}
	if t.From != "" {
		s += " from " + t.From
	}
	return s
}

func (s storeText) text() string {
	text := fmt.Sprintf("store %q: %s", s.Name, s.shape())
	if s.Retain > 0 {
		text += ", retention " + (time.Duration(s.Retain) * time.Millisecond).String()
	}
	if s.InMemory {
		text += ", in memory"
	}
	switch {
	case s.Source != "":
		text += fmt.Sprintf(", changelog is topic %q", s.Source)
	case s.Changelog:
		text += ", changelog"
	default:
		text += ", no changelog"
	}
	for _, name := range slices.Sorted(maps.Keys(s.Config)) {
		text += fmt.Sprintf(" %s=%s", name, s.Config[name])
	}
	return text
}

// quoted is names in quotes, with commas.
func quoted(names []string) string {
	return `"` + strings.Join(names, `", "`) + `"`
}
