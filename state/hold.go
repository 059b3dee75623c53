package state

// A row that expires may well be gone before its turn to be written comes. So
// a Write leaves out the stores whose rows expire, all of them together, for as
// long as that costs little: what waits must fit in memory, and what a crash
// makes a restore read again must be short.
//
// The position of a store that is left out stays where it is, as if its rows
// had not been committed yet, and so does meta, so that neither ever claims what
// the engine has not got.
const (
	holdWrites = 7        // in a row that leave them out
	holdBytes  = 56 << 20 // of all pending entries, at most seven eighths of the cache
	holdRows   = 1 << 20  // that were committed since they were written
)

// A hold is what a DB knows of the stores that are left out.
type hold struct {
	writes int   // in a row that left them out
	rows   int64 // committed since they were written
}

// holds says that this Write leaves out the stores whose rows expire.
func (d *DB) holds() bool {
	return d.hold.writes < holdWrites && d.hold.rows < holdRows && d.pending <= min(d.cache*7/8, holdBytes)
}

// storeHeld stores what Writes have left out, if that can be done at once.
func (d *DB) storeHeld() error {
	if d.write != nil || d.hold.writes == 0 {
		return nil
	}
	w := d.persist(false)
	if w == nil {
		return nil
	}
	return w.Commit()
}

// mayWait: rows of the store expire, and there are some that wait.
func (p *Part) mayWait() bool {
	return p.store != nil && p.rec.keys.kind.expires() && p.store.waits()
}
