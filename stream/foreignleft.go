package stream

import (
	"bytes"
	"fmt"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/stream/internal/graph"
	"github.com/semelstream/semel/stream/internal/runtime"
)

// openLeft opens what sends subscriptions.
func (j *foreignJoin[K, V, FK, V2, R]) openLeft(o *opener, sink *graph.Node, register *graph.Topic) (tablePort[K, V], error) {
	to, err := newSink(o, sink, Topic[[]byte, []byte]{Name: register.Name, Key: codec.Bytes, Value: codec.Bytes})
	return &subscriber[K, V, FK, V2, R]{foreignJoin: j, o: o, to: to}, err
}

// A subscriber makes a change on the left the subscriptions that end and begin
// with it.
type subscriber[K, V, FK, V2, R any] struct {
	*foreignJoin[K, V, FK, V2, R]
	o  *opener
	to port[[]byte, []byte]

	// Scratch.
	primary, oldKey, newKey, value, sub []byte
}

func (p *subscriber[K, V, FK, V2, R]) change(c change[K, V]) error {
	if c.past {
		p.o.drop(p.extract, oldVersion)
		return nil
	}
	if !c.hasOld && !c.hasNew {
		return nil
	}
	var err error
	var had, has bool
	if c.hasOld {
		if p.oldKey, had, err = p.keyOf(p.oldKey, c.key, c.old); err != nil {
			return err
		}
	}
	if c.hasNew {
		if p.newKey, has, err = p.keyOf(p.newKey, c.key, c.new); err != nil {
			return err
		}
	}
	s := subscription{partition: p.o.task.ID().Partition}
	if p.primary, err = p.key.Append(p.primary[:0], c.key); err != nil {
		return p.encodeFailed("key", err)
	}
	s.primary = p.primary
	if c.hasNew {
		if p.value, err = p.foreignJoin.value.Append(p.value[:0], c.new); err != nil {
			return p.encodeFailed("value", err)
		}
		s.hash, s.hashed = hashValue(p.value), true
	}
	moved := had && !(has && bytes.Equal(p.oldKey, p.newKey))
	if p.left {
		return p.changeLeft(c, s, moved, has)
	}
	return p.changeInner(c, s, had, moved, has)
}

// changeLeft asks for an answer in any case, since each row has a result.
func (p *subscriber[K, V, FK, V2, R]) changeLeft(c change[K, V], s subscription, moved, has bool) error {
	if moved {
		if err := p.send(c, s, unsubscribe, p.oldKey, true); err != nil {
			return err
		}
	}
	return p.send(c, s, subscribe, p.newKey, has)
}

func (p *subscriber[K, V, FK, V2, R]) changeInner(c change[K, V], s subscription, had, moved, has bool) error {
	if c.hasNew && !has {
		p.o.drop(p.extract, noForeign)
	}
	switch {
	case !has && !had:
		return nil
	case !has:
		return p.send(c, s, forgetAnswer, p.oldKey, true)
	case !moved:
		return p.send(c, s, subscribeAny, p.newKey, true)
	}
	// The new partner may be missing, and the result with the old one has to go.
	if err := p.send(c, s, unsubscribe, p.oldKey, true); err != nil {
		return err
	}
	return p.send(c, s, subscribe, p.newKey, true)
}

// keyOf is the encoded foreign key of a row, if it has one.
func (p *subscriber[K, V, FK, V2, R]) keyOf(dst []byte, key K, v V) (_ []byte, ok bool, err error) {
	p.o.enter(p.extract)
	foreign, ok := p.foreign(key, v)
	if !ok {
		return dst, false, nil
	}
	if dst, err = p.foreignKey.Append(dst[:0], foreign); err != nil {
		return dst, false, p.encodeFailed("foreign key", err)
	}
	return dst, true, nil
}

func (p *subscriber[K, V, FK, V2, R]) encodeFailed(what string, err error) error {
	return p.o.fail(p.extract, runtime.OpEncode, fmt.Errorf("%s: %w", what, err))
}

func (p *subscriber[K, V, FK, V2, R]) send(c change[K, V], s subscription, do instruction, foreign []byte, ok bool) error {
	s.instruction = do
	p.sub = s.appendTo(p.sub[:0])
	r := Record[[]byte, []byte]{Key: foreign, Value: p.sub, Time: timeOf(c.ms), Headers: c.headers}
	if !ok {
		r.Key, r.NoKey = nil, true
	}
	return p.to.push(r)
}

// readAnswers makes the result of answers.
func (j *foreignJoin[K, V, FK, V2, R]) readAnswers(b *Builder, source *graph.Node, answers *graph.Topic, from *tableNode[K, V]) {
	s := newSource(b, source, answers, Topic[K, response]{Name: answers.Name, Key: j.key, Value: responses{}})
	s.use(func(o *opener) (port[K, response], error) {
		rows, err := from.toldRows(o)
		if err != nil {
			return nil, err
		}
		out, err := j.n.open(o)
		return &answerPort[K, V, FK, V2, R]{foreignJoin: j, o: o, rows: rows, out: out}, err
	})
}

// An answerPort pairs answers with the rows on the left that they are for.
type answerPort[K, V, FK, V2, R any] struct {
	*foreignJoin[K, V, FK, V2, R]
	o     *opener
	rows  rows[K, V]
	out   tablePort[K, R]
	bytes []byte // scratch
}

func (p *answerPort[K, V, FK, V2, R]) push(r Record[K, response]) error {
	if r.NoKey || r.NoValue {
		return nil // nobody writes such
	}
	row, _, ok, err := p.rows.row(r.Key)
	if err != nil {
		return p.o.rowsFailed(p.n.node, err)
	}
	if current, err := p.isFor(r.Value, row, ok); !current {
		return err
	}
	answer := r.Value
	headers := takeEmpty(&answer, r.Headers)
	c := change[K, R]{key: r.Key, ms: r.Time.UnixMilli(), headers: headers}
	if ok && (answer.hasValue || p.left) {
		var other V2
		if answer.hasValue {
			if other, err = p.other.Decode(answer.value); err != nil {
				return p.o.fail(p.n.node, runtime.OpDecode, fmt.Errorf("value of the right side: %w", err))
			}
		}
		p.o.enter(p.n.node)
		c.new, c.hasNew = p.f(row, other, answer.hasValue), true
	}
	return p.out.change(c)
}

// isFor says that the answer is for the row as it is. If it is not, the row
// has changed since it subscribed, and another answer is on its way.
func (p *answerPort[K, V, FK, V2, R]) isFor(answer response, row V, ok bool) (_ bool, err error) {
	if ok != answer.hashed {
		return false, nil
	}
	if !ok {
		return true, nil
	}
	if p.bytes, err = p.foreignJoin.value.Append(p.bytes[:0], row); err != nil {
		return false, p.o.fail(p.n.node, runtime.OpEncode, fmt.Errorf("value: %w", err))
	}
	return hashValue(p.bytes) == answer.hash, nil
}
