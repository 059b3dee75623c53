package state

// Empty says that the engine holds no row of the store. It is for a store
// without open or unstored changes.
func (p *Part) Empty() (bool, error) {
	from, to := storeRange(p.rec.id)
	it := p.d.e.Scan(from, to, false)
	some := it.Next()
	if err := it.Close(); err != nil {
		return false, err
	}
	return !some, nil
}
