package state

// A rowCount is how many rows a store has: counted when somebody asks first,
// then kept.
type rowCount struct {
	n     int64
	known bool
}

func (c *rowCount) add(more bool) {
	if more {
		c.n++
	} else {
		c.n--
	}
}

func (o *overlay[V]) count() (int64, error) {
	if o.rows.known {
		return o.rows.n, nil
	}
	m := o.scan(route{}, false)
	defer m.close()
	n := int64(0)
	for {
		ok, err := m.next(false)
		if err != nil {
			return 0, err
		}
		if !ok {
			o.rows = rowCount{n, true}
			return n, nil
		}
		n++
	}
}
