package stream

import (
	"cmp"
	"errors"
	"fmt"
	"math"
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
	finals  []flush      // too
	closers []func() error
	touches [][]func(keys [][]byte)      // by source
	looks   [][]func(recs []*kgo.Record) // too
	keys    [][]byte                     // scratch of Touch
	times   []keptTime
	timers  []setTimer
	undos   []func()
	o       *opener

	// at is the step that runs: the node's ID and the step, so that a panic
	// can be blamed on someone. Keeping it costs one store per call of a
	// user's function.
	at int

	topic  string // of the record that was pushed last
	offset int64  // and its offset
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

	adopt func() // where nothing was kept; may be nil
}

type setTimer struct {
	node *graph.Node
	t    *timer
}

// open makes the instance of a task's sub-topology.
func (p program) open(task *runtime.Task) (in *instance, err error) {
	in = &instance{}
	o := &opener{app: p.appID, task: task, in: in, shared: map[sharedKey]any{}, t: p.Topology, pos: map[int]int{}}
	in.o = o
	sub := task.Sub()
	for i, n := range sub.Nodes {
		o.pos[n.ID] = i
	}
	task.OnUndo(in.undone)
	defer in.recovered(&err) // of processors' Init
	for _, topic := range sub.Sources {
		src, err := p.sources[topic](o)
		if err != nil {
			return nil, fmt.Errorf("opening what reads %q: %w", topic.Name, err)
		}
		in.sources = append(in.sources, src)
	}
	for _, list := range [][]flush{in.flushes, in.finals} {
		slices.SortStableFunc(list, func(a, b flush) int { return cmp.Compare(a.pos, b.pos) })
	}
	return in, nil
}

// Time implements runtime.Instance. A panic in Topic.EventTime comes out of
// Push; see sourcePort.
func (in *instance) Time(i int, r *kgo.Record) (int64, bool) { return in.sources[i].time(r) }

// Push implements runtime.Instance.
func (in *instance) Push(i int, r *kgo.Record) (err error) {
	defer in.recovered(&err)
	in.topic, in.offset = r.Topic, r.Offset
	return in.sources[i].push(r)
}

// undone takes back what ports keep in themselves.
func (in *instance) undone() {
	for _, f := range in.undos {
		f()
	}
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
func (in *instance) NextWall() int64 {
	if next := in.next(true); next == math.MaxInt64 {
		return next
	}
	now := in.o.task.WallTime().UnixMilli()
	for _, s := range in.timers {
		if s.t.wall && !s.t.cancelled {
			s.t.setBack(now)
		}
	}
	return in.next(true)
}

func (in *instance) next(wall bool) int64 {
	next := int64(math.MaxInt64)
	for _, s := range in.timers {
		if s.t.wall == wall {
			next = min(next, s.t.due())
		}
	}
	return next
}

// Final implements runtime.Instance.
func (in *instance) Final() (err error) {
	defer in.recovered(&err)
	for _, fl := range in.finals {
		if err := fl.f(); err != nil {
			return err
		}
	}
	return nil
}

// Flush implements runtime.Instance.
func (in *instance) Flush() (err error) {
	defer in.recovered(&err)
	for _, fl := range in.flushes {
		in.o.enter(fl.node)
		if err := fl.f(); err != nil {
			return in.flushFailed(fl.node, err)
		}
	}
	return nil
}

// flushFailed is what ends a flush. What has been judged already, or tells of a
// dead letter that could not be written, has a Failure in it and stays whole.
func (in *instance) flushFailed(n *graph.Node, err error) error {
	if _, ok := errors.AsType[*runtime.Failure](err); ok {
		return err
	}
	return in.o.fail(n, runtime.OpFunction, err)
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
	for _, k := range in.times { // they look at times that were kept
		if _, ok := get(k.name); !ok && k.adopt != nil {
			k.adopt()
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

// Touch implements runtime.Instance.
func (in *instance) Touch(i int, recs []*kgo.Record) {
	if i < len(in.looks) {
		for _, look := range in.looks[i] {
			look(recs)
		}
	}
	if i >= len(in.touches) || len(in.touches[i]) == 0 {
		return
	}
	in.keys = in.keys[:0]
	for _, r := range recs {
		in.keys = append(in.keys, r.Key)
	}
	for _, touch := range in.touches[i] {
		touch(in.keys)
	}
}
