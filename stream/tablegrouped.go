package stream

import "github.com/semelstream/semel/codec"

// Aggregate adds and removes rows; a group starts as A's zero value.
func (g GroupedTable[K, V]) Aggregate[A any](store string, add, remove func(key K, value V, acc A) A, opts ...AggregateOption) Table[K, A] {
	return aggregateTable(g, "table-aggregate", store, opts, nil, add == nil || remove == nil,
		func(k K, v V, row A, _ bool) (A, bool) { return add(k, v, row), true },
		func(k K, v V, row A, _ bool) (A, bool) { return remove(k, v, row), true })
}

// Update is the general aggregate; add and remove get the group's row, if
// there is one, and return the new row, or false to have none. Remove is only
// called for a group that has a row.
func (g GroupedTable[K, V]) Update[A any](store string, add, remove func(key K, value V, row A, ok bool) (A, bool), opts ...AggregateOption) Table[K, A] {
	return aggregateTable(g, "table-update", store, opts, nil, add == nil || remove == nil, add, remove)
}

// aggregateTable is what all aggregates of grouped tables are: an aggregate of
// steps. A step that removes and adds is one update.
func aggregateTable[K, V, A any](g GroupedTable[K, V], kind, store string, opts []AggregateOption, value codec.Codec[A], isNil bool,
	add, remove func(key K, value V, row A, ok bool) (A, bool)) Table[K, A] {

	steps := Grouped[K, step[V]]{g.steps, g.set}
	return aggregate(steps, kind, store, opts, value, isNil, func(key K, s step[V], row A, ok bool) (A, bool, error) {
		var none A
		if s.hasOld && ok {
			if row, ok = remove(key, s.old, row, true); !ok {
				row = none
			}
		}
		if s.hasNew {
			row, ok = add(key, s.new, row, ok)
		}
		return row, ok, nil
	})
}
