package stream

import "github.com/semelstream/semel/stream/internal/graph"

// An Output is a further output of a processor, declared by [Builder.Output].
type Output[K, V any] struct{ n *outputNode[K, V] }

type outputNode[K, V any] struct {
	streamNode[K, V]
	name string
	user *graph.Node // the processor
}

// Output declares a further output for one processor; name it in [Uses].
func (b *Builder) Output[K, V any](name string) Output[K, V] {
	n := &outputNode[K, V]{streamNode: streamNode[K, V]{b: b, rekeyed: true}, name: name}
	n.node = b.add("output", settings{})
	if name == "" {
		b.problem(n.node, "it has no name; give it one, to be known by")
	}
	return Output[K, V]{n}
}

// Emit sends r out here; c is the context of the processor that [Uses] it.
// Its error is the record's failure: return it.
func (o Output[K, V]) Emit(c Scope, r Record[K, V]) error {
	return emit(c.scope(), used[port[K, V]](c, o.n, "output", o.n.name), r)
}

// Stream is what comes out.
func (o Output[K, V]) Stream() Stream[K, V] { return Stream[K, V]{&o.n.streamNode} }
