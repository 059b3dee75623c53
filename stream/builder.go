package stream

import (
	"fmt"
	"path/filepath"
	"reflect"
	goruntime "runtime"
	"strings"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/stream/internal/graph"
)

// A Builder collects operators and is valid inside the function given to
// [Build]. Mistakes are kept and reported there, so calls chain freely.
type Builder struct {
	graph    *graph.Graph
	names    map[string]*graph.Node
	stores   map[string]*graph.Store
	topics   map[string]*topicUse
	policies map[int]ErrorPolicy // by node id
	codecs   map[reflect.Type]any
	sources  map[*graph.Topic]openSource
	globals  map[string]globalTable // by store
	shapes   map[string]shape       // of stores by window
	coparts  []graph.Copart
	counts   map[string]int // of generated names, by kind
	problems []error
	done     bool
}

func newBuilder() *Builder {
	return &Builder{
		graph:    &graph.Graph{},
		names:    map[string]*graph.Node{},
		stores:   map[string]*graph.Store{},
		topics:   map[string]*topicUse{},
		policies: map[int]ErrorPolicy{},
		codecs:   map[reflect.Type]any{},
		sources:  map[*graph.Topic]openSource{},
		globals:  map[string]globalTable{},
		shapes:   map[string]shape{},
		counts:   map[string]int{},
	}
}

// Codec makes c the codec of T wherever an operator needs one and none is
// inherited from a topic or named by [KeyCodec] or [ValueCodec]. Types
// without use [codec.For].
func (b *Builder) Codec[T any](c codec.Codec[T]) {
	if c == nil {
		b.problem(nil, "Builder.Codec got no codec for %v; write b.Codec(codec.JSON[%[1]v]()) or another codec", reflect.TypeFor[T]())
		return
	}
	b.codecs[reflect.TypeFor[T]()] = c
}

// add makes a node. Nobody else does.
func (b *Builder) add(kind string, set settings, parents ...*graph.Node) *graph.Node {
	if b.done {
		panic("stream: a Builder was used after Build had returned; declare the whole topology inside the function given to Build")
	}
	n := &graph.Node{ID: len(b.graph.Nodes), Kind: kind, Where: caller(), Sub: -1}
	b.graph.Nodes = append(b.graph.Nodes, n)
	b.name(n, set.name)
	if set.policy != nil {
		b.policies[n.ID] = set.policy
	}
	for _, p := range parents {
		b.link(p, n)
	}
	return n
}

// link makes n a child of parent.
func (b *Builder) link(parent, n *graph.Node) {
	if !b.owns(parent) {
		b.problem(n, "it uses a stream or table of another Builder; declare all that belongs together in one function given to Build")
		return
	}
	parent.Children = append(parent.Children, n)
	n.Parents = append(n.Parents, parent)
}

func (b *Builder) owns(n *graph.Node) bool {
	return n.ID < len(b.graph.Nodes) && b.graph.Nodes[n.ID] == n
}

// name gives n its name. A given name takes precedence over a generated one,
// which makes way.
func (b *Builder) name(n *graph.Node, given string) {
	if given == "" {
		n.Name = b.freeName(n.Kind)
		b.names[n.Name] = n
		return
	}
	n.Name, n.Given = given, true
	switch old := b.names[given]; {
	case old == nil:
	case old.Given:
		b.problem(n, "the name is taken by the operator at %s; give each operator a name of its own", old.Where)
		return
	default:
		old.Name = b.freeName(old.Kind)
		b.names[old.Name] = old
	}
	b.names[given] = n
}

// freeName is kind with the next number that is free.
func (b *Builder) freeName(kind string) string {
	for {
		b.counts[kind]++
		name := fmt.Sprintf("%s-%d", kind, b.counts[kind])
		if b.names[name] == nil {
			return name
		}
	}
}

// autoName names n after something of the user's, unless the user's own name
// for an operator is the same.
func (b *Builder) autoName(n *graph.Node, name string) {
	if !n.Given && b.names[name] == nil {
		delete(b.names, n.Name)
		if n.Name == fmt.Sprintf("%s-%d", n.Kind, b.counts[n.Kind]) {
			b.counts[n.Kind]-- // it is free for the next
		}
		n.Name = name
		b.names[name] = n
	}
}

