package stream

import (
	"fmt"
	"reflect"
	"regexp"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/stream/internal/graph"
)

// A topicUse is a topic as the topology first named it, to compare with what
// it says of the topic elsewhere.
type topicUse struct {
	topic *graph.Topic
	where string

	// Of the source that reads it, if any.
	source     *graph.Node
	typed      any // its *streamNode
	key, value reflect.Type
	keyCodec   any
	valueCodec any
	time       string // name of the event time function
}

// topicOf registers that n reads or writes t.
func topicOf[K, V any](b *Builder, n *graph.Node, t Topic[K, V]) *topicUse {
	if text := badName("topic", t.Name); text != "" {
		b.problem(n, "%s", text)
	}
	return use(b, n, t, t.Name)
}

// patternOf registers that n reads the topics that match, which t is true of
// but for its name. The name of t is the pattern's text.
func patternOf[K, V any](b *Builder, n *graph.Node, t Topic[K, V], names *regexp.Regexp) *topicUse {
	u := use(b, n, t, patternKey(t.Name))
	if u.topic.Pattern == nil {
		u.topic.Pattern = graph.Whole(names)
	}
	return u
}

// patternKey is what a pattern is kept under in Builder.topics: no user's topic
// has a slash.
func patternKey(text string) string { return "pattern/" + text }

func use[K, V any](b *Builder, n *graph.Node, t Topic[K, V], key string) *topicUse {
	checkCodecs(b, n, t.Name, t.Key, t.Value)
	function := t.partitioner()
	u := b.topics[key]
	if u == nil {
		u = &topicUse{topic: &graph.Topic{Name: t.Name, Partition: function}, where: n.Where}
		b.topics[key] = u
		b.graph.Topics = append(b.graph.Topics, u.topic)
	} else if u.topic.Partition != function {
		b.problem(n, "topic %q is partitioned by %v here and by %v at %s; declare the topic once and use that value in both places",
			t.Name, partitionedBy(function), partitionedBy(u.topic.Partition), u.where)
	}
	return u
}

func checkCodecs[K, V any](b *Builder, n *graph.Node, topic string, key codec.Codec[K], value codec.Codec[V]) {
	if key == nil || value == nil {
		b.problem(n, "topic %q lacks a codec of keys (%v) or values (%v); declare it with stream.NewTopic and both codecs",
			topic, reflect.TypeFor[K](), reflect.TypeFor[V]())
	}
}

// internalTopic makes a repartition topic that n writes with keys of codec key.
func (b *Builder) internalTopic(n *graph.Node, name string, key any, set settings) *graph.Topic {
	if text := badName("repartition topic", name); text != "" {
		b.problem(n, "%s", text)
	}
	if set.partitionsSet && set.partitions <= 0 {
		b.problem(n, "Partitions(%d) is no partition count; give at least 1, or leave it out to have as many as the source", set.partitions)
	}
	t := &graph.Topic{Name: name, Internal: true, Partitions: max(set.partitions, 0)}
	if _, ok := key.(windowedCodec); ok {
		t.Partition = byWindow
	}
	mapName := "repartition/" + name // no user's topic has a slash
	if old := b.topics[mapName]; old != nil {
		b.problem(n, "the repartition topic name %q is taken at %s; give each a name of its own", name, old.where)
	} else {
		b.topics[mapName] = &topicUse{topic: t, where: n.Where}
	}
	b.graph.Topics = append(b.graph.Topics, t)
	return t
}

// A partitioner is how a topic is partitioned, as far as it can be compared:
// by the function's name.
type partitioner struct {
	function  string
	multicast bool
}

// byWindow is how a repartition topic of windowed keys is partitioned: unlike
// other topics of such keys, which go by the key inside.
var byWindow = partitioner{function: "murmur2 of key and window"}

// partitioner is nil for Kafka's own way.
func (t Topic[K, V]) partitioner() any {
	switch {
	case t.one != nil:
		return partitioner{function: funcName(t.one)}
	case t.many != nil:
		return partitioner{function: funcName(t.many), multicast: true}
	}
	return nil
}

func partitionedBy(p any) string {
	if p, ok := p.(partitioner); ok {
		return p.function
	}
	return "murmur2 of the key"
}

// badName says what is wrong with the name of a store or topic, which must be
// fit for a topic.
func badName(what, name string) string {
	const most = 200 // of Kafka's 249; the rest is for the app and the suffix
	if name == "" {
		return fmt.Sprintf("it has no %s name; give it one, which must not change as long as its data is to live", what)
	}
	if len(name) > most || name == "." || name == ".." {
		return fmt.Sprintf("%q is no %s name; use 1 to %d characters", name, what, most)
	}
	for _, c := range name {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '.', c == '_', c == '-':
		default:
			return fmt.Sprintf("%q is no %s name for Kafka; use only letters, digits, '.', '_' and '-'", name, what)
		}
	}
	return ""
}
