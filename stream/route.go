package stream

import (
	"fmt"

	"github.com/semelstream/semel/stream/internal/graph"
	"github.com/semelstream/semel/stream/internal/runtime"
)

// Route writes each record to the topic that f returns, which must exist.
func (s Stream[K, V]) Route(f func(Record[K, V]) Topic[K, V], opts ...Option) {
	from := s.at()
	b := from.b
	n := b.add(graph.Sink, settingsOf(opts), from.node)
	b.needFunc(n, f == nil)
	n.Topic = &graph.Topic{Dynamic: true, Sink: true}
	b.graph.Topics = append(b.graph.Topics, n.Topic)
	from.use(func(o *opener) (port[K, V], error) {
		return &router[K, V]{o: o, n: n, f: f, writers: map[string]*sink[K, V]{}}, nil
	})
}

// A router keeps a sink for each topic that it has written to.
type router[K, V any] struct {
	o       *opener
	n       *graph.Node
	f       func(Record[K, V]) Topic[K, V]
	writers map[string]*sink[K, V]
}

func (p *router[K, V]) push(r Record[K, V]) error {
	p.o.enter(p.n)
	t := p.f(r)
	w := p.writers[t.Name]
	if w == nil {
		var err error
		if w, err = p.openTopic(t); err != nil {
			return err
		}
		p.writers[t.Name] = w
	}
	return w.push(r)
}

func (p *router[K, V]) openTopic(t Topic[K, V]) (*sink[K, V], error) {
	if t.Key == nil || t.Value == nil {
		return nil, p.o.fail(p.n, runtime.OpFunction,
			fmt.Errorf("the function returned topic %q without codecs; make topics with stream.NewTopic", t.Name))
	}
	to, err := p.o.sink(t.Name)
	if err != nil {
		return nil, p.o.fail(p.n, runtime.OpProduce, err)
	}
	return &sink[K, V]{writer: newWriter(p.o, p.n, t), to: to}, nil
}
