package state

import (
	"errors"
	"fmt"
	"os"
)

// Quarantine moves a directory that is corrupt aside, to dir.corrupt-1 or the
// next free number, and returns where it is now. It deletes nothing: what went
// wrong can be looked into. The directory must not be open.
func Quarantine(dir string, o PebbleOptions) (moved string, err error) {
	o = o.withDefaults()
	if _, err := o.FS.Stat(dir); err != nil {
		return "", fmt.Errorf("moving a state directory aside: %w", err)
	}
	h, err := lockHome(o.FS, dir)
	if err != nil {
		return "", err
	}
	defer func() { _ = h.Close() }() // only the lock: the rest was done, or its error is returned
	for n := 1; ; n++ {
		moved = fmt.Sprintf("%s.corrupt-%d", h.dir, n)
		if _, err := h.fs.Stat(moved); errors.Is(err, os.ErrNotExist) {
			break
		} else if err != nil {
			return "", fmt.Errorf("looking for a place for %s: %w", h.dir, err)
		}
	}
	if err := h.fs.Rename(h.dir, moved); err != nil {
		return "", fmt.Errorf("moving %s aside: %w", h.dir, err)
	}
	if err := h.syncDir(h.fs.PathDir(moved)); err != nil {
		return "", err
	}
	return moved, nil
}

// Remove deletes the engine in dir, which must not be open. If it is cut
// short, OpenPebble finishes it and starts empty.
func Remove(dir string, o PebbleOptions) error {
	o = o.withDefaults()
	if _, err := o.FS.Stat(dir); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	h, err := lockHome(o.FS, dir)
	if err != nil {
		return err
	}
	defer func() { _ = h.Close() }() // only the lock: the rest was done, or its error is returned
	if err := h.mark(); err != nil {
		return err
	}
	if err := h.clearUnmade(); err != nil {
		return err
	}
	if err := h.fs.RemoveAll(h.dir); err != nil {
		return fmt.Errorf("removing %s: %w", h.dir, err)
	}
	return nil
}
