package stream

import (
	"reflect"
	"slices"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semelstream/semel/internal/assert"
	"github.com/semelstream/semel/stream/internal/graph"
	"github.com/semelstream/semel/stream/internal/runtime"
)

// An opener is the opening of one instance: what ports are made with. Ports
// keep it, for its task and for failures.
type opener struct {
	app    string // for names of internal topics
	task   *runtime.Task
	in     *instance
	shared map[sharedKey]any // made once
	t      *Topology
	pos    map[int]int // of nodes in topological order
}

// A sharedKey is what a thing that several share is known by: a node, and what
// it is of the node.
type sharedKey struct {
	node int // its ID
	of   reflect.Type
}

// share makes the T of n once per instance, for nodes that several others lead
// to.
func share[T any](o *opener, n *graph.Node, open func() (T, error)) (T, error) {
	key := sharedKey{n.ID, reflect.TypeFor[T]()}
	if made, ok := o.shared[key]; ok {
		return made.(T), nil
	}
	made, err := open()
	if err == nil {
		o.shared[key] = made
	}
	return made, err
}

// name is how n is called in failures and counters.
func (o *opener) name(n *graph.Node) string { return n.Name }

// onFlush has f called before each commit, after what comes before n.
func (o *opener) onFlush(n *graph.Node, f func() error) {
	o.in.flushes = append(o.in.flushes, flush{n, o.pos[n.ID], f})
}

// onFinal has f called after each record and in each flush, after what comes
// before n and after n's own flush. It sends what has become final, each result
// by [opener.settle].
func (o *opener) onFinal(n *graph.Node, f func() error) {
	o.in.finals = append(o.in.finals, flush{n, o.pos[n.ID], f})
	o.onFlush(n, f)
}

// settle runs f, which sends one result that no record is to blame for. If it
// fails, what it did is taken back, and the policy may let it pass.
func (o *opener) settle(f func() error) error {
	mark := o.task.Savepoint()
	return o.task.Settle(mark, o.guarded(f))
}

// settleHeld is settle for a record that was held back, which is made if it is
// to blame: a dead letter can be of it.
func (o *opener) settleHeld(held func() *kgo.Record, f func() error) error {
	mark := o.task.Savepoint()
	return o.task.SettleHeld(mark, held, o.guarded(f))
}

func (o *opener) guarded(f func() error) (err error) {
	defer o.in.recovered(&err)
	return f()
}

// touchAhead has touch called with the encoded keys of records that are about
// to come, so that the rows of many are brought into the processor's cache at
// the same time. It is for stores whose keys are those of the sources before n.
func (o *opener) touchAhead(n *graph.Node, touch func(keys [][]byte)) {
	for _, topic := range graph.SourcesOf(n) {
		i := slices.Index(o.task.Sub().Sources, topic)
		for len(o.in.touches) <= i {
			o.in.touches = append(o.in.touches, nil)
		}
		o.in.touches[i] = append(o.in.touches[i], touch)
	}
}

// lookAhead has look called with the records that are about to come from a
// source. Some of them may never come, or come again.
func (o *opener) lookAhead(source *graph.Node, look func(recs []*kgo.Record)) {
	i := slices.Index(o.task.Sub().Sources, source.Topic)
	for len(o.in.looks) <= i {
		o.in.looks = append(o.in.looks, nil)
	}
	o.in.looks[i] = append(o.in.looks[i], look)
}

// onClose has f called when the instance ends.
func (o *opener) onClose(f func() error) { o.in.closers = append(o.in.closers, f) }

// keepTime makes a time survive: get is asked for it at each commit, set gets
// it back when the task is opened again. Names are unique in the sub-topology
// and begin with an operator's name; runtime.NoTime is not kept.
func (o *opener) keepTime(name string, get func() int64, set func(int64)) {
	for _, k := range o.in.times {
		assert.That(k.name != name, "two times are called %q", name)
	}
	o.in.times = append(o.in.times, keptTime{name: name, get: get, set: set})
}

// keepTimeOr is keepTime with adopt, which is called when a task is opened that
// has kept no such time: its rows, if any, are another program's.
func (o *opener) keepTimeOr(name string, get func() int64, set func(int64), adopt func()) {
	o.keepTime(name, get, set)
	o.in.times[len(o.in.times)-1].adopt = adopt
}

// onUndo has f called where the effects of the record at hand, or of one change
// of a flush, are taken back, for what a port keeps in itself.
func (o *opener) onUndo(f func()) { o.in.undos = append(o.in.undos, f) }

// addTimer adds a timer of n.
func (o *opener) addTimer(n *graph.Node, t *timer) {
	o.in.timers = append(o.in.timers, setTimer{n, t})
}

// drop counts a record that n leaves out.
func (o *opener) drop(n *graph.Node, reason string) { o.task.Dropped(n.Name, reason) }

// lacks drops a record that has no key or no value, for operators that need both.
func (o *opener) lacks(n *graph.Node, withoutKey, withoutValue bool) bool {
	switch {
	case withoutKey:
		o.drop(n, noKey)
	case withoutValue:
		o.drop(n, tombstoned)
	default:
		return false
	}
	return true
}

// Reasons for drops.
const (
	noKey      = "no key"
	tombstoned = "tombstone"
	noTime     = "no time"
	noTarget   = "no partition"
	noForeign  = "no foreign key"
	late       = "late"
	oldVersion = "old version"
	duplicate  = "duplicate"
	noWindow   = "no window"
	expired    = "expired"
	noLookup   = "no lookup key"
)
