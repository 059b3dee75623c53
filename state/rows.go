package state

import "time"

// A Scan reads the rows of a KV in one direction, in order of encoded keys.
//
// The rows may be changed while a scan runs, in its own loop too: a change
// ahead of the scan is seen, one behind it is not, and no row comes twice. Scan
// again with the same Rows as often as you like.
type Scan[K, V any] struct {
	s        *KV[K, V]
	backward bool
}

// Backward is the other direction.
func (c Scan[K, V]) Backward() Scan[K, V] { return Scan[K, V]{c.s, !c.backward} }

// All are all rows.
func (c Scan[K, V]) All() Rows[K, V] { return c.rows(span{}, nil) }

// Range are the rows from from to to, both included.
func (c Scan[K, V]) Range(from, to K) Rows[K, V] {
	s, err := c.s.span(&from, &to)
	return c.rows(s, err)
}

// From are the rows from key on.
func (c Scan[K, V]) From(key K) Rows[K, V] {
	s, err := c.s.span(&key, nil)
	return c.rows(s, err)
}

// To are the rows up to key, which is included.
func (c Scan[K, V]) To(key K) Rows[K, V] {
	s, err := c.s.span(nil, &key)
	return c.rows(s, err)
}

// Prefix are the rows whose encoded keys begin so.
func (c Scan[K, V]) Prefix(encoded []byte) Rows[K, V] { return c.rows(prefixSpan(encoded), nil) }

func prefixSpan(encoded []byte) span {
	return span{from: append([]byte{}, encoded...), to: prefixEnd(encoded)}
}

// span encodes a range; nil is open.
func (s *keys[K]) span(from, to *K) (out span, err error) {
	if from != nil {
		if out.from, err = s.encode(make([]byte, 0, 16), *from); err != nil {
			return out, err
		}
	}
	if to != nil {
		if out.to, err = s.encode(make([]byte, 0, 17), *to); err != nil {
			return out, err
		}
		out.to = append(out.to, 0) // the first key behind it
	}
	return out, nil
}

func (c Scan[K, V]) rows(sp span, err error) Rows[K, V] {
	sp.backward = c.backward
	return walk(c.s.o, route{span: sp}, err, c.s.row)
}

// row is what the merge stands on, typed.
func (s *KV[K, V]) row(m *merge[V]) (row Entry[K, V], err error) {
	if row.Key, err = s.decode(m.key); err != nil {
		return Entry[K, V]{}, err
	}
	row.Value, row.Time = m.v, time.UnixMilli(m.time)
	return row, nil
}

// Range are the rows from from to to, both included. See [Scan].
func (s *KV[K, V]) Range(from, to K) Rows[K, V] { return Scan[K, V]{s: s}.Range(from, to) }

// From are the rows from key on.
func (s *KV[K, V]) From(key K) Rows[K, V] { return Scan[K, V]{s: s}.From(key) }

// To are the rows up to key, which is included.
func (s *KV[K, V]) To(key K) Rows[K, V] { return Scan[K, V]{s: s}.To(key) }

// All are all rows.
func (s *KV[K, V]) All() Rows[K, V] { return Scan[K, V]{s: s}.All() }

// Prefix are the rows whose encoded keys begin so.
func (s *KV[K, V]) Prefix(encoded []byte) Rows[K, V] { return Scan[K, V]{s: s}.Prefix(encoded) }

// Backward reads the same rows last first.
func (s *KV[K, V]) Backward() Scan[K, V] { return Scan[K, V]{s, true} }
