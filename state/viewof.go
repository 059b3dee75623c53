package state

import "fmt"

// ViewOf is the view of a store that is open as a store of these types.
func ViewOf[K, V any](d *DB, store string) (*View[K, V], error) {
	p := d.Part(store)
	if p == nil {
		return nil, fmt.Errorf("store %q is not among the stores of this task", store)
	}
	s, ok := p.typed.(*KV[K, V])
	if !ok {
		return nil, fmt.Errorf("store %q is a %T and not a %T", store, p.typed, s)
	}
	return s.View(), nil
}
