package stream

import "slices"

// openEach opens uses in order of declaration.
func openEach[P any](o *opener, uses []func(o *opener) (P, error)) ([]P, error) {
	ports := make([]P, 0, len(uses))
	for _, open := range uses {
		p, err := open(o)
		if err != nil {
			return nil, err
		}
		ports = append(ports, p)
	}
	return ports, nil
}

// openAll opens all uses of a stream as one port.
func openAll[K, V any](o *opener, uses []func(o *opener) (port[K, V], error)) (port[K, V], error) {
	ports, err := openEach(o, uses)
	if err != nil {
		return nil, err
	}
	if len(ports) == 1 {
		return ports[0], nil
	}
	return fan[K, V](ports), nil
}

// A fan gives each record to several ports, in order of declaration.
type fan[K, V any] []port[K, V]

func (f fan[K, V]) push(r Record[K, V]) error {
	for _, p := range f {
		if err := p.push(r); err != nil {
			return err
		}
	}
	return nil
}

// openAllTables is openAll for tables.
func openAllTables[K, V any](o *opener, uses []func(o *opener) (tablePort[K, V], error)) (tablePort[K, V], error) {
	ports, err := openEach(o, uses)
	if err != nil {
		return nil, err
	}
	if len(ports) == 1 {
		return ports[0], nil
	}
	return tableFan[K, V](ports), nil
}

// A tableFan gives each change to several ports, in order of declaration.
type tableFan[K, V any] []tablePort[K, V]

// heard says that somebody hears what p is told.
func heard[K, V any](p tablePort[K, V]) bool {
	d, ok := p.(interface{ deaf() bool })
	return !ok || !d.deaf()
}

func (f tableFan[K, V]) deaf() bool { return !slices.ContainsFunc(f, heard[K, V]) }

func (f tableFan[K, V]) change(c change[K, V]) error {
	for _, p := range f {
		if err := p.change(c); err != nil {
			return err
		}
	}
	return nil
}
