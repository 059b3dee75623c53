package stream

import (
	"github.com/semelstream/semel/stream/internal/graph"
)

// Repartition sends the stream through a topic of its own, so that each
// record goes on in the task of its key. Operators by key do it themselves
// where needed; call it to choose the partition count, or before Process.
func (s Stream[K, V]) Repartition(name string, opts ...GroupOption) Stream[K, V] {
	return repartition(s, name, settingsOf(opts))
}

// repartition is s behind a repartition topic called name: a sink, and a
// source that begins a sub-topology. Records without a key are dropped before,
// unless set.keepNoKey.
func repartition[K, V any](s Stream[K, V], name string, set settings) Stream[K, V] {
	from := s.at()
	b := from.b
	sinkSet := set
	sinkSet.name = ""
	sinkNode := b.add(graph.Sink, sinkSet, from.node)
	sourceNode := b.add(graph.Source, set)
	if name != "" {
		b.autoName(sinkNode, name+"-repartition-sink")
		b.autoName(sourceNode, name+"-repartition-source")
	}
	t := Topic[K, V]{
		Name:  name,
		Key:   codecFor(b, sinkNode, set.keyCodec, from.key),
		Value: codecFor(b, sinkNode, set.valueCodec, from.value),
	}
	topic := b.internalTopic(sinkNode, name, t.Key, set)
	topic.Sink = true
	sinkNode.Topic = topic
	from.use(func(o *opener) (port[K, V], error) {
		to, err := newSink(o, sinkNode, t)
		if err != nil || set.keepNoKey {
			return to, err
		}
		return &keyed[K, V]{to}, nil
	})
	return Stream[K, V]{newSource(b, sourceNode, topic, t)}
}

// keyed drops what has no key.
type keyed[K, V any] struct{ *sink[K, V] }

func (p *keyed[K, V]) push(r Record[K, V]) error {
	if r.NoKey {
		p.o.drop(p.n, noKey)
		return nil
	}
	return p.sink.push(r)
}
