package state_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/semelstream/semel/state"
)

// tables is an injector of errors into writes of tables. Errors elsewhere,
// in the manifest, make Pebble give the process up.
type tables struct {
	err  error
	left atomic.Int64 // so many times
}

func (f *tables) String() string { return "tables" }

func (f *tables) MaybeError(op errorfs.Op) error {
	if !strings.HasSuffix(op.Path, ".sst") || op.Kind.ReadOrWrite() != errorfs.OpIsWrite {
		return nil
	}
	if f.left.Add(-1) < 0 {
		return nil
	}
	return f.err
}

func TestAPassingDiskErrorIsRetried(t *testing.T) {
	fs := vfs.NewCrashableMem()
	inj := &tables{err: errors.New("a bad moment")}
	r := newRig(t, openCrashed(t, errorfs.Wrap(fs, inj)), state.Options{})
	r.do("a=1")
	r.commit()
	r.persist()
	inj.left.Store(2)
	must(t, r.db.Flush())
	if inj.left.Load() > 0 {
		t.Error("no error was injected")
	}
	after := newRig(t, openCrashed(t, fs.CrashClone(vfs.CrashCloneCfg{})), state.Options{})
	after.want("a=1")
}

func TestAFullDiskStopsWritesWithAnErrorAndLosesNothing(t *testing.T) {
	fs := vfs.NewCrashableMem()
	full := &tables{err: syscall.ENOSPC}
	r := newRig(t, openCrashed(t, errorfs.Wrap(fs, full)), state.Options{})
	r.do("a=1", "b=1")
	r.commit()
	r.persist()
	must(t, r.db.Flush())
	full.left.Store(1 << 40)
	r.do("a=2")
	r.commit()
	r.persist()
	if err := r.db.Flush(); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("Flush on a full disk: %v", err)
	}
	r.do("b=2")
	r.commit()
	w := r.db.Persist()
	err := w.Commit()
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("Commit on a full disk: %v", err)
	}
	r.db.Persisted(w, err)
	r.want("a=2 b=2")
	after := newRig(t, openCrashed(t, fs.CrashClone(vfs.CrashCloneCfg{})), state.Options{})
	after.want("a=1 b=1")
	if pos := after.db.Part("s").Position(); pos != 2 {
		t.Errorf("position %d after a crash on a full disk, want 2", pos)
	}
	full.left.Store(0) // somebody made room
	for r.db.Flush() != nil {
		// Pebble tries again by itself; Flush fails until it has.
	}
	r.persist()
	must(t, r.db.Close())
	again := newRig(t, openCrashed(t, fs.CrashClone(vfs.CrashCloneCfg{})), state.Options{})
	again.want("a=2 b=2")
}

func TestAFlushOfNothingIsNoError(t *testing.T) {
	r := newRig(t, openCrashed(t, vfs.NewMem()), state.Options{})
	for range 5 {
		must(t, r.db.Flush())
	}
}

func TestCorruptionIsFoundAndQuarantinedAndNeverDeleted(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	open := func() (*state.DB, *rig) {
		e, err := state.OpenPebble(dir, state.PebbleOptions{})
		must(t, err)
		r := newRig(t, e, state.Options{})
		return r.db, r
	}
	db, r := open()
	for i := range 2000 {
		r.do(fmt.Sprintf("key-%04d=%0100d", i, i*i*i))
	}
	r.commit()
	r.persist()
	must(t, db.Close())
	flipped := flipTables(t, dir)

	err := readAll(dir)
	if !errors.Is(err, state.ErrCorrupt) {
		t.Fatalf("reading a corrupt table: %v", err)
	}
	moved, err := state.Quarantine(dir, state.PebbleOptions{})
	must(t, err)
	if got, err := os.ReadFile(filepath.Join(moved, "db", flipped)); err != nil || len(got) == 0 {
		t.Errorf("the evidence is gone: %v", err)
	}
	db, r = open()
	r.want("")
	if pos := r.db.Part("s").Position(); pos != 0 {
		t.Errorf("position %d in an empty directory", pos)
	}
	must(t, db.Close())
	second, err := state.Quarantine(dir, state.PebbleOptions{})
	must(t, err)
	if second == moved {
		t.Error("two quarantines in one place")
	}
}

