package stream

import (
	"fmt"
	"reflect"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/stream/internal/graph"
	"github.com/semelstream/semel/stream/internal/runtime"
)

// Stream reads t as independent events, or with [Matching] all topics of a
// pattern. A topic or pattern that is read twice is read once, for both.
func (b *Builder) Stream[K, V any](t Topic[K, V], opts ...SourceOption) Stream[K, V] {
	return Stream[K, V]{readTopic(b, t, settingsOf(opts))}
}

// readTopic is the node that reads t: a new one, or the one that there is,
// since the group has one position for each of the topic's partitions.
func readTopic[K, V any](b *Builder, t Topic[K, V], set settings) *streamNode[K, V] {
	key := t.Name
	if set.matching != nil {
		t.Name = set.matching.String()
		key = patternKey(t.Name)
	}
	if u := b.topics[key]; u != nil && u.source != nil {
		return readAgain(b, u, t, set)
	}
	n := b.add(graph.Source, set)
	var u *topicUse
	if set.matching != nil {
		u = patternOf(b, n, t, set.matching)
	} else {
		u = topicOf(b, n, t)
	}
	if set.matchingSet && set.matching == nil {
		b.problem(n, "Matching got no pattern; give it a *regexp.Regexp, or leave it out to read topic %q", t.Name)
	}
	u.source, u.key, u.value = n, reflect.TypeFor[K](), reflect.TypeFor[V]()
	u.keyCodec, u.valueCodec, u.time = t.Key, t.Value, timeName(t)
	u.topic.Reset = set.reset
	if set.resetSet && !set.reset.End && set.reset.Ago <= 0 {
		b.problem(n, "FromAgo needs a duration of a millisecond or more; leave it out to begin at the beginning")
	}
	made := newSource(b, n, u.topic, t)
	u.typed = made
	return made
}

// readAgain is readTopic for a topic that is read already.
func readAgain[K, V any](b *Builder, u *topicUse, t Topic[K, V], set settings) *streamNode[K, V] {
	old := u.source
	made, ok := u.typed.(*streamNode[K, V])
	switch {
	case !ok:
		b.problem(nil, "topic %q is read as %v, %v here and as %v, %v at %s; declare the topic once and use that value in both places",
			t.Name, reflect.TypeFor[K](), reflect.TypeFor[V](), u.key, u.value, old.Where)
		return newSource(b, b.add(graph.Source, settings{}), u.topic, t)
	case !sameCodec(u.keyCodec, t.Key) || !sameCodec(u.valueCodec, t.Value) || u.time != timeName(t):
		b.problem(nil, "topic %q is read with other codecs or another EventTime than at %s; declare the topic once and use that value in both places",
			t.Name, old.Where)
	case set.name != "" && set.name != old.Name, set.policy != nil, set.resetSet && set.reset != u.topic.Reset:
		b.problem(nil, "topic %q is read already, by the source at %s, and its options hold for both; write the options there", t.Name, old.Where)
	}
	if set.matching != nil {
		patternOf(b, old, t, set.matching)
	} else {
		topicOf(b, old, t) // compares the rest
	}
	return made
}

func timeName[K, V any](t Topic[K, V]) string {
	if t.time == nil {
		return ""
	}
	return funcName(t.time)
}

// sameCodec is false if a and b are surely not the same codec.
func sameCodec(a, b any) bool {
	if a == nil || b == nil || reflect.TypeOf(a) != reflect.TypeOf(b) {
		return a == b
	}
	return !reflect.ValueOf(a).Comparable() || a == b
}

