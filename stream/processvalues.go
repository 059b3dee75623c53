package stream

import (
	"errors"
	"time"

	"github.com/semelstream/semel/stream/internal/runtime"
)

// ProcessValues is Process for functions that leave the key as it is, so that
// nothing is repartitioned: what they emit goes under the record's own key.
func (s Stream[K, V]) ProcessValues[V2 any](f func(c *ValueContext[V2], r Record[K, V]) error, opts ...ProcessOption) Stream[K, V2] {
	return processValues(s, opts, f == nil, func(*ValueContext[V2]) (life[K, V, ValueContext[V2]], error) {
		return life[K, V, ValueContext[V2]]{process: f}, nil
	})
}

// ProcessValuesWith is ProcessValues with a life cycle.
func (s Stream[K, V]) ProcessValuesWith[V2 any, P ValueProcessor[K, V, V2]](create func() P, opts ...ProcessOption) Stream[K, V2] {
	return processValues(s, opts, create == nil, func(c *ValueContext[V2]) (life[K, V, ValueContext[V2]], error) {
		p := create()
		return life[K, V, ValueContext[V2]]{process: p.Process, close: closer(p)}, c.Task.initialize(func() error { return p.Init(c) })
	})
}

// A ValueProcessor is a [Processor] for ProcessValuesWith.
type ValueProcessor[K, V, V2 any] interface {
	Init(c *ValueContext[V2]) error
	Process(c *ValueContext[V2], r Record[K, V]) error
}

// A ValueContext is the [Context] of ProcessValues.
type ValueContext[V any] struct {
	*Task
	out valueOut[V]
}

// A valueOut knows the record at hand, whose key's type a ValueContext has
// not.
type valueOut[V any] interface {
	emit(v V, hasValue bool) error
	emitWith(v V, t time.Time, h Headers) error
}

// Emit sends value on under the key, time and headers of the record at hand.
// In Init and in timers there is none, and Emit reports an error.
func (c *ValueContext[V]) Emit(value V) error { return c.out.emit(value, true) }

// EmitWith is Emit with a time and headers of its own.
func (c *ValueContext[V]) EmitWith(value V, t time.Time, h Headers) error {
	return c.out.emitWith(value, t, h)
}

// EmitTombstone sends a delete of the record's key.
func (c *ValueContext[V]) EmitTombstone() error {
	var none V
	return c.out.emit(none, false)
}

// Schedule is [Context.Schedule]; f can work on stores, but not emit.
func (c *ValueContext[V]) Schedule(s Schedule, f func(c *ValueContext[V], now time.Time) error) *Timer {
	return c.schedule(s, func(now time.Time) error { return f(c, now) })
}

func processValues[K, V, V2 any](s Stream[K, V], opts []ProcessOption, isNil bool,
	begin func(c *ValueContext[V2]) (life[K, V, ValueContext[V2]], error)) Stream[K, V2] {

	b, set := s.at().b, settingsOf(opts)
	n := &streamNode[K, V2]{b: b, rekeyed: s.n.rekeyed, key: s.n.key}
	n.node = b.add("process-values", set, s.n.node)
	b.needFunc(n.node, isNil)
	connect(b, n.node, set.uses)
	s.n.use(func(o *opener) (port[K, V], error) {
		t, err := openTask(o, n.node, set.uses)
		if err != nil {
			return nil, err
		}
		out, err := n.open(o)
		if err != nil {
			return nil, err
		}
		p := &valuePort[K, V, V2]{t: t, out: out, tombstones: set.tombstones}
		p.c = &ValueContext[V2]{t, p}
		l, err := begin(p.c)
		if err != nil {
			return nil, err
		}
		if l.close != nil {
			o.onClose(l.close)
		}
		p.f = l.process
		return p, nil
	})
	return Stream[K, V2]{n}
}

type valuePort[K, V, V2 any] struct {
	t          *Task
	c          *ValueContext[V2]
	f          func(c *ValueContext[V2], r Record[K, V]) error
	tombstones bool
	out        port[K, V2]
	at         Record[K, V] // the record at hand
	isAt       bool         // there is one
}

func (p *valuePort[K, V, V2]) push(r Record[K, V]) error {
	if r.NoValue && !p.tombstones {
		p.t.o.drop(p.t.node, tombstoned)
		return nil
	}
	p.t.beginRecord(r.Time.UnixMilli())
	p.at, p.isAt = r, true
	err := p.f(p.c, r)
	p.isAt = false
	return p.t.end(runtime.OpFunction, err)
}

var errNoRecord = errors.New("ValueContext.Emit without a record at hand: Init and timers have no key to emit under; use Process instead of ProcessValues")

func (p *valuePort[K, V, V2]) emit(v V2, hasValue bool) error {
	if !p.isAt {
		return p.t.failed(errNoRecord)
	}
	r := Record[K, V2]{Key: p.at.Key, NoKey: p.at.NoKey, Value: v, NoValue: !hasValue, Time: p.at.Time, Headers: p.at.Headers}
	return p.t.back(p.out.push(r))
}

func (p *valuePort[K, V, V2]) emitWith(v V2, t time.Time, h Headers) error {
	if !p.isAt {
		return p.t.failed(errNoRecord)
	}
	return emit(p.t, p.out, Record[K, V2]{Key: p.at.Key, NoKey: p.at.NoKey, Value: v, Time: t, Headers: h})
}
