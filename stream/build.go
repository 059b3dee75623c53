package stream

import (
	"errors"

	"github.com/semelstream/semel/stream/internal/graph"
	"github.com/semelstream/semel/stream/internal/runtime"
)

// A Topology is an immutable graph.
type Topology struct {
	graph    *graph.Graph
	sources  map[*graph.Topic]openSource
	globals  map[string]globalTable // by store
	shapes   map[string]shape       // of stores by window
	policies map[int]ErrorPolicy    // by node id
}

// Build calls define, checks the graph and returns every problem, joined.
// Each names the operator and the line of the topology that made it.
func Build(define func(*Builder)) (*Topology, error) {
	if define == nil {
		return nil, errors.New("stream: Build got no function; give it one that declares the topology")
	}
	b := newBuilder()
	define(b)
	b.done = true
	b.graph.Cut(b.coparts)
	b.check()
	if len(b.problems) > 0 {
		return nil, errors.Join(b.problems...)
	}
	return &Topology{graph: b.graph, sources: b.sources, globals: b.globals, shapes: b.shapes, policies: b.policies}, nil
}

// A program is a topology and the name of the app that runs it.
type program struct {
	*Topology
	appID string
}

// withApp is t as the app of that name runs it.
func (t *Topology) withApp(app string) runtime.Program { return program{t, app} }

// Graph implements runtime.Program.
func (p program) Graph() *graph.Graph { return p.graph }

// Open implements runtime.Program.
func (p program) Open(task *runtime.Task) (runtime.Instance, error) {
	in, err := p.open(task)
	if err != nil {
		return nil, err
	}
	return in, nil
}
