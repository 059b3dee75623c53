package stream

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/state"
	"github.com/semelstream/semel/stream/internal/graph"
	"github.com/semelstream/semel/stream/internal/runtime"
)

// Wait holds a join's stream records back, in store, until the stream is grace
// past them, so that a [Versioned] table can catch up. Then they are joined as
// of their own times, the oldest first. Time is that of the records that come to
// the join: a stream that ends leaves its last ones waiting. A record that is
// more than grace behind is dropped as late.
//
// Grace is whole milliseconds from 0 on, and at most the table's history.
func Wait(store string, grace time.Duration) JoinOption {
	return option(func(s *settings) { s.wait = &waitSetting{store, grace} })
}

// A waitSetting is what [Wait] says.
type waitSetting struct {
	store string
	grace time.Duration
}

// check says what is wrong with waiting for a table that keeps versions for
// history ms.
func (w *waitSetting) check(b *Builder, node, table *graph.Node, history int64) {
	kept := time.Duration(history) * time.Millisecond
	switch {
	case w.grace < 0 || w.grace%time.Millisecond != 0:
		b.problem(node, "its grace of %v is no whole number of milliseconds from 0 on; give Wait one", w.grace)
	case history == 0:
		b.problem(node, "it waits for %s, which does not know its rows of the past; add stream.Versioned(history) to the table, or leave Wait out", label(table))
	case w.grace > kept:
		b.problem(node, "it waits for %v, but %s forgets versions after %v; give Versioned a history of at least that, or Wait a shorter grace", w.grace, label(table), kept)
	}
}

// Records that wait are rows of a key-value store in Kafka Streams' format.
// Numbers are big-endian:
//
//	00 | time 8 | key | number 4
//
// so that the oldest are first, then those of the smaller key, then those that
// came first. A value is that of a change which is held back, with nothing but
// the new value; see heldCodec.

const (
	delayKeyHead = 1 + 8
	delayKeyTail = 4
)

// appendDelayTime is how the keys of one time begin.
func appendDelayTime(dst []byte, ms int64) []byte { return appendTime(append(dst, 0), ms) }

func appendDelayKey[K any](dst []byte, ms int64, c codec.Codec[K], key K, number uint32) ([]byte, error) {
	dst, err := c.Append(appendDelayTime(dst, ms), key)
	return binary.BigEndian.AppendUint32(dst, number), err
}

// readDelayKey undoes appendDelayKey, but for the key itself.
func readDelayKey(src []byte) (ms int64, key []byte, err error) {
	if len(src) < delayKeyHead+delayKeyTail || src[0] != 0 || src[1] > math.MaxInt8 {
		return 0, nil, fmt.Errorf("%w: a key of a record that waits", codec.ErrDecode)
	}
	end := len(src) - delayKeyTail
	return int64(binary.BigEndian.Uint64(src[1:])), src[delayKeyHead:end:end], nil
}

// delay puts a port that waits before the join's.
func delay[K, V any](b *Builder, node *graph.Node, s *streamNode[K, V], set settings) func(o *opener, join port[K, V]) (port[K, V], error) {
	key := codecFor(b, node, set.keyCodec, s.key)
	value := codecFor(b, node, set.valueCodec, s.value)
	kept := newStore(b, node, set.wait.store, settings{}, codec.Bytes, heldBytes)
	return func(o *opener, join port[K, V]) (port[K, V], error) {
		kv, err := kept.open(o)
		if err != nil {
			return nil, err
		}
		p := &delayPort[K, V]{
			o: o, node: node, key: key, value: value, kv: kv, grace: set.wait.grace.Milliseconds(), join: join,
			time: o.operatorTime(node), count: o.number(0), first: o.number(0),
		}
		keepAdded(o, kept.store.Name, func() int64 { return p.count.now }, p.count.set)
		o.onFinal(node, p.release)
		return p, nil
	}
}

// A delayPort holds records back until it is their turn to be joined. They are
// let go between records, since they may fail for themselves: the record that
// ended their wait is not to blame.
type delayPort[K, V any] struct {
	o     *opener
	node  *graph.Node
	key   codec.Codec[K]
	kv    *state.KV[[]byte, held[[]byte]]
	value codec.Codec[V]
	grace int64
	join  port[K, V]
	time  operatorTime
	count *number // of records that have waited, ever
	first *number // no record that waits is older
	buf   []byte  // scratch: a key of the store

	encoded []byte // scratch: a value
}

