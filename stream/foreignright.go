package stream

import (
	"fmt"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/state"
	"github.com/semelstream/semel/stream/internal/graph"
	"github.com/semelstream/semel/stream/internal/runtime"
)

// readRegistrations keeps and answers subscriptions as they come.
func (j *foreignJoin[K, V, FK, V2, R]) readRegistrations(b *Builder, source *graph.Node, register *graph.Topic, to *tableNode[FK, V2], sink *graph.Node, answers *graph.Topic) {
	s := newSource(b, source, register, Topic[FK, []byte]{Name: register.Name, Key: j.foreignKey, Value: codec.Bytes})
	s.use(func(o *opener) (port[FK, []byte], error) {
		p, err := j.openRight(o, to, sink, answers)
		return registrations[K, V, FK, V2, R]{p}, err
	})
}

// openRight opens the right side once, for subscriptions and for changes.
func (j *foreignJoin[K, V, FK, V2, R]) openRight(o *opener, to *tableNode[FK, V2], sink *graph.Node, answers *graph.Topic) (*answerer[K, V, FK, V2, R], error) {
	return share(o, j.answer, func() (*answerer[K, V, FK, V2, R], error) {
		subs, err := j.subs.open(o)
		if err != nil {
			return nil, err
		}
		rows, err := to.toldRows(o)
		if err != nil {
			return nil, err
		}
		out, err := newSink(o, sink, Topic[[]byte, response]{
			Name: answers.Name, Key: codec.Bytes, Value: responses{},
		}.PartitionBy(func(r Record[[]byte, response], _ int) int { return int(r.Value.partition) }))
		return &answerer[K, V, FK, V2, R]{foreignJoin: j, o: o, subs: subs, rows: rows, out: out}, err
	})
}

// An answerer keeps subscriptions and answers them.
type answerer[K, V, FK, V2, R any] struct {
	*foreignJoin[K, V, FK, V2, R]
	o    *opener
	subs *state.KV[[]byte, []byte]
	rows rows[FK, V2]
	out  port[[]byte, response]

	key, bytes []byte // scratch
}

// registrations are where subscriptions come in.
type registrations[K, V, FK, V2, R any] struct {
	*answerer[K, V, FK, V2, R]
}

func (p registrations[K, V, FK, V2, R]) push(r Record[FK, []byte]) error {
	if r.NoValue {
		return nil // nobody writes such
	}
	s, err := parseSubscription(r.Value)
	if err != nil {
		return p.o.fail(p.answer, runtime.OpDecode, err)
	}
	a := answerTo(s)
	c := answerOf[V2]{ms: r.Time.UnixMilli(), headers: r.Headers}
	if !r.NoKey {
		if err := p.keep(r.Key, s, r.Value, c.ms); err != nil {
			return err
		}
		row, ms, ok, err := p.rows.row(r.Key)
		if err != nil {
			return p.o.rowsFailed(p.answer, err)
		}
		if ok {
			c.ms, c.value, c.ok = max(c.ms, ms), row, true
		}
	}
	switch s.instruction {
	case unsubscribe:
		return nil
	case forgetAnswer:
		c.ok = false
	case subscribeAny:
		if !c.ok {
			return nil
		}
	}
	if c.bytes, err = p.encode(c.value, c.ok); err != nil {
		return err
	}
	return p.send(s.primary, a, c)
}

// keep writes a subscription down, or ends it.
func (p *answerer[K, V, FK, V2, R]) keep(foreign FK, s subscription, raw []byte, ms int64) (err error) {
	if p.key, err = p.prefix(p.key[:0], foreign); err != nil {
		return err
	}
	p.key = append(p.key, s.primary...)
	switch s.instruction {
	case subscribe, subscribeAny:
		err = p.subs.Put(p.key, raw, ms)
	default:
		err = p.subs.Delete(p.key, ms)
	}
	if err != nil {
		return p.o.rowsFailed(p.answer, err)
	}
	return nil
}

// prefix is how the keys of foreign's subscriptions begin.
func (p *answerer[K, V, FK, V2, R]) prefix(dst []byte, foreign FK) (_ []byte, err error) {
	if p.bytes, err = p.foreignKey.Append(p.bytes[:0], foreign); err != nil {
		return dst, p.o.fail(p.answer, runtime.OpEncode, fmt.Errorf("foreign key: %w", err))
	}
	return subscriptionPrefix(dst, p.bytes), nil
}

// rightChanges are where changes of rows on the right come in.
type rightChanges[K, V, FK, V2, R any] struct {
	*answerer[K, V, FK, V2, R]
}

// change answers all who have subscribed to the row, in order of their keys.
func (p rightChanges[K, V, FK, V2, R]) change(c change[FK, V2]) error {
	if c.past {
		p.o.drop(p.answer, oldVersion)
		return nil
	}
	prefix, err := p.prefix(p.answerer.key[:0], c.key)
	if err != nil {
		return err
	}
	p.answerer.key = prefix
	a := answerOf[V2]{value: c.new, ok: c.hasNew, ms: c.ms, headers: c.headers}
	if a.bytes, err = p.encode(c.new, c.hasNew); err != nil {
		return err
	}
	for row, err := range p.subs.Prefix(prefix) {
		if err != nil {
			return p.o.rowsFailed(p.answer, err)
		}
		s, err := parseSubscription(row.Value)
		if err != nil {
			return p.o.rowsFailed(p.answer, err)
		}
		if err := p.send(s.primary, answerTo(s), a); err != nil {
			return err
		}
	}
	return nil
}

// An answerOf is a row on the right, or none.
type answerOf[V2 any] struct {
	value   V2
	bytes   []byte
	ok      bool
	ms      int64
	headers Headers
}

// answerTo is the answer to s, still without a value.
func answerTo(s subscription) response {
	return response{hash: s.hash, hashed: s.hashed, partition: s.partition}
}

func (p *answerer[K, V, FK, V2, R]) encode(v V2, ok bool) (_ []byte, err error) {
	if !ok {
		return nil, nil
	}
	if p.bytes, err = p.other.Append(p.bytes[:0], v); err != nil {
		return nil, p.o.fail(p.answer, runtime.OpEncode, fmt.Errorf("value: %w", err))
	}
	return p.bytes, nil
}

func (p *answerer[K, V, FK, V2, R]) send(primary []byte, to response, a answerOf[V2]) error {
	to.value, to.hasValue = a.bytes, a.ok
	headers := a.headers
	if a.ok && len(a.bytes) == 0 {
		headers = append(headers[:len(headers):len(headers)], emptyValue)
	}
	return p.out.push(Record[[]byte, response]{Key: primary, Value: to, Time: timeOf(a.ms), Headers: headers})
}