// newSource is the typed side of n, which reads topic as t says.
func newSource[K, V any](b *Builder, n *graph.Node, topic *graph.Topic, t Topic[K, V]) *streamNode[K, V] {
	n.Topic = topic
	topic.Source = true
	s := &streamNode[K, V]{b: b, node: n, key: t.Key, value: t.Value}
	b.sources[topic] = func(o *opener) (sourcePort, error) {
		next, err := s.open(o)
		if err != nil {
			return nil, err
		}
		p := &source[K, V]{o: o, n: n, key: t.Key, value: t.Value, next: next}
		if t.time == nil {
			return p, nil
		}
		e := &timedSource[K, V]{source: p, extract: t.time, latest: runtime.NoTime, pushed: runtime.NoTime}
		o.keepTime("event time of "+topic.Name, func() int64 { return e.pushed }, func(ms int64) { e.latest, e.pushed = ms, ms })
		return e, nil
	}
	return s
}

// A source decodes records.
type source[K, V any] struct {
	o     *opener
	n     *graph.Node
	key   codec.Codec[K]
	value codec.Codec[V]
	next  port[K, V]
}

func (s *source[K, V]) time(r *kgo.Record) (int64, bool) {
	ms := r.Timestamp.UnixMilli()
	if ms < 0 { // a producer of old that gives no timestamp
		s.o.drop(s.n, noTime)
		return 0, false
	}
	return ms, true
}

func (s *source[K, V]) push(r *kgo.Record) error {
	rec, err := s.decode(r)
	if err != nil {
		return err
	}
	return s.next.push(rec)
}

func (s *source[K, V]) decode(r *kgo.Record) (rec Record[K, V], err error) {
	s.o.enterStep(s.n, atDecode)
	rec.Time, rec.Headers = r.Timestamp, fromKafka(r.Headers)
	if r.Key == nil {
		rec.NoKey = true
	} else if rec.Key, err = s.key.Decode(r.Key); err != nil {
		return rec, s.o.fail(s.n, runtime.OpDecode, fmt.Errorf("key: %w", err))
	}
	if r.Value == nil {
		rec.NoValue = true
	} else if rec.Value, err = s.value.Decode(r.Value); err != nil {
		return rec, s.o.fail(s.n, runtime.OpDecode, fmt.Errorf("value: %w", err))
	}
	return rec, nil
}

// A timedSource asks Topic.EventTime for times. The runtime wants the time of
// a record before the record is pushed: to choose among inputs. It may ask and
// then end, so what is kept is the latest time of records that were pushed,
// and the function is asked again with the same latest when they come back.
type timedSource[K, V any] struct {
	*source[K, V]
	extract func(Record[K, V], time.Time) (time.Time, bool)
	latest  int64 // of all records asked about
	pushed  int64 // of those pushed

	// What the last call of time found out. A failure waits for push, which
	// can report it.
	head *kgo.Record
	rec  Record[K, V]
	err  error
}

func (s *timedSource[K, V]) time(r *kgo.Record) (int64, bool) {
	var ok bool
	s.head = r
	if ok, s.err = s.ask(r); s.err != nil {
		return max(r.Timestamp.UnixMilli(), 0), true
	}
	ms := s.rec.Time.UnixMilli()
	if !ok || ms < 0 {
		s.o.drop(s.n, noTime)
		return 0, false
	}
	s.latest = max(s.latest, ms)
	return ms, true
}

// ask decodes r into rec, with the time that the user's function says.
func (s *timedSource[K, V]) ask(r *kgo.Record) (ok bool, err error) {
	defer s.o.in.recovered(&err)
	if s.rec, err = s.decode(r); err != nil {
		return false, err
	}
	var latest time.Time
	if s.latest != runtime.NoTime {
		latest = timeOf(s.latest)
	}
	s.o.enter(s.n)
	s.rec.Time, ok = s.extract(s.rec, latest)
	return ok, nil
}

func (s *timedSource[K, V]) push(r *kgo.Record) error {
	if s.head != r {
		if _, ok := s.time(r); !ok {
			return nil
		}
	}
	s.head = nil
	if s.err != nil {
		return s.err
	}
	s.pushed = max(s.pushed, s.rec.Time.UnixMilli())
	return s.next.push(s.rec)
}
