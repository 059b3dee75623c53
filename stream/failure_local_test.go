package stream_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/stream"
)

// These are about directories and disks as they are.

func TestAStateDirectoryInUseIsAnErrorThatNamesTheHolder(t *testing.T) {
	l := fake(t)
	in, out := l.topic("in", 1), l.topic("sums", 1)
	dir := t.TempDir()
	first := l.run(l.sums, func(c *stream.Config) { c.StateDir = dir })
	l.produce(in, "a", 1)
	l.wants(out, map[string]int64{"a": 1})
	l.run(l.sums, func(c *stream.Config) { c.StateDir = dir }).
		stops("SEMEL-STATE-DIR", dir, fmt.Sprintf("process %d on ", os.Getpid()), "a Config.StateDir of its own")
	l.produce(in, "a", 2) // the first one is not disturbed
	l.wants(out, map[string]int64{"a": 3})
	first.stop()
	again := l.run(l.sums, func(c *stream.Config) { c.StateDir = dir })
	l.produce(in, "a", 4)
	l.wants(out, map[string]int64{"a": 7})
	again.stop()
}

func TestAStateDirectoryThatCannotBeMadeIsAnError(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	fake(t).run(func(b *stream.Builder) {
		b.Stream(failIn).To(failSums)
	}, func(c *stream.Config) { c.StateDir = filepath.Join(file, "state") }).
		stops("SEMEL-STATE-DIR", file, "set Config.StateDir to one that can be written")
}

func TestFilesThatWereDamagedAreMovedAsideAndTheStateIsRebuilt(t *testing.T) {
	for _, files := range []string{"*.sst", "MANIFEST-*", "OPTIONS-*", "*"} {
		t.Run(files, func(t *testing.T) {
			l := fake(t)
			in, out := l.topic("in", 1), l.topic("sums", 1)
			dir := t.TempDir()
			set := func(c *stream.Config) { c.StateDir = dir }
			a := l.run(l.sums, set)
			l.produce(in, "a", 1, 2)
			l.produce(in, "b", 4)
			l.wants(out, map[string]int64{"a": 3, "b": 4})
			a.stop()
			damage(t, filepath.Join(dir, "0_0", "db", files))
			a = l.run(l.sums, set)
			l.produce(in, "a", 8)
			l.produce(in, "b", 16)
			l.wants(out, map[string]int64{"a": 11, "b": 20})
			a.stop()
			if moved, _ := filepath.Glob(filepath.Join(dir, "0_0.corrupt-*")); len(moved) != 1 && files != "OPTIONS-*" {
				t.Errorf("moved aside: %v", moved)
			} else if len(moved) == 1 && !a.logs.has("moved aside and is rebuilt from the changelogs") {
				t.Error("the log does not tell of it")
			}
		})
	}
}

// damage turns bits in the middle third of each file.
func damage(t *testing.T, pattern string) {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("no files %s, %v", pattern, err)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(f, ".sst") { // its data comes first
			for i := range min(len(b), 64) {
				b[i] ^= 0x55
			}
		}
		for i := len(b) / 3; i < 2*len(b)/3; i++ {
			b[i] ^= 0x55
		}
		if err := os.WriteFile(f, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestADiskThatIsReallyFullStopsNothingAndIsWrittenWhenItHasRoom(t *testing.T) {
	dir := smallDisk(t, "24m")
	l := fake(t)
	in, out := l.topic("in", 1), l.topic("sums", 1)
	filler := filepath.Join(dir, "filler")
	a := l.run(l.sums, func(c *stream.Config) { c.StateDir = filepath.Join(dir, "state") })
	l.produce(in, "a", 1)
	l.wants(out, map[string]int64{"a": 1})
	fill(t, filler)
	want := map[string]int64{"a": 1}
	// More than a memtable of rows, so that a flush is due and finds no room.
	for round := range 3 {
		var recs []*kgo.Record
		b, _ := codec.Int64.Append(nil, 1)
		for i := range 60_000 {
			key := fmt.Sprintf("key-%d-%06d-%s", round, i, strings.Repeat("k", 100))
			recs = append(recs, &kgo.Record{Topic: in, Key: []byte(key), Value: b})
			want[key] = 1
		}
		l.ok(l.cl.ProduceSync(l.ctx(), recs...).FirstErr())
	}
	l.wants(out, want)
	a.logs.await(t, "no space left on device", 60*time.Second)
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	select {
	case <-a.done:
		hasParts(t, a.err, "SEMEL-DISK")
	default:
		l.produce(in, "a", 2)
		want["a"] = 3
		l.wants(out, want)
		a.stop()
	}
}

// smallDisk mounts a file system in memory, which only root may do.
func smallDisk(t *testing.T, size string) string {
	t.Helper()
	if testing.Short() || os.Getuid() != 0 {
		t.Skip("a disk of its own needs root")
	}
	dir := t.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size="+size, "tmpfs", dir).CombinedOutput(); err != nil {
		t.Skipf("mounting: %v: %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", "-l", dir).CombinedOutput(); err != nil {
			t.Errorf("unmounting: %v: %s", err, out)
		}
	})
	return dir
}

// fill writes until there is no room.
func fill(t *testing.T, file string) {
	t.Helper()
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for block := bytes.Repeat([]byte{1}, 4096); ; {
		if _, err := f.Write(block); err != nil {
			return
		}
	}
}
