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

func TestAGlobalTableThatWasDamagedIsMovedAsideAndReadAgain(t *testing.T) {
	for _, files := range []string{"*.sst", "MANIFEST-*", "*"} {
		t.Run(files, func(t *testing.T) {
			l := fake(t)
			in, out, rates := l.topic("in", 1), l.topic("sums", 1), l.topic("rates", 2, compacted, "compact")
			define := func(b *stream.Builder) {
				table := b.GlobalTable(stream.NewTopic(rates, codec.String, codec.Int64), "rates")
				b.Stream(stream.NewTopic(in, codec.String, codec.Int64)).
					JoinGlobal(table, func(k string, _ int64) (string, bool) { return k, true }, func(v, rate int64) int64 { return v * rate }).
					To(stream.NewTopic(out, codec.String, codec.Int64))
			}
			dir := t.TempDir()
			set := func(c *stream.Config) { c.StateDir = dir }
			l.produce(rates, "a", 2)
			l.produce(rates, "b", 3)
			a := l.run(define, set)
			l.produce(in, "a", 1)
			l.wants(out, map[string]int64{"a": 2})
			a.stop()
			damage(t, filepath.Join(dir, "global", "rates", "db", files))
			l.produce(rates, "b", 5)
			a = l.run(define, set)
			l.produce(in, "a", 10)
			l.produce(in, "b", 10)
			l.wants(out, map[string]int64{"a": 20, "b": 50})
			a.stop()
			moved, _ := filepath.Glob(filepath.Join(dir, "global", "rates.corrupt-*"))
			if len(moved) != 1 || !a.logs.has("moved aside and is rebuilt from its topic") {
				t.Errorf("moved aside: %v; the log should tell of it", moved)
			}
			// The new files are whole.
			a = l.run(define, set)
			l.produce(in, "b", 20)
			l.wants(out, map[string]int64{"a": 20, "b": 100})
			a.stop()
			if again, _ := filepath.Glob(filepath.Join(dir, "global", "rates.corrupt-*")); len(again) != 1 {
				t.Errorf("moved aside in the end: %v", again)
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
