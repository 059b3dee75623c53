package state

import "iter"

// walk reads the rows of a route in the open transaction. read makes a row of
// what the merge stands on; err is why the route could not be made.
func walk[V, R any](o *overlay[V], r route, err error, read func(m *merge[V]) (R, error)) iter.Seq2[R, error] {
	return func(yield func(R, error) bool) {
		if err != nil {
			var none R
			yield(none, err)
			return
		}
		m := o.scan(r, false)
		defer m.close()
		for {
			row, ok, err := step(m, read)
			if !ok && err == nil || !yield(row, err) || err != nil {
				return
			}
		}
	}
}

// step is the merge's next row.
func step[V, R any](m *merge[V], read func(m *merge[V]) (R, error)) (row R, ok bool, err error) {
	if ok, err = m.next(true); err != nil {
		return row, false, m.o.p.failed("reading rows", err)
	}
	if !ok {
		return row, false, nil
	}
	row, err = read(m)
	return row, err == nil, err
}

// viewChunk is how many rows are read under one lock.
const viewChunk = 256

// viewRows is walk for committed rows, from any goroutine.
func viewRows[V, R any](o *overlay[V], r route, err error, read func(m *merge[V]) (R, error)) iter.Seq2[R, error] {
	return func(yield func(R, error) bool) {
		var none R
		if err != nil {
			yield(none, err)
			return
		}
		var rows []R
		for rest, more := r, true; more; {
			var err error
			if rows, rest, more, err = chunk(o, rows[:0], rest, read); err != nil {
				yield(none, err)
				return
			}
			for _, row := range rows {
				if !yield(row, nil) {
					return
				}
			}
		}
	}
}

// chunk reads the first rows of r and returns what of it is left.
func chunk[V, R any](o *overlay[V], rows []R, r route, read func(m *merge[V]) (R, error)) (_ []R, rest route, more bool, err error) {
	o.d.mu.Lock()
	defer o.d.mu.Unlock()
	m := o.scan(r, true)
	defer m.close()
	for len(rows) < viewChunk {
		row, ok, err := step(m, read)
		if err != nil || !ok {
			return rows, r, false, err
		}
		rows = append(rows, row)
	}
	return rows, r.after(m.last), true, nil
}
