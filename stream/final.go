package stream

// Final passes each row once, when its window has closed: end plus grace, for
// sessions plus gap too, has been reached by stream time. Rows wait in the
// table's own store, so no limit is needed; [MaxKeys] and [MaxBytes] set one
// that fails.
//
// The record that moves stream time so far sends the rows of all windows that
// close by it, in order of end, start and key. Without records nothing closes.
// Each row is sent once, whatever stops or crashes in between.
func (t WindowedTable[K, V]) Final(opts ...BufferOption) WindowedTable[K, V] {
	from, b, set := t.at(), t.n.b, settingsOf(opts)
	n := &tableNode[Windowed[K], V]{b: b, key: from.key, value: from.value}
	n.node = b.add("final", set, from.node)
	switch {
	case set.maxKeys < 0 || set.maxBytes < 0:
		b.problem(n.node, "MaxKeys(%d) or MaxBytes(%d) is no limit; give at least 1, or leave it out", set.maxKeys, set.maxBytes)
	case from.finals == nil:
		b.problem(n.node, "the windows of %s do not close: they are unlimited, or are sent by Final or Suppress already; use Final right behind an aggregate by windows, or its Filter or MapValues", label(from.node))
		return WindowedTable[K, V]{n}
	}
	n.openRows = func(o *opener) (rows[Windowed[K], V], error) {
		rows, err := from.openRows(o)
		if err != nil {
			return nil, err
		}
		sent, err := from.finals.sent(o)
		return finalRows[Windowed[K], V]{rows, sent}, err
	}
	limit := finalLimit{n.node, set.maxKeys, set.maxBytes}
	from.finals.use(limit, func(o *opener) (finalPort[Windowed[K], V], error) {
		out, err := n.open(o)
		return finalsOut[Windowed[K], V]{out}, err
	})
	return WindowedTable[K, V]{n}
}

// finalsOut makes finals a table's rows.
type finalsOut[K, V any] struct{ out tablePort[K, V] }

func (p finalsOut[K, V]) final(key K, v V, ms int64) error {
	return p.out.change(change[K, V]{key: key, new: v, hasNew: true, ms: ms})
}

// finalRows are the rows that were sent.
type finalRows[K, V any] struct {
	rows rows[K, V]
	sent func(key K) bool
}

func (r finalRows[K, V]) row(key K) (v V, ms int64, ok bool, err error) {
	if !r.sent(key) {
		return v, 0, false, nil
	}
	return r.rows.row(key)
}
