package state

// Others are the stores that the engine has and Options did not name, in
// order. They are left as they are.
func (d *DB) Others() []string { return d.others }
