package stream

import (
	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/stream/internal/graph"
)

// A joining is a stream-stream join within a task: what both sides share.
//
// Its time is the largest of both sides' records. It decides what is late:
// that whose window has closed, so that no partner can be in time any more.
type joining[K, R any] struct {
	o      *opener
	node   *graph.Node
	span   joinSpan
	time   operatorTime
	key    codec.Codec[K]
	out    port[K, R]
	lonely *lonely[K, R] // nil in inner joins
	expire []func(before int64)
	before int64 // of the last expiry
}

func openJoin[K, V, V2, R any](o *opener, n *streamNode[K, R], d *joinDeclared[K, V, V2], f func(V, bool, V2, bool) R) (*joining[K, R], error) {
	j := &joining[K, R]{o: o, node: n.node, span: d.span, time: o.operatorTime(n.node), key: d.key}
	left, err := d.left.open(o)
	if err != nil {
		return nil, err
	}
	right, err := d.right.open(o)
	if err != nil {
		return nil, err
	}
	j.expire = append(j.expire, left.Expire, right.Expire)
	if d.touch { // a record looks in one and is added to the other
		o.touchAhead(n.node, func(keys [][]byte) { left.Touch(0, keys) })
		o.touchAhead(n.node, func(keys [][]byte) { right.Touch(0, keys) })
	}
	if j.out, err = n.open(o); err != nil || d.waiting == nil {
		return j, err
	}
	kv, err := d.waiting.open(o)
	if err != nil {
		return nil, err
	}
	j.lonely = newLonely(j, kv, d.shape)
	j.lonely.alone[leftSide] = func(value []byte) (r R, err error) {
		var none V2
		v, err := d.left.value.Decode(value)
		if err != nil {
			return r, err
		}
		return f(v, true, none, false), nil
	}
	j.lonely.alone[rightSide] = func(value []byte) (r R, err error) {
		var none V
		v, err := d.right.value.Decode(value)
		if err != nil {
			return r, err
		}
		return f(none, false, v, true), nil
	}
	return j, nil
}

// reach is called by each record with key and value that is at the join's
// time, before its pairs. Only these send what goes on alone.
func (j *joining[K, R]) reach(now int64) error {
	if before := now - j.span.retain(); before > j.before {
		for _, expire := range j.expire {
			expire(before)
		}
		j.before = before
	}
	if j.lonely == nil {
		return nil
	}
	return j.lonely.send(now)
}

// late: a record of a side that is open so long has no partner in time.
func (j *joining[K, R]) late(ms, open int64) bool {
	return ms < j.time.now-open-j.span.grace
}
