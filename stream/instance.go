package stream

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"runtime/debug"
	"slices"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semelstream/semel/stream/internal/graph"
	"github.com/semelstream/semel/stream/internal/runtime"
)

// An instance is a sub-topology at work in one task; see runtime.Instance for
// its life. It begins with an opener and keeps it.
type instance struct {
	sources []sourcePort // by index in Sub.Sources
	flushes []flush      // in topological order
	closers []func() error
	times   []keptTime
	timers  []setTimer
	o       *opener

	// at is the step that runs: the node's ID and the step, so that a panic
	// can be blamed on someone. Keeping it costs one store per call of a
	// user's function.
	at int
}

// A sourcePort is where records of a topic come in.
type sourcePort interface {
	// time is the record's event time in milliseconds; false drops the record.
	time(r *kgo.Record) (int64, bool)
	push(r *kgo.Record) error
}

// An openSource opens a source and all that follows it.
type openSource func(o *opener) (sourcePort, error)

type flush struct {
	node *graph.Node
	pos  int // in topological order
	f    func() error
}

type keptTime struct {
	name string
	get  func() int64
	set  func(int64)
}

type setTimer struct {
	node *graph.Node
	t    *timer
}

// steps are the low bits of instance.at.
const (
	atFunction = iota
	atDecode
	atEncode
	atTimer
	stepBits = 2
)

var stepOps = [...]runtime.Op{
	atFunction: runtime.OpFunction, atDecode: runtime.OpDecode, atEncode: runtime.OpEncode, atTimer: runtime.OpTimer,
}

// An opener is the opening of one instance: what ports are made with. Ports
// keep it, for its task and for failures.
type opener struct {
	app    string // for names of internal topics
	task   *runtime.Task
	in     *instance
	shared map[int]any // ports of nodes with several parents, by node id; made once
	t      *Topology
	pos    map[int]int // of nodes in topological order
}

// open makes the instance of a task's sub-topology.
func (p program) open(task *runtime.Task) (in *instance, err error) {
	in = &instance{}
	o := &opener{app: p.appID, task: task, in: in, shared: map[int]any{}, t: p.Topology, pos: map[int]int{}}
	in.o = o
	sub := task.Sub()
	for i, n := range sub.Nodes {
		o.pos[n.ID] = i
	}
	defer in.recovered(&err) // of processors' Init
	for _, topic := range sub.Sources {
		src, err := p.sources[topic](o)
		if err != nil {
			return nil, fmt.Errorf("opening what reads %q: %w", topic.Name, err)
		}
		in.sources = append(in.sources, src)
	}
	slices.SortStableFunc(in.flushes, func(a, b flush) int { return cmp.Compare(a.pos, b.pos) })
	return in, nil
}

// share makes the port or whatever else open makes for n once per instance,
// for nodes that several others lead to.
func share[T any](o *opener, n *graph.Node, open func() (T, error)) (T, error) {
	if made, ok := o.shared[n.ID]; ok {
		return made.(T), nil
	}
	made, err := open()
	if err == nil {
		o.shared[n.ID] = made
	}
	return made, err
}

// name is how n is called in failures and counters.
func (o *opener) name(n *graph.Node) string { return n.Name }

// onFlush has f called before each commit, after what comes before n.
func (o *opener) onFlush(n *graph.Node, f func() error) {
	o.in.flushes = append(o.in.flushes, flush{n, o.pos[n.ID], f})
}

// onClose has f called when the instance ends.
func (o *opener) onClose(f func() error) { o.in.closers = append(o.in.closers, f) }

// keepTime makes a time survive: get is asked for it at each commit, set gets
// it back when the task is opened again. Names are unique in the sub-topology
// and begin with an operator's name; runtime.NoTime is not kept.
func (o *opener) keepTime(name string, get func() int64, set func(int64)) {
	o.in.times = append(o.in.times, keptTime{name, get, set})
}

// addTimer adds a timer of n.
func (o *opener) addTimer(n *graph.Node, t *timer) {
	o.in.timers = append(o.in.timers, setTimer{n, t})
}

// enter notes that n's user function is about to run. Call it before each
// call, and again when a function goes on after records have left n.
func (o *opener) enter(n *graph.Node) { o.in.at = n.ID << stepBits }

// enterStep is enter for what is not the user's function.
func (o *opener) enterStep(n *graph.Node, step int) { o.in.at = n.ID<<stepBits | step }

// drop counts a record that n leaves out.
func (o *opener) drop(n *graph.Node, reason string) { o.task.Dropped(n.Name, reason) }

// Reasons for drops.
const (
	noKey      = "no key"
	tombstoned = "tombstone"
	noTime     = "no time"
	noTarget   = "no partition"
)

// fail makes the failure of the record at hand, with n's policy. A failure
// that comes from further down, wrapped by whom it may be, stays the one it
// is.
func (o *opener) fail(n *graph.Node, op runtime.Op, err error) error {
	if f := (*runtime.Failure)(nil); errors.As(err, &f) {
		return f
	}
	f := &runtime.Failure{Op: op, Operator: n.Name, Err: err}
	if p := o.t.policies[n.ID]; p != nil {
		f.Policy = p.runtime(o.app)
	}
	return f
}

