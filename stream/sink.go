package stream

import (
	"fmt"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/stream/internal/graph"
	"github.com/semelstream/semel/stream/internal/runtime"
)

// To writes the stream to t.
func (s Stream[K, V]) To(t Topic[K, V], opts ...Option) {
	writeTo(s.at(), t, settingsOf(opts))
}

// writeTo writes the records of from to t.
func writeTo[K, V any](from *streamNode[K, V], t Topic[K, V], set settings) {
	b := from.b
	n := b.add(graph.Sink, set, from.node)
	n.Topic = topicOf(b, n, t).topic
	n.Topic.Sink = true
	from.use(func(o *opener) (port[K, V], error) { return newSink(o, n, t) })
}

// newSink opens n, which writes to n.Topic as t says.
func newSink[K, V any](o *opener, n *graph.Node, t Topic[K, V]) (*sink[K, V], error) {
	to, err := o.sink(n.Topic.FullName(o.app))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", label(n), err)
	}
	return &sink[K, V]{writer: newWriter(o, n, t), to: to}, nil
}

// sink finds a topic to write to.
func (o *opener) sink(topic string) (*runtime.Sink, error) { return o.task.Sink(topic) }

// A sink writes to one topic.
type sink[K, V any] struct {
	*writer[K, V]
	to *runtime.Sink
}

func (s *sink[K, V]) push(r Record[K, V]) error { return s.write(s.to, r) }

// A writer encodes records and chooses partitions.
type writer[K, V any] struct {
	o     *opener
	n     *graph.Node
	key   codec.Codec[K]
	value codec.Codec[V]
	part  func(key []byte) []byte // of an encoded key, that the partition goes by
	one   func(Record[K, V], int) int
	many  func(Record[K, V], int) []int
	buf   []byte // for key and value, used again; never nil, so that empty is not null
	turn  uint32 // for records without a key
}

func newWriter[K, V any](o *opener, n *graph.Node, t Topic[K, V]) *writer[K, V] {
	return &writer[K, V]{
		o: o, n: n, key: t.Key, value: t.Value, part: partBytes(n, t.Key), one: t.one, many: t.many,
		buf: make([]byte, 0, 256), turn: uint32(o.task.ID().Partition),
	}
}

func (w *writer[K, V]) write(to *runtime.Sink, r Record[K, V]) (err error) {
	w.o.enterStep(w.n, atEncode)
	buf, split := w.buf[:0], 0
	if !r.NoKey {
		if buf, err = w.key.Append(buf, r.Key); err != nil {
			return w.o.fail(w.n, runtime.OpEncode, fmt.Errorf("key: %w", err))
		}
		split = len(buf)
	}
	if !r.NoValue {
		if buf, err = w.value.Append(buf, r.Value); err != nil {
			return w.o.fail(w.n, runtime.OpEncode, fmt.Errorf("value: %w", err))
		}
	}
	w.buf = buf
	key, value := buf[:split:split], buf[split:]
	if r.NoKey {
		key = nil
	}
	if r.NoValue {
		value = nil
	}
	switch {
	case w.many != nil:
		return w.multicast(to, r, key, value)
	case w.one != nil:
		w.o.enter(w.n)
		return w.stage(to, w.one(r, int(to.Partitions)), r, key, value)
	case r.NoKey:
		// Any partition will do, and evenly is best. Kafka's clients choose at
		// random; here the same run makes the same choice.
		w.turn++
		return w.stage(to, int(w.turn%uint32(to.Partitions)), r, key, value)
	}
	return w.stage(to, int(partitionOf(w.part(key), to.Partitions)), r, key, value)
}

func (w *writer[K, V]) multicast(to *runtime.Sink, r Record[K, V], key, value []byte) error {
	w.o.enter(w.n)
	ps := w.many(r, int(to.Partitions))
	if len(ps) == 0 {
		w.o.drop(w.n, noTarget)
	}
	for _, p := range ps {
		if err := w.stage(to, p, r, key, value); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer[K, V]) stage(to *runtime.Sink, p int, r Record[K, V], key, value []byte) error {
	if p < 0 || p >= int(to.Partitions) {
		return w.o.fail(w.n, runtime.OpFunction,
			fmt.Errorf("the topic's partition function chose partition %d of %d", p, to.Partitions))
	}
	w.o.task.Stage(to, int32(p), key, value, r.Time.UnixMilli(), toKafka(r.Headers))
	return nil
}
