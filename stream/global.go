package stream

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/state"
	"github.com/semelstream/semel/stream/internal/graph"
	"github.com/semelstream/semel/stream/internal/runtime"
)

// A GlobalTable is whole in every instance. Streams join it by any key, and
// every processor may read it.
//
// It is read beside the tasks and is no part of their transactions: a record
// that is processed again after a crash may meet newer rows than the first
// time, and two rows that were written in one transaction may come one after
// the other.
type GlobalTable[K, V any] struct{ n *globalNode[K, V] }

// A globalNode is the typed side of a global table.
type globalNode[K, V any] struct {
	b      *Builder
	node   *graph.Node
	global *graph.Global
	key    codec.Codec[K]
	value  codec.Codec[V]
}

// GlobalTable reads all of t in every instance, completely before any task
// begins, and follows it from then on. The rows are kept in store, in the state
// directory unless [InMemory] says otherwise; the topic, which must be
// compacted, is their changelog.
//
// A tombstone deletes, a record without key is dropped. Rows have Kafka's
// timestamps: Topic.EventTime is not asked. A record that cannot be decoded
// stops the app, or is left out if the policy is [Skip]. There is no
// transaction that a dead letter could be in, so that a [DeadLetter] of the
// app stops it, too; give the table an [OnError] of its own, of Skip or [Fail].
func (b *Builder) GlobalTable[K, V any](t Topic[K, V], store string, opts ...TableSourceOption) GlobalTable[K, V] {
	set := settingsOf(opts)
	n := &globalNode[K, V]{b: b, key: t.Key, value: t.Value}
	n.node = b.add(graph.GlobalTable, set)
	if set.versioned {
		b.problem(n.node, "it keeps no versions, since it has no order with the streams that join it; leave Versioned out, or use Builder.Table")
	}
	topic := topicOf(b, n.node, t).topic
	n.node.Topic = topic
	if p, ok := topic.Partition.(partitioner); ok && p.multicast {
		b.problem(n.node, "topic %q is multicast: a key has no latest row, since its records are in several partitions; read a topic that is not", t.Name)
	}
	for _, g := range b.graph.Globals {
		if g.Topic == topic {
			b.problem(n.node, "topic %q is a global table already, at %s; use that one in both places", t.Name, g.Node.Where)
		}
	}
	n.global = &graph.Global{Store: store, Topic: topic, Node: n.node, InMemory: set.inMemory}
	n.node.Global = n.global
	b.graph.Globals = append(b.graph.Globals, n.global)
	b.takeStoreName(n.node, store, &graph.Store{Name: store, Where: n.node.Where})
	b.autoName(n.node, store)
	b.globals[store] = n
	return GlobalTable[K, V]{n}
}

// at is the typed side of t.
func (t GlobalTable[K, V]) at() *globalNode[K, V] {
	if t.n == nil {
		panic("stream: a GlobalTable that was declared but never made is used; get one from Builder.GlobalTable")
	}
	return t.n
}

// In reads the table from any processor, which need not [Uses] it.
func (t GlobalTable[K, V]) In(c Scope) state.Reader[K, V] {
	n, task := t.at(), c.scope()
	r, err := n.open(task.o)
	if err != nil {
		panic(fmt.Errorf("stream: operator %q reads global table %q: %w", task.node.Name, n.global.Store, err))
	}
	return &globalReader[K, V]{task, r}
}

// open gives the table's rows to o's task.
func (n *globalNode[K, V]) open(o *opener) (*state.SharedReader[K, V], error) {
	return share(o, n.node, func() (*state.SharedReader[K, V], error) {
		rows, err := o.task.Global(n.global.Store)
		if err != nil {
			return nil, err
		}
		return state.ReadShared(rows, n.key, n.value)
	})
}

// A globalTable is a globalNode whatever its types.
type globalTable interface {
	// reads prepares rows to be read as of the table's types, and returns what
	// says whether a record can be one of them.
	reads(p program, rows *state.Shared) (func(*kgo.Record) error, error)
}

// Global implements runtime.Program.
func (p program) Global(store string, rows *state.Shared) (func(*kgo.Record) error, error) {
	return p.globals[store].reads(p, rows)
}

func (n *globalNode[K, V]) reads(p program, rows *state.Shared) (func(*kgo.Record) error, error) {
	if _, err := state.ReadShared(rows, n.key, n.value); err != nil {
		return nil, err
	}
	o := &opener{app: p.appID, t: p.Topology, in: &instance{}}
	o.in.o = o
	return func(r *kgo.Record) (err error) {
		defer o.in.recovered(&err) // of codecs
		o.enterStep(n.node, atDecode)
		if _, err := n.key.Decode(r.Key); err != nil {
			return o.fail(n.node, runtime.OpDecode, fmt.Errorf("key: %w", err))
		}
		if r.Value == nil {
			return nil
		}
		if _, err := n.value.Decode(r.Value); err != nil {
			return o.fail(n.node, runtime.OpDecode, fmt.Errorf("value: %w", err))
		}
		return nil
	}, nil
}

// A globalReader is a global table as processors read it.
type globalReader[K, V any] struct {
	t    *Task
	rows *state.SharedReader[K, V]
}

func (r *globalReader[K, V]) Get(key K) (V, bool, error) {
	v, _, ok, err := r.rows.Get(key)
	return v, ok, r.t.judgeRows(err)
}

func (r *globalReader[K, V]) Range(from, to K) state.Rows[K, V] {
	return r.walk(r.rows.Range(from, to))
}
func (r *globalReader[K, V]) Prefix(encoded []byte) state.Rows[K, V] {
	return r.walk(r.rows.Prefix(encoded))
}
func (r *globalReader[K, V]) From(key K) state.Rows[K, V] { return r.walk(r.rows.From(key)) }
func (r *globalReader[K, V]) To(key K) state.Rows[K, V]   { return r.walk(r.rows.To(key)) }
func (r *globalReader[K, V]) All() state.Rows[K, V]       { return r.walk(r.rows.All()) }
func (r *globalReader[K, V]) Len() int64                  { return r.rows.Len() }

// Backward is the same rows, last first.
func (r *globalReader[K, V]) Backward() state.Reader[K, V] {
	return &globalReader[K, V]{r.t, r.rows.Backward()}
}

func (r *globalReader[K, V]) walk(rows state.Rows[K, V]) state.Rows[K, V] { return judged(r.t, rows) }