// recovered turns a panic into the failure of the record at hand.
func (in *instance) recovered(err *error) {
	p := recover()
	if p == nil {
		return
	}
	cause, ok := p.(error)
	if !ok {
		cause = fmt.Errorf("%v", p)
	}
	n := in.o.t.graph.Nodes[in.at>>stepBits]
	f := in.o.fail(n, stepOps[in.at&(1<<stepBits-1)], panicked{cause})
	f.(*runtime.Failure).Stack = debug.Stack()
	*err = f
}

// panicked is a panic as an error.
type panicked struct{ cause error }

func (p panicked) Error() string { return "panic: " + p.cause.Error() }
func (p panicked) Unwrap() error { return p.cause }

// Time implements runtime.Instance. A panic in Topic.EventTime comes out of
// Push; see sourcePort.
func (in *instance) Time(i int, r *kgo.Record) (int64, bool) { return in.sources[i].time(r) }

// Push implements runtime.Instance.
func (in *instance) Push(i int, r *kgo.Record) (err error) {
	defer in.recovered(&err)
	return in.sources[i].push(r)
}

// Stream implements runtime.Instance.
func (in *instance) Stream(now int64) error { return in.fire(false, now) }

// Wall implements runtime.Instance.
func (in *instance) Wall(now int64) error { return in.fire(true, now) }

// fire calls the timers that are due, the earliest first, each once.
func (in *instance) fire(wall bool, now int64) (err error) {
	var at setTimer
	defer func() {
		if err != nil {
			err = in.o.fail(at.node, runtime.OpTimer, err)
		}
	}()
	defer in.recovered(&err)
	var due []setTimer
	for _, s := range in.timers {
		if s.t.wall == wall && s.t.due() <= now {
			due = append(due, s)
		}
	}
	slices.SortStableFunc(due, func(a, b setTimer) int { return cmp.Compare(a.t.due(), b.t.due()) })
	for _, at = range due {
		if at.t.due() > now {
			continue // cancelled by one before
		}
		in.o.enterStep(at.node, atTimer)
		if err := at.t.fire(now); err != nil {
			return err
		}
	}
	return nil
}

// NextStream implements runtime.Instance.
func (in *instance) NextStream() int64 { return in.next(false) }

// NextWall implements runtime.Instance.
func (in *instance) NextWall() int64 { return in.next(true) }

func (in *instance) next(wall bool) int64 {
	next := int64(math.MaxInt64)
	for _, s := range in.timers {
		if s.t.wall == wall {
			next = min(next, s.t.due())
		}
	}
	return next
}

// Flush implements runtime.Instance.
func (in *instance) Flush() (err error) {
	defer in.recovered(&err)
	for _, fl := range in.flushes {
		in.o.enter(fl.node)
		if err := fl.f(); err != nil {
			return in.o.fail(fl.node, runtime.OpFunction, err)
		}
	}
	return nil
}

// Save implements runtime.Instance.
func (in *instance) Save(put func(name string, ms int64)) {
	for _, k := range in.times {
		if ms := k.get(); ms != runtime.NoTime {
			put(k.name, ms)
		}
	}
}

// Load implements runtime.Instance.
func (in *instance) Load(get func(name string) (ms int64, ok bool)) {
	for _, k := range in.times {
		if ms, ok := get(k.name); ok {
			k.set(ms)
		}
	}
}

// Close implements runtime.Instance.
func (in *instance) Close(dirty bool) error {
	var errs []error
	for _, f := range in.closers {
		errs = append(errs, in.closeOne(f))
	}
	return errors.Join(errs...)
}

func (in *instance) closeOne(f func() error) (err error) {
	defer in.recovered(&err)
	return f()
}

// openAll opens all uses of a stream as one port.
func openAll[K, V any](o *opener, uses []func(o *opener) (port[K, V], error)) (port[K, V], error) {
	ports := make([]port[K, V], 0, len(uses))
	for _, open := range uses {
		p, err := open(o)
		if err != nil {
			return nil, err
		}
		ports = append(ports, p)
	}
	if len(ports) == 1 {
		return ports[0], nil
	}
	return fan[K, V](ports), nil
}

// A fan gives each record to several ports, in order of declaration.
type fan[K, V any] []port[K, V]

func (f fan[K, V]) push(r Record[K, V]) error {
	for _, p := range f {
		if err := p.push(r); err != nil {
			return err
		}
	}
	return nil
}

// openAllTables is openAll for tables.
func openAllTables[K, V any](o *opener, uses []func(o *opener) (tablePort[K, V], error)) (tablePort[K, V], error) {
	ports := make([]tablePort[K, V], 0, len(uses))
	for _, open := range uses {
		p, err := open(o)
		if err != nil {
			return nil, err
		}
		ports = append(ports, p)
	}
	if len(ports) == 1 {
		return ports[0], nil
	}
	return tableFan[K, V](ports), nil
}

// A tableFan gives each change to several ports, in order of declaration.
type tableFan[K, V any] []tablePort[K, V]

func (f tableFan[K, V]) change(c change[K, V]) error {
	for _, p := range f {
		if err := p.change(c); err != nil {
			return err
		}
	}
	return nil
}