func (p *delayPort[K, V]) push(r Record[K, V]) error {
	switch {
	case r.NoValue:
		p.o.drop(p.node, tombstoned)
		return nil
	case r.NoKey:
		return p.join.push(r) // there is no row to wait for
	}
	ms := r.Time.UnixMilli()
	if ms < p.time.observe(ms)-p.grace {
		p.o.drop(p.node, late)
		return nil
	}
	ref, err := p.free(r.Key, ms)
	if err != nil {
		return p.o.rowsFailed(p.node, err)
	}
	if p.encoded, err = p.value.Append(p.encoded[:0], r.Value); err != nil {
		return p.o.fail(p.node, runtime.OpEncode, err)
	}
	h := held[[]byte]{new: p.encoded, hasNew: true, ms: ms, headers: r.Headers}
	h.from(p.o.task.Source())
	p.kv.Set(ref, h, ms)
	p.first.lower(ms)
	return nil
}

// free is the place of the next record of a key and time. A number may be taken
// by a record of Kafka Streams, which counts anew at each start.
func (p *delayPort[K, V]) free(key K, ms int64) (ref state.Ref, err error) {
	for taken := true; taken && err == nil; {
		p.count.set(p.count.now + 1)
		if p.buf, err = appendDelayKey(p.buf[:0], ms, p.key, key, uint32(p.count.now&math.MaxInt32)); err == nil {
			ref, _, _, taken, err = p.kv.Find(p.buf)
		}
	}
	return ref, err
}

// A delayed is a record that is due.
type delayed[K, V any] struct {
	row []byte // its key in the store
	rec Record[K, V]

	// As it waited, for a dead letter.
	key, value []byte
	source     Source
}

// held is the record as it waited. It was not read if it was told of when a
// transaction closed: it has no source then.
func (d *delayed[K, V]) held() *kgo.Record {
	return &kgo.Record{
		Topic: d.source.Topic, Partition: d.source.Partition, Offset: d.source.Offset,
		Key: d.key, Value: d.value, Headers: toKafka(d.rec.Headers), Timestamp: d.rec.Time,
	}
}

// delayChunk is how many records are read before they are joined.
const delayChunk = 256

// release joins the records that are due. What happens with one that fails is
// decided for it alone.
func (p *delayPort[K, V]) release() error {
	if p.time.now == runtime.NoTime {
		return nil
	}
	for to := p.time.now - p.grace; p.first.now <= to; {
		due, err := p.due(to)
		if err != nil {
			return p.o.rowsFailed(p.node, err)
		}
		for i := range due {
			d := &due[i]
			if err := p.kv.Delete(d.row, d.rec.Time.UnixMilli()); err != nil {
				return p.o.rowsFailed(p.node, err)
			}
			if err := p.o.settleHeld(d.held, func() error { return p.join.push(d.rec) }); err != nil {
				return err
			}
		}
	}
	return nil
}

// due are the first records that have waited up to a time.
func (p *delayPort[K, V]) due(to int64) (list []delayed[K, V], err error) {
	p.buf = appendDelayTime(p.buf[:0], p.first.now)
	next := int64(math.MaxInt64)
	for row, err := range p.kv.From(p.buf) {
		if err != nil {
			return nil, err
		}
		ms, encoded, err := readDelayKey(row.Key)
		if err != nil {
			return nil, err
		}
		if ms > to || len(list) == delayChunk {
			next = ms
			break
		}
		d := delayed[K, V]{
			row: bytes.Clone(row.Key), key: bytes.Clone(encoded), value: row.Value.new,
			source: Source{row.Value.topic, row.Value.partition, row.Value.offset},
			rec:    Record[K, V]{Time: timeOf(ms), Headers: row.Value.headers},
		}
		if d.rec.Key, err = p.key.Decode(d.key); err != nil {
			return nil, err
		}
		if d.rec.Value, err = p.value.Decode(d.value); err != nil {
			return nil, err
		}
		list = append(list, d)
	}
	p.first.set(next)
	return list, nil
}
