package state

import "github.com/cockroachdb/pebble/v2/vfs"

// LockDir makes dir, readable for its owner only, and locks it for this
// process until unlock is called or the process ends. It fails with [ErrInUse],
// naming the holder, while another process has it. Engines lock their own
// directories; this is for a directory that several of them share.
func LockDir(dir string) (unlock func() error, err error) {
	h, err := lockHome(vfs.Default, dir)
	if err != nil {
		return nil, err
	}
	return h.Close, nil
}
