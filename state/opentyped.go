package state

import (
	"fmt"
	"slices"
)

// openTyped returns the typed store around a part, which makes it if nobody
// has. The part must be of one of the kinds.
func openTyped[S any](d *DB, store string, around func(p *Part) S, kinds ...Kind) (s S, err error) {
	p := d.Part(store)
	switch {
	case p == nil:
		return s, fmt.Errorf("store %q is not among the stores of this task", store)
	case !slices.Contains(kinds, p.rec.keys.kind):
		return s, fmt.Errorf("store %q is a %s store and cannot be a %T", store, p.rec.keys.kind, s)
	case p.typed == nil:
		s = around(p)
		p.typed = s
		return s, nil
	}
	s, ok := p.typed.(S)
	if !ok {
		return s, fmt.Errorf("store %q is open as %T and cannot be a %T too", store, p.typed, s)
	}
	return s, nil
}

func (p *Part) failed(what string, err error) error {
	return fmt.Errorf("store %q: %s: %w", p.name, what, err)
}
