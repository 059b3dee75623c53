package state

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"

	"github.com/semelstream/semel/internal/assert"
)

// bundleBytes is about how large a bundle becomes, unless it is one row: far below
// any limit of a topic, and enough for what each record costs to be little per row.
const bundleBytes = 4 << 10

// A bundle is rows of a KindWindowOnce store in one changelog record, with which
// broker and client have little more work than with a record of one row. It is
//
//	key     of the first row, as a KindWindow store has it: key, start 8, 0 (4)
//	value   the first row's time 8, its value; then of each other row: its key,
//	        its start and its time less the first row's, its value
//	time    the latest of its rows, so that it is kept until all have expired
//
// Keys and values have their length before them, a uvarint; differences are
// varints. No row is put twice, so there is nothing to compact: the topic only
// deletes what is old.
type bundle struct {
	key    []byte
	value  []byte // never nil
	start  int64  // of the first row
	time   int64  // too
	latest int64
	rows   int
}

// add puts a row behind those that are there; key is in the store's order.
func (b *bundle) add(l layout, key, value []byte, time int64) {
	start := l.time(key)
	if b.rows == 0 {
		b.key, b.start, b.time, b.latest = l.toLog(b.key[:0], key), start, time, time
		b.value = addTime(b.value[:0], time)
	} else {
		b.value = appendSized(b.value, l.inner(key))
		b.value = binary.AppendVarint(b.value, start-b.start)
		b.value = binary.AppendVarint(b.value, time-b.time)
		b.latest = max(b.latest, time)
	}
	b.value = appendSized(b.value, value)
	b.rows++
}

func appendSized(dst, b []byte) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(b))), b...)
}

// bundles is changes for a store whose rows are put once.
func (o *overlay[V]) bundles(f func(key, value []byte, time int64) error) error {
	b := &o.bundle
	b.rows = 0
	err := o.eachRow(func(t *before[V], e *entry[V]) error {
		if t.has || e.flags&present == 0 { // the assertion's arguments cost an allocation
			assert.That(false, "store %s: a row that is put once is changed or deleted", o.p.name)
		}
		value, err := o.encode(nil, e.v, true)
		if err != nil {
			return err
		}
		key := o.keyOf(e)
		if len(b.value)+len(key)+len(value) > bundleBytes {
			err = b.flush(f)
		}
		b.add(o.p.rec.keys, key, value, e.time)
		return err
	})
	if err != nil {
		return err
	}
	return b.flush(f)
}

// flush hands the rows on, if there are any.
func (b *bundle) flush(f func(key, value []byte, time int64) error) error {
	if b.rows == 0 {
		return nil
	}
	b.rows = 0
	return f(b.key, b.value, b.latest)
}

// applyBundles puts the rows of bundles into b.
func (p *Part) applyBundles(b *Batch, records iter.Seq[Row], rec storeRecord) error {
	for r := range records {
		var err error
		if p.row, err = rec.keys.fromLog(p.row[:0], r.Key); err != nil {
			return err
		}
		err = unbundle(p.row, r.Value, func(key, value []byte, time int64) {
			p.key = rowKey(p.key[:0], rec.id, key)
			p.val = rowValue(p.val[:0], value, time)
			b.Set(p.key, p.val)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

var errBundle = errors.New("a changelog record of a window once store that is not what its writer wrote")

// unbundle calls f with the rows of a record; first is the key of the first one in
// the store's order, and what f gets is valid until it returns. A record that
// ends in the middle may have had rows before.
func unbundle(first, value []byte, f func(key, value []byte, time int64)) error {
	if len(value) < timeSize {
		return fmt.Errorf("%w: a value of %d bytes", errBundle, len(value))
	}
	r := reader{rest: value[timeSize:]}
	start, time := getTime(first), getTime(value)
	if v := r.sized(); !r.bad {
		f(first, v, time)
	}
	var row []byte
	for len(r.rest) > 0 && !r.bad {
		key := r.sized()
		at, ms, v := start+r.varint(), time+r.varint(), r.sized()
		if r.bad = r.bad || at < 0; r.bad {
			break
		}
		row = append(addTime(row[:0], at), key...)
		f(row, v, ms)
	}
	if r.bad {
		return fmt.Errorf("%w: it goes wrong %d bytes before the end of its value of %d", errBundle, len(r.rest), len(value))
	}
	return nil
}

// A reader takes bytes apart. After the first mistake it is bad.
type reader struct {
	rest []byte
	bad  bool
}

func (r *reader) sized() []byte {
	n, size := binary.Uvarint(r.rest)
	if size <= 0 || n > uint64(len(r.rest)-size) {
		r.bad = true
		return nil
	}
	b := r.rest[size : size+int(n)]
	r.rest = r.rest[size+int(n):]
	return b
}

func (r *reader) varint() int64 {
	n, size := binary.Varint(r.rest)
	if size <= 0 {
		r.bad = true
		return 0
	}
	r.rest = r.rest[size:]
	return n
}
