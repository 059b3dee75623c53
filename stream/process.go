package stream

import (
	"time"

	"github.com/semelstream/semel/stream/internal/graph"
	"github.com/semelstream/semel/stream/internal/runtime"
)

// Process runs f on every record: the general operator, for what the others
// cannot say. It may read and write the stores that it [Uses] and emit any
// records, also none. An error is the failure of the record.
func (s Stream[K, V]) Process[K2, V2 any](f func(c *Context[K2, V2], r Record[K, V]) error, opts ...ProcessOption) Stream[K2, V2] {
	return process(s, opts, f == nil, func(*Context[K2, V2]) (life[K, V, Context[K2, V2]], error) {
		return life[K, V, Context[K2, V2]]{process: f}, nil
	})
}

// ProcessWith is Process with a life cycle; create is called once per task.
func (s Stream[K, V]) ProcessWith[K2, V2 any, P Processor[K, V, K2, V2]](create func() P, opts ...ProcessOption) Stream[K2, V2] {
	return process(s, opts, create == nil, func(c *Context[K2, V2]) (life[K, V, Context[K2, V2]], error) {
		p := create()
		return life[K, V, Context[K2, V2]]{process: p.Process, close: closer(p)}, c.Task.initialize(func() error { return p.Init(c) })
	})
}

// A Processor is a node with a life cycle. A task calls Init before the first
// record, then Process for one record at a time and, if there is a method
// Close() error, that when the task leaves the instance or restarts. Timers
// run between records, never beside Process. Fields of a processor do not
// survive the task: what must, belongs in a store.
type Processor[K, V, K2, V2 any] interface {
	Init(c *Context[K2, V2]) error
	Process(c *Context[K2, V2], r Record[K, V]) error
}

// A Context is a processor's door to its task, valid during the call that it
// was given to. What goes out through it becomes visible when the task's
// transaction commits.
type Context[K, V any] struct {
	*Task
	out port[K, V]
}

// Emit sends r on. It returns when all that follows has handled r, and its
// error is the record's failure: return it.
func (c *Context[K, V]) Emit(r Record[K, V]) error {
	return emit(c.Task, c.out, r)
}

// emit checks what a processor made and sends it on.
func emit[K, V any](t *Task, out port[K, V], r Record[K, V]) error {
	if err := r.check(); err != nil {
		return t.failed(err)
	}
	return t.back(out.push(r))
}

// Schedule calls f as s says, between records. Missed calls become one. now
// is the clock's time at the call. Due times survive restarts by the order of
// calls in Init.
func (c *Context[K, V]) Schedule(s Schedule, f func(c *Context[K, V], now time.Time) error) *Timer {
	return c.schedule(s, func(now time.Time) error { return f(c, now) })
}

// A life is a processor with a context of type C, as our ports call it.
type life[K, V, C any] struct {
	process func(c *C, r Record[K, V]) error
	close   func() error
}

// closer is p's Close, if it has one.
func closer(p any) func() error {
	if p, ok := p.(interface{ Close() error }); ok {
		return p.Close
	}
	return nil
}

// initialize runs a processor's Init.
func (t *Task) initialize(init func() error) error {
	t.init = true
	defer func() { t.init = false }()
	ms := t.o.task.StreamTime()
	t.begin(max(ms, 0))
	return t.end(runtime.OpFunction, init())
}

func process[K, V, K2, V2 any](s Stream[K, V], opts []ProcessOption, isNil bool,
	begin func(c *Context[K2, V2]) (life[K, V, Context[K2, V2]], error)) Stream[K2, V2] {

	b, set := s.at().b, settingsOf(opts)
	n := &streamNode[K2, V2]{b: b, rekeyed: true}
	n.node = b.add("process", set, s.n.node)
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
		c := &Context[K2, V2]{t, out}
		l, err := begin(c)
		if err != nil {
			return nil, err
		}
		if l.close != nil {
			o.onClose(l.close)
		}
		return &processPort[K, V, Context[K2, V2]]{t, c, l.process, set.tombstones}, nil
	})
	return Stream[K2, V2]{n}
}

// openTask is a processor's task, with what it uses.
func openTask(o *opener, n *graph.Node, uses []Handle) (*Task, error) {
	t := &Task{o: o, node: n}
	for _, h := range uses {
		b, err := h.(bindable).bind(t)
		if err != nil {
			return nil, err
		}
		t.uses = append(t.uses, b)
	}
	return t, nil
}

type processPort[K, V, C any] struct {
	t          *Task
	c          *C
	f          func(c *C, r Record[K, V]) error
	tombstones bool
}

func (p *processPort[K, V, C]) push(r Record[K, V]) error {
	if r.NoValue && !p.tombstones {
		p.t.o.drop(p.t.node, tombstoned)
		return nil
	}
	p.t.beginRecord(r.Time.UnixMilli())
	return p.t.end(runtime.OpFunction, p.f(p.c, r))
}
