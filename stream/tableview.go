package stream

import "github.com/semelstream/semel/stream/internal/runtime"

// A view is a table worked out from another: its operators Filter, MapValues,
// MapValuesWithKey, MapOrDelete and TryMapValues are this one with different
// functions. It keeps nothing. A row is hidden where f returns false.
//
// The function is not called for missing rows, so that a delete of a row that
// the view has hidden reaches what follows as a delete too, unless something
// that follows wants to know the values before: then it is known not to
// matter, and left out.
func newView[K, V, V2 any](from *tableNode[K, V], kind string, opts []Option, isNil bool, f func(key K, value V) (V2, bool, error)) *tableNode[K, V2] {
	b := from.b
	n := &tableNode[K, V2]{b: b, key: from.key, askOld: from.needOld, reads: from.reads, history: from.history}
	n.node = b.add(kind, settingsOf(opts), from.node)
	b.needFunc(n.node, isNil)
	seen := func(open func(o *opener) (rows[K, V], error)) func(o *opener) (rows[K, V2], error) {
		return func(o *opener) (rows[K, V2], error) {
			rows, err := open(o)
			return &viewRows[K, V, V2]{view[K, V, V2]{o, n, f}, rows}, err
		}
	}
	if from.openRows != nil {
		n.openRows, n.openTold = seen(from.openRows), seen(from.toldRows)
	}
	if from.openPast != nil {
		n.openPast = func(o *opener) (pastRows[K, V2], error) {
			past, err := from.openPast(o)
			return &viewPast[K, V, V2]{view[K, V, V2]{o, n, f}, past}, err
		}
	}
	passFinals(from, n, func(o *opener, out finalPort[K, V2]) finalPort[K, V] {
		return &viewFinals[K, V, V2]{view[K, V, V2]{o, n, f}, out}
	})
	from.use(func(o *opener) (tablePort[K, V], error) {
		out, err := n.open(o)
		return &viewPort[K, V, V2]{view[K, V, V2]{o, n, f}, out}, err
	})
	return n
}

// A view's function within a task.
type view[K, V, V2 any] struct {
	o *opener
	n *tableNode[K, V2]
	f func(key K, value V) (V2, bool, error)
}

func (w *view[K, V, V2]) apply(key K, v V) (v2 V2, ok bool, err error) {
	w.o.enter(w.n.node)
	if v2, ok, err = w.f(key, v); err != nil {
		return v2, false, w.o.fail(w.n.node, runtime.OpFunction, err)
	}
	if !ok {
		var none V2
		v2 = none
	}
	return v2, ok, nil
}

// viewRows works rows out when they are asked for.
type viewRows[K, V, V2 any] struct {
	view[K, V, V2]
	from rows[K, V]
}

func (r *viewRows[K, V, V2]) row(key K) (v2 V2, ms int64, ok bool, err error) {
	v, ms, ok, err := r.from.row(key)
	if err != nil || !ok {
		return v2, ms, false, err
	}
	v2, ok, err = r.apply(key, v)
	return v2, ms, ok, err
}

// viewPast works rows out as they were.
type viewPast[K, V, V2 any] struct {
	view[K, V, V2]
	from pastRows[K, V]
}

func (r *viewPast[K, V, V2]) rowAt(key K, ms int64) (v2 V2, ok bool, err error) {
	v, ok, err := r.from.rowAt(key, ms)
	if err != nil || !ok {
		return v2, false, err
	}
	return r.apply(key, v)
}

type viewPort[K, V, V2 any] struct {
	view[K, V, V2]
	out tablePort[K, V2]
}

func (p *viewPort[K, V, V2]) deaf() bool { return !heard(p.out) }

func (p *viewPort[K, V, V2]) change(c change[K, V]) (err error) {
	to := change[K, V2]{key: c.key, ms: c.ms, headers: c.headers, past: c.past}
	if c.hasNew {
		if to.new, to.hasNew, err = p.apply(c.key, c.new); err != nil {
			return err
		}
	}
	if p.n.wantOld {
		if c.hasOld {
			if to.old, to.hasOld, err = p.apply(c.key, c.old); err != nil {
				return err
			}
		}
		// A version of no row ends the one before it, whatever is hidden now.
		if !to.hasOld && !to.hasNew && p.n.history == 0 {
			return nil
		}
	}
	return p.out.change(to)
}
