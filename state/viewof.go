package state

import "fmt"

// ViewOf is the view of a store that is open as a KV of these types.
func ViewOf[K, V any](d *DB, store string) (*View[K, V], error) {
	s, err := typedOf[*KV[K, V]](d, store)
	if err != nil {
		return nil, err
	}
	return s.View(), nil
}

// WindowViewOf is the view of a store that is open as a Window of these types.
func WindowViewOf[K, V any](d *DB, store string) (*WindowView[K, V], error) {
	s, err := typedOf[*Window[K, V]](d, store)
	if err != nil {
		return nil, err
	}
	return s.View(), nil
}

// SessionViewOf is the view of a store that is open as a Session of these types.
func SessionViewOf[K, V any](d *DB, store string) (*SessionView[K, V], error) {
	s, err := typedOf[*Session[K, V]](d, store)
	if err != nil {
		return nil, err
	}
	return s.View(), nil
}

// VersionedViewOf is the view of a store that is open as a Versioned of these
// types.
func VersionedViewOf[K, V any](d *DB, store string) (*VersionedView[K, V], error) {
	s, err := typedOf[*Versioned[K, V]](d, store)
	if err != nil {
		return nil, err
	}
	return s.View(), nil
}

func typedOf[S any](d *DB, store string) (s S, err error) {
	p := d.Part(store)
	if p == nil {
		return s, fmt.Errorf("store %q is not among the stores of this task", store)
	}
	s, ok := p.typed.(S)
	if !ok {
		return s, fmt.Errorf("store %q is a %T and not a %T", store, p.typed, s)
	}
	return s, nil
}