// flipTables flips bytes in the data of a table and returns its name.
func flipTables(t *testing.T, dir string) string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "db", "*.sst"))
	must(t, err)
	for _, name := range names {
		data, err := os.ReadFile(name)
		must(t, err)
		for i := 50; i < len(data)/2; i += 100 {
			data[i] ^= 0xff
		}
		must(t, os.WriteFile(name, data, 0o600))
	}
	if len(names) == 0 {
		t.Fatal("there is no table")
	}
	return filepath.Base(names[0])
}

// readAll opens dir and reads each row.
func readAll(dir string) error {
	e, err := state.OpenPebble(dir, state.PebbleOptions{})
	if err != nil {
		return err
	}
	defer e.Close()
	it := e.Scan(nil, nil, false)
	for it.Next() {
	}
	scan := it.Close()
	_, get := e.Get([]byte{1, 0, 'k', 'e', 'y', '-', '0', '0', '0', '7'}, func([]byte) error { return nil })
	if scan == nil || get == nil {
		return fmt.Errorf("scan: %v, get: %v", scan, get)
	}
	return errors.Join(scan, get)
}

func TestAMissingFileIsCorruption(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	e, err := state.OpenPebble(dir, state.PebbleOptions{})
	must(t, err)
	must(t, e.Close())
	names, err := filepath.Glob(filepath.Join(dir, "db", "MANIFEST-*"))
	must(t, err)
	for _, name := range names {
		must(t, os.Remove(name))
	}
	if _, err := state.OpenPebble(dir, state.PebbleOptions{}); !errors.Is(err, state.ErrCorrupt) {
		t.Errorf("without a manifest: %v", err)
	}
}

func TestRemoveIsFinishedByTheNextOpen(t *testing.T) {
	c := &crashes{fs: vfs.NewCrashableMem(), stride: 1}
	r := newRig(t, openCrashed(t, c.fs), state.Options{})
	r.do("a=1")
	r.commit()
	r.persist()
	must(t, r.db.Close())
	must(t, state.Remove("a/state", state.PebbleOptions{FS: errorfs.Wrap(c.fs, c)}))
	if _, err := c.fs.Stat("a/state"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("after Remove: %v", err)
	}
	marked := 0
	for _, clone := range c.clones {
		if _, err := clone.fs.Stat("a/state/unmade"); err == nil {
			marked++
			// A real disk may have deleted any of the files by then.
			must(t, clone.fs.RemoveAll("a/state/db"))
			must(t, clone.fs.MkdirAll("a/state/db", 0o700))
		}
		after := newRig(t, openCrashed(t, clone.fs), state.Options{})
		if got := list(t, after.s.All()); got != "a=1" && got != "" {
			t.Errorf("crash before %s: rows are %q", clone.at, got)
		}
		must(t, after.db.Close())
	}
	if marked == 0 {
		t.Error("no crash met a directory marked as being removed")
	}
	must(t, state.Remove("a/state", state.PebbleOptions{FS: c.fs}))
}

func TestADirectoryOfAnUnknownFormatIsLeftAlone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	e, err := state.OpenPebble(dir, state.PebbleOptions{})
	must(t, err)
	must(t, e.Close())
	for content, want := range map[string]error{"semel state 2\n": state.ErrFormat, "": state.ErrCorrupt} {
		must(t, os.WriteFile(filepath.Join(dir, "format"), []byte(content), 0o600))
		if _, err := state.OpenPebble(dir, state.PebbleOptions{}); !errors.Is(err, want) {
			t.Errorf("format %q: %v", content, err)
		}
	}
	must(t, os.Remove(filepath.Join(dir, "format")))
	if _, err := state.OpenPebble(dir, state.PebbleOptions{}); !errors.Is(err, state.ErrFormat) {
		t.Errorf("data without a format: %v", err)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

func TestEnginesShareABudget(t *testing.T) {
	b := state.NewBudget(1<<20, 16)
	dir := t.TempDir()
	var engines []state.Engine
	for i := range 3 {
		e, err := state.OpenPebble(filepath.Join(dir, fmt.Sprint(i)), state.PebbleOptions{Budget: b})
		must(t, err)
		engines = append(engines, e)
	}
	for _, e := range engines {
		must(t, e.Close())
	}
	b.Close()
}
