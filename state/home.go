package state

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// A home is the directory of an engine:
//
//	lock      locked while it is open
//	holder    who holds the lock, for people
//	format    the version of this layout
//	unmade    db is being made or removed: nothing in it counts
//	db/       Pebble's
//
// The lock is the operating system's and ends with the process, so one that a
// dead process left behind is free. The holder's name is in a file of its own
// because closing a second handle of a locked file gives the lock up.
type home struct {
	fs    vfs.FS
	dir   string
	lock  io.Closer
	fresh bool // db is yet to be made
}

const (
	lockFile   = "lock"
	holderFile = "holder"
	formatFile = "format"
	unmadeFile = "unmade"
	dataDir    = "db"

	homeFormat = "semel state 1\n"
)

// started stands for the process's start, to tell processes of one id apart.
var started = time.Now()

func openHome(fs vfs.FS, dir string) (h *home, err error) {
	if h, err = lockHome(fs, dir); err != nil {
		return nil, err
	}
	if err = h.clearUnmade(); err == nil {
		err = h.checkFormat()
	}
	if err != nil {
		_ = h.Close() // the first error tells more
		return nil, err
	}
	return h, nil
}

// lockHome makes the directory and locks it.
func lockHome(fs vfs.FS, dir string) (*home, error) {
	h := &home{fs: fs, dir: dir}
	if fs == vfs.Default { // the lock of one process is known by its path
		abs, err := filepath.Abs(dir)
		if err != nil {
			return nil, fmt.Errorf("state directory %s: %w", dir, err)
		}
		h.dir = abs
	}
	if err := h.makeDir(h.dir); err != nil {
		return nil, fmt.Errorf("making the state directory %s: %w", h.dir, err)
	}
	if fs == vfs.Default {
		real, err := filepath.EvalSymlinks(h.dir)
		if err != nil {
			return nil, fmt.Errorf("state directory %s: %w", h.dir, err)
		}
		h.dir = real
	}
	var err error
	if h.lock, err = fs.Lock(h.path(lockFile)); err != nil {
		return nil, h.inUse(err)
	}
	if err := h.write(holderFile, holder()); err != nil {
		_ = h.lock.Close()
		return nil, err
	}
	return h, nil
}

// makeDir makes dir and what it lies in, and syncs each parent, as a crash may
// else forget the directory with all that was synced in it.
func (h *home) makeDir(dir string) error {
	_, err := h.fs.Stat(dir)
	if err == nil || !errors.Is(err, os.ErrNotExist) {
		return err
	}
	parent := h.fs.PathDir(dir)
	if parent != dir {
		if err := h.makeDir(parent); err != nil {
			return err
		}
	}
	if err := h.fs.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return h.syncDir(parent)
}

func (h *home) path(name string) string { return h.fs.PathJoin(h.dir, name) }
func (h *home) data() string            { return h.path(dataDir) }

func holder() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("process %d on %s since %s", os.Getpid(), host, started.UTC().Format(time.RFC3339))
}

func (h *home) inUse(err error) error {
	who, rerr := h.read(holderFile)
	if rerr != nil || who == "" {
		who = "a process that left no name"
	}
	return fmt.Errorf("%w: %s is held by %s; stop it, or give each instance a state directory of its own (%v)",
		ErrInUse, h.dir, who, err)
}

// checkFormat reads the format, or writes it before there is anything else.
func (h *home) checkFormat() error {
	got, err := h.read(formatFile)
	switch {
	case err == nil && got == homeFormat:
		return nil
	case err == nil && got == "":
		return fmt.Errorf("%w: %s is empty", ErrCorrupt, h.path(formatFile))
	case err == nil:
		return fmt.Errorf("%w: %s has %.40q, this version knows %q", ErrFormat, h.path(formatFile), got, homeFormat)
	case !errors.Is(err, os.ErrNotExist):
		return err
	}
	if _, err := h.fs.Stat(h.data()); err == nil {
		return fmt.Errorf("%w: %s has data and no file %s", ErrFormat, h.dir, formatFile)
	}
	h.fresh = true
	if err := h.mark(); err != nil {
		return err
	}
	return h.writeSafely(formatFile, homeFormat)
}

// A crash while Pebble makes its files may leave some without the others, and
// so may one while they are removed. The file unmade is there for that time.

// mark says that db does not count.
func (h *home) mark() error {
	return h.writeSafely(unmadeFile, "what is in db is being made or removed\n")
}

// made ends the making: db counts from now on, and nothing was written before.
func (h *home) made() error {
	if !h.fresh {
		return nil
	}
	h.fresh = false
	if err := h.fs.Remove(h.path(unmadeFile)); err != nil {
		return fmt.Errorf("making %s: %w", h.dir, err)
	}
	return h.syncDir(h.dir)
}

// clearUnmade removes what does not count. The mark stays until made.
func (h *home) clearUnmade() error {
	if _, err := h.fs.Stat(h.path(unmadeFile)); err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		return fmt.Errorf("reading the state directory: %w", err)
	}
	for _, name := range []string{dataDir, formatFile} {
		if err := h.fs.RemoveAll(h.path(name)); err != nil {
			return fmt.Errorf("removing what is left in %s: %w", h.dir, err)
		}
	}
	return h.syncDir(h.dir)
}

func (h *home) read(name string) (string, error) {
	f, err := h.fs.Open(h.path(name))
	if err != nil {
		return "", fmt.Errorf("reading the state directory: %w", err)
	}
	defer func() { _ = f.Close() }() // it was only read
	data, err := io.ReadAll(io.LimitReader(f, 1<<10))
	if err != nil {
		return "", fmt.Errorf("reading %s: %w", h.path(name), err)
	}
	return string(data), nil
}

func (h *home) write(name, text string) error {
	f, err := h.fs.Create(h.path(name), vfs.WriteCategoryUnspecified)
	if err != nil {
		return fmt.Errorf("writing the state directory: %w", err)
	}
	_, err = f.Write([]byte(text))
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", h.path(name), err)
	}
	return nil
}

// writeSafely makes a file that is there after a crash wholly or not at all.
func (h *home) writeSafely(name, text string) error {
	if err := h.write(name+".new", text); err != nil {
		return err
	}
	if err := h.fs.Rename(h.path(name+".new"), h.path(name)); err != nil {
		return fmt.Errorf("writing %s: %w", h.path(name), err)
	}
	return h.syncDir(h.dir)
}

func (h *home) syncDir(dir string) error {
	d, err := h.fs.OpenDir(dir)
	if err != nil {
		return fmt.Errorf("syncing %s: %w", dir, err)
	}
	err = d.Sync()
	if cerr := d.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return fmt.Errorf("syncing %s: %w", dir, err)
	}
	return nil
}

// Close gives the directory up.
func (h *home) Close() error {
	if err := h.lock.Close(); err != nil {
		return fmt.Errorf("unlocking %s: %w", h.dir, err)
	}
	return nil
}