// addStore makes a store and connects n with it. A store that processors will
// be connected with later has no n.
func (b *Builder) addStore(n *graph.Node, name string, kind graph.StoreKind, set settings) *graph.Store {
	s := &graph.Store{
		Name: name, Kind: kind, InMemory: set.inMemory, NoChangelog: set.noChangelog,
		Config: set.config, Node: n, Where: caller(), Sub: -1,
	}
	if n != nil {
		n.Stores = append(n.Stores, s)
	}
	b.takeStoreName(n, name, s)
	if s.NoChangelog && s.Config != nil {
		b.problem(n, "store %q has ChangelogConfig and NoChangelog; leave one of them out", name)
	}
	b.graph.Stores = append(b.graph.Stores, s)
	return s
}

// takeStoreName gives s its name, which no other store may have.
func (b *Builder) takeStoreName(n *graph.Node, name string, s *graph.Store) {
	if text := badName("store", name); text != "" {
		b.problem(n, "%s", text)
	} else if old := b.stores[name]; old != nil {
		b.problem(n, "the store name %q is taken by the store at %s; give each store a name of its own", name, old.Where)
	} else {
		b.stores[name] = s
	}
}

// copartition notes that n brings records of all topics that reach it together
// by key, so that the topics must be partitioned alike.
func (b *Builder) copartition(n *graph.Node) {
	b.coparts = append(b.coparts, graph.Copart{Node: n, Topics: graph.SourcesOf(n)})
}

// A problem is a mistake in a topology.
type problem struct{ where, operator, text string }

// Error is one line: where, which operator, what is wrong and what to write.
func (p *problem) Error() string {
	if p.operator == "" {
		return p.where + ": " + p.text
	}
	return p.where + ": " + p.operator + ": " + p.text
}

// problem notes a mistake of n, or of the caller if n is nil. Say what is
// wrong and what to write instead.
func (b *Builder) problem(n *graph.Node, format string, args ...any) {
	p := &problem{text: fmt.Sprintf(format, args...)}
	if n != nil {
		p.where, p.operator = n.Where, label(n)
	} else {
		p.where = caller()
	}
	b.problems = append(b.problems, p)
}

// label is how messages name an operator.
func label(n *graph.Node) string { return fmt.Sprintf("%s %q", n.Kind, n.Name) }

// needFunc notes a problem if a function that the user gave is nil.
func (b *Builder) needFunc(n *graph.Node, isNil bool) {
	if isNil {
		b.problem(n, "its function is nil; give it one")
	}
}

// codecFor is the codec of an operator's keys or values: the option's, else
// the inherited one, else the Builder's for the type, else codec.For.
func codecFor[T any](b *Builder, n *graph.Node, explicit any, inherited codec.Codec[T]) codec.Codec[T] {
	t := reflect.TypeFor[T]()
	if set, ok := explicit.(codecSetting); ok {
		c, ok := set.codec.(codec.Codec[T])
		if !ok && set.of == t {
			b.problem(n, "its codec of %v is nil; give it one, or leave the option out", t)
		} else if !ok {
			b.problem(n, "it is given a codec of %v where it writes %v; give it a codec of %[2]v", set.of, t)
		}
		return c
	}
	if inherited != nil {
		return inherited
	}
	if c, ok := b.codecs[t].(codec.Codec[T]); ok {
		return c
	}
	c, err := codec.For[T]()
	if err != nil {
		b.problem(n, "%v has no codec (%v); name one with KeyCodec or ValueCodec, or with b.Codec for the whole topology", t, err)
	}
	return c
}

// ours is how names of functions of this package begin.
var ours = reflect.TypeFor[Builder]().PkgPath() + "."

// caller is the line of the topology that called this package, as
// "directory/file.go:12". Tests of this package count as topologies.
func caller() string {
	var pcs [64]uintptr
	frames := goruntime.CallersFrames(pcs[:goruntime.Callers(2, pcs[:])])
	for {
		f, more := frames.Next()
		outside := !strings.HasPrefix(f.Function, ours) || strings.HasSuffix(f.File, "_test.go")
		if outside || !more {
			dir, file := filepath.Split(f.File)
			return fmt.Sprintf("%s/%s:%d", filepath.Base(dir), file, f.Line)
		}
	}
}

// funcName is the name of a function's code. All instances of a generic
// function share it.
func funcName(f any) string {
	return goruntime.FuncForPC(reflect.ValueOf(f).Pointer()).Name()
}
