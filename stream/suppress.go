package stream

import (
	"fmt"
	"time"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/state"
	"github.com/semelstream/semel/stream/internal/graph"
	"github.com/semelstream/semel/stream/internal/runtime"
)

// Suppress lets at most one change of a key through per wait of stream time,
// the latest. The wait begins at the time of the first change held back, and
// later ones of the key do not prolong it; held changes are kept in store. When
// [MaxKeys] or [MaxBytes] is exceeded the oldest is let through early, or the
// task fails with [FailWhenFull].
//
// Time is that of the changes that come here, of all keys: without any nothing
// is let through. Deletes wait like other changes. Rows cannot be looked up
// behind Suppress; keep them with [Table.Stored].
func (t Table[K, V]) Suppress(store string, wait time.Duration, opts ...BufferOption) Table[K, V] {
	return Table[K, V]{suppress(t.at(), store, wait, settingsOf(opts))}
}

// Suppress is [Table.Suppress]: a window's row goes through once per wait.
// [WindowedTable.Final] is for rows that do not change any more.
func (t WindowedTable[K, V]) Suppress(store string, wait time.Duration, opts ...BufferOption) WindowedTable[K, V] {
	return WindowedTable[K, V]{suppress(t.at(), store, wait, settingsOf(opts))}
}

func suppress[K, V any](from *tableNode[K, V], store string, wait time.Duration, set settings) *tableNode[K, V] {
	b := from.b
	n := &tableNode[K, V]{b: b, key: from.key, value: from.value}
	n.node = b.add("suppress", set, from.node)
	switch {
	case from.history > 0:
		b.problem(n.node, "it follows a versioned table, whose old versions it cannot hold back; put .Stored(\"name\") in between, which has the newest ones")
	case wait <= 0 || wait%time.Millisecond != 0:
		b.problem(n.node, "its wait of %v is no whole number of milliseconds from 1 on; give it one", wait)
	case set.maxKeys < 0 || set.maxBytes < 0:
		b.problem(n.node, "MaxKeys(%d) or MaxBytes(%d) is no limit; give at least 1, or leave it out", set.maxKeys, set.maxBytes)
	case set.failWhenFull && set.maxKeys == 0 && set.maxBytes == 0:
		b.problem(n.node, "it has FailWhenFull and is never full; add stream.MaxKeys or stream.MaxBytes")
	}
	// What follows is told the value that it was told last, so it must come here.
	from.needOld()
	value := codecFor(b, n.node, set.valueCodec, from.value)
	key := codecFor(b, n.node, set.keyCodec, from.key)
	kept := newStore(b, n.node, store, set, codec.Bytes, heldBytes)
	kept.store.Format = heldFormat
	b.autoName(n.node, store)
	from.use(func(o *opener) (tablePort[K, V], error) {
		kv, err := kept.open(o)
		if err != nil {
			return nil, err
		}
		out, err := n.open(o)
		if err != nil {
			return nil, err
		}
		p := &suppressPort[K, V]{
			o: o, node: n.node, kv: kv, out: out, wait: wait.Milliseconds(), set: set,
			key: key, value: value, time: o.operatorTime(n.node), order: newHeldOrder(o),
		}
		if err := p.restore(); err != nil {
			return nil, err
		}
		return p, nil
	})
	return n
}

// A suppressPort holds changes back. Its store has them by key; order has them
// by time, and is made anew from the store whenever the port is. Both have them
// as bytes: nobody looks at them, and a store of typed ones would be compiled
// for each type of row that there is, suppressed or not.
type suppressPort[K, V any] struct {
	o     *opener
	node  *graph.Node
	kv    *state.KV[[]byte, held[[]byte]]
	key   codec.Codec[K]
	value codec.Codec[V]
	out   tablePort[K, V]
	wait  int64
	set   settings
	time  operatorTime
	order *heldOrder

	row      []byte // scratch: an encoded key
	old, new []byte // scratch: encoded values
	sized    []byte // scratch: a row whose size matters
}

func (p *suppressPort[K, V]) restore() error {
	for row, err := range p.kv.All() {
		if err != nil {
			return fmt.Errorf("reading what %s holds back: %w", label(p.node), err)
		}
		if err := p.note(row.Key, row.Value); err != nil {
			return fmt.Errorf("reading what %s holds back: %w", label(p.node), err)
		}
	}
	return nil
}

