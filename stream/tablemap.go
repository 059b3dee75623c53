package stream

// MapValues replaces each row's value.
func (t Table[K, V]) MapValues[V2 any](f func(value V) V2, opts ...Option) Table[K, V2] {
	return Table[K, V2]{newView(t.at(), "table-map", opts, f == nil, func(_ K, v V) (V2, bool, error) {
		return f(v), true, nil
	})}
}

// MapValuesWithKey is MapValues for functions that look at the key.
func (t Table[K, V]) MapValuesWithKey[V2 any](f func(key K, value V) V2, opts ...Option) Table[K, V2] {
	return Table[K, V2]{newView(t.at(), "table-map", opts, f == nil, func(key K, v V) (V2, bool, error) {
		return f(key, v), true, nil
	})}
}

// MapOrDelete is MapValuesWithKey for rows that may go: where f returns false
// the row is deleted in what follows.
func (t Table[K, V]) MapOrDelete[V2 any](f func(key K, value V) (V2, bool), opts ...Option) Table[K, V2] {
	return Table[K, V2]{newView(t.at(), "table-map", opts, f == nil, func(key K, v V) (V2, bool, error) {
		v2, ok := f(key, v)
		return v2, ok, nil
	})}
}

// TryMapValues is MapValues for a function that can fail.
func (t Table[K, V]) TryMapValues[V2 any](f func(value V) (V2, error), opts ...Option) Table[K, V2] {
	return Table[K, V2]{newView(t.at(), "table-map", opts, f == nil, func(_ K, v V) (V2, bool, error) {
		v2, err := f(v)
		return v2, true, err
	})}
}
