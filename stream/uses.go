package stream

import (
	"fmt"
	"slices"

	"github.com/semelstream/semel/stream/internal/graph"
)

// A bindable is a [Handle] as a task sees it. All handles are.
type bindable interface {
	// bind opens what the handle stands for in the processor's task.
	bind(t *Task) (binding, error)
}

// A binding is what a handle stands for in a task.
type binding struct {
	of   any // a pointer that is the handle's own
	open any
}

// connect makes node a user of the handles.
func connect(b *Builder, node *graph.Node, uses []Handle) {
	for _, h := range uses {
		if h == nil {
			b.problem(node, "Uses got a nil handle; give it a store, a table or an output")
			continue
		}
		h.usedBy(b, node)
	}
}

// used is what the handle that is known by of stands for in c's task.
func used[T any](c Scope, of any, kind, name string) T {
	t := c.scope()
	for i := range t.uses {
		if t.uses[i].of == of {
			return t.uses[i].open.(T)
		}
	}
	panic(fmt.Errorf("stream: operator %q does not use %s %q; add it to the operator's option Uses", t.node.Name, kind, name))
}

// useStore makes node a user of a store, once.
func useStore(b *Builder, node *graph.Node, s *graph.Store) {
	switch {
	case !slices.Contains(b.graph.Stores, s):
		b.problem(node, "it uses store %q of another Builder; declare all that belongs together in one function given to Build", s.Name)
	case !slices.Contains(node.Stores, s):
		node.Stores = append(node.Stores, s)
	}
}

func (s Store[K, V]) usedBy(b *Builder, node *graph.Node) {
	useStore(b, node, s.kept.store)
}

func (s Store[K, V]) bind(t *Task) (binding, error) {
	kv, err := s.kept.open(t.o)
	if err != nil {
		return binding{}, err
	}
	rows, err := openAging(t.o, s.kept, s.aging, kv)
	if rows == nil {
		return binding{s.kept, &keyValue[K, V]{reader[K, V]{t, kv, kv}}}, err
	}
	t.aging = append(t.aging, rows.record)
	return binding{s.kept, &agingStore[K, V]{reader[K, V]{t, kv, kv}, rows}}, err
}

func (t Table[K, V]) usedBy(b *Builder, node *graph.Node) {
	if t.at().store == nil {
		b.problem(node, "it reads %s, whose rows are only worked out when they change; keep them with .Stored(\"name\") and use that table", label(t.n.node))
		return
	}
	if t.n.history > 0 {
		b.problem(node, "it reads %s, which is versioned; keep the newest versions with .Stored(\"name\") and use that table", label(t.n.node))
	}
	useStore(b, node, t.n.store)
}

func (t Table[K, V]) bind(task *Task) (binding, error) {
	r, err := t.n.openRows(task.o)
	if err != nil {
		return binding{}, err
	}
	kv := r.(storedRows[K, V]).kv
	return binding{t.n, &reader[K, V]{task, kv, kv}}, nil
}

func (o Output[K, V]) usedBy(b *Builder, node *graph.Node) {
	if user := o.n.user; user != nil {
		b.problem(node, "output %q is used by %s too; give each processor an output of its own", o.n.name, label(user))
		return
	}
	o.n.user = node
	b.link(node, o.n.node)
	b.autoName(o.n.node, node.Name+"/"+o.n.name)
}

func (o Output[K, V]) bind(t *Task) (binding, error) {
	out, err := o.n.open(t.o)
	return binding{o.n, out}, err
}