func (p *suppressPort[K, V]) note(key []byte, h held[[]byte]) (err error) {
	at := heldAt{since: h.since, key: string(key)}
	if p.set.maxBytes > 0 {
		p.sized, err = heldBytes.Append(p.sized[:0], h)
		at.size = int64(len(key) + len(p.sized))
	}
	p.order.put(at)
	return err
}

func (p *suppressPort[K, V]) change(c change[K, V]) error {
	now := p.time.observe(c.ms)
	if err := p.hold(c); err != nil {
		return err
	}
	for {
		first, ok := p.order.first()
		if !ok || now-first.since < p.wait && !p.full() {
			return nil
		}
		if now-first.since < p.wait && p.set.failWhenFull {
			return p.overflow()
		}
		if err := p.release(first); err != nil {
			return err
		}
	}
}

// hold puts c into the place of what is held back of its key.
func (p *suppressPort[K, V]) hold(c change[K, V]) error {
	if err := p.encode(c); err != nil {
		return p.o.fail(p.node, runtime.OpEncode, err)
	}
	ref, h, _, was, err := p.kv.Find(p.row)
	if err != nil {
		return p.o.rowsFailed(p.node, err)
	}
	if !was {
		h = held[[]byte]{since: c.ms, prior: p.old, hasPrior: c.hasOld}
	}
	h.old, h.hasOld, h.new, h.hasNew = p.old, c.hasOld, p.new, c.hasNew
	h.ms, h.headers = c.ms, c.headers
	h.from(p.o.task.Source())
	p.kv.Set(ref, h, c.ms)
	if was && p.set.maxBytes == 0 {
		return nil // it keeps its place
	}
	if err := p.note(p.row, h); err != nil {
		return p.o.rowsFailed(p.node, err)
	}
	return nil
}

// encode makes the key and the values of c, in scratch memory.
func (p *suppressPort[K, V]) encode(c change[K, V]) (err error) {
	if p.row, err = p.key.Append(p.row[:0], c.key); err != nil {
		return err
	}
	if p.old = p.old[:0]; c.hasOld {
		if p.old, err = p.value.Append(p.old, c.old); err != nil {
			return err
		}
	}
	if p.new = p.new[:0]; c.hasNew {
		p.new, err = p.value.Append(p.new, c.new)
	}
	return err
}

// release lets the change go that has waited longest.
func (p *suppressPort[K, V]) release(first heldAt) error {
	row := []byte(first.key)
	ref, h, _, _, err := p.kv.Find(row)
	if err != nil {
		return p.o.rowsFailed(p.node, err)
	}
	c, err := p.decode(row, h)
	if err != nil {
		return p.o.rowsFailed(p.node, err)
	}
	p.kv.Remove(ref, h.ms)
	p.order.remove(first)
	return p.out.change(c)
}

// decode undoes encode. It may keep the bytes.
func (p *suppressPort[K, V]) decode(row []byte, h held[[]byte]) (c change[K, V], err error) {
	c = change[K, V]{hasOld: h.hasPrior, hasNew: h.hasNew, ms: h.ms, headers: h.headers}
	if c.key, err = p.key.Decode(row); err != nil {
		return c, err
	}
	if h.hasPrior {
		if c.old, err = p.value.Decode(h.prior); err != nil {
			return c, err
		}
	}
	if h.hasNew {
		c.new, err = p.value.Decode(h.new)
	}
	return c, err
}

func (p *suppressPort[K, V]) full() bool {
	keys, bytes := p.order.size()
	return p.set.maxKeys > 0 && keys > p.set.maxKeys || p.set.maxBytes > 0 && bytes > p.set.maxBytes
}

// overflow ends the task, whatever the policies about records are.
func (p *suppressPort[K, V]) overflow() error {
	keys, bytes := p.order.size()
	return &runtime.Failure{Op: opState, Operator: p.o.name(p.node), Policy: stop, Err: fmt.Errorf(
		"%d changes of %d bytes are held back, which is more than MaxKeys(%d) or MaxBytes(%d) allows; raise it, shorten the wait, or leave FailWhenFull out",
		keys, bytes, p.set.maxKeys, p.set.maxBytes)}
}
