package statetest

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/semelstream/semel/state"
)

func testEngine(t *testing.T, fresh func(t testing.TB) Disk) {
	for _, c := range []struct {
		name string
		run  func(t *testing.T, fresh func(t testing.TB) Disk)
	}{
		{"an empty value is a value", emptyValue},
		{"a batch is applied in order", batchOrder},
		{"a range delete takes what is between its ends", rangeDelete},
		{"a scan has its bounds in both directions", scanBounds},
		{"a scan shows the rows of the time it began", scanSnapshot},
		{"an error of use comes back", useError},
		{"the engine keeps no caller's memory", noAliases},
		{"readers see all of a batch or nothing", atomicForReaders},
		{"what was flushed is there after a crash", flushedSurvives},
		{"what was closed is there after reopening", closedSurvives},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, fresh) })
	}
}

// write is one batch of "key=value", "-key" and "-from:to".
func write(t testing.TB, e state.Engine, ops ...string) {
	t.Helper()
	var b state.Batch
	for _, op := range ops {
		if del, ok := strings.CutPrefix(op, "-"); ok {
			if from, to, ok := strings.Cut(del, ":"); ok {
				b.DeleteRange([]byte(from), []byte(to))
			} else {
				b.Delete([]byte(del))
			}
			continue
		}
		k, v, _ := strings.Cut(op, "=")
		b.Set([]byte(k), []byte(v))
	}
	if err := e.Write(&b); err != nil {
		t.Fatal(err)
	}
}

// rows are the rows of a scan as "key=value", with spaces between.
func rows(t testing.TB, e state.Engine, from, to string, backward bool) string {
	t.Helper()
	var f, u []byte
	if from != "" {
		f = []byte(from)
	}
	if to != "" {
		u = []byte(to)
	}
	return drain(t, e.Scan(f, u, backward))
}

func drain(t testing.TB, it state.Iterator) string {
	t.Helper()
	var out []string
	for it.Next() {
		out = append(out, fmt.Sprintf("%s=%s", it.Key(), it.Value()))
	}
	if err := it.Close(); err != nil {
		t.Fatal(err)
	}
	return strings.Join(out, " ")
}

func wantRows(t testing.TB, e state.Engine, want string) {
	t.Helper()
	if got := rows(t, e, "", "", false); got != want {
		t.Fatalf("rows are %q, want %q", got, want)
	}
	back := strings.Fields(want)
	slices.Reverse(back)
	if got := rows(t, e, "", "", true); got != strings.Join(back, " ") {
		t.Fatalf("rows backward are %q, want %q", got, back)
	}
}

func emptyValue(t *testing.T, fresh func(t testing.TB) Disk) {
	e := open(t, fresh)
	write(t, e, "a=")
	called := false
	ok, err := e.Get([]byte("a"), func(v []byte) error {
		called = len(v) == 0
		return nil
	})
	if !ok || !called || err != nil {
		t.Fatalf("ok %v, use called with an empty value %v, error %v", ok, called, err)
	}
	ok, err = e.Get([]byte("b"), func([]byte) error { return errors.New("called for an absent key") })
	if ok || err != nil {
		t.Fatalf("an absent key: ok %v, error %v", ok, err)
	}
}

func batchOrder(t *testing.T, fresh func(t testing.TB) Disk) {
	e := open(t, fresh)
	write(t, e, "a=1", "a=2", "-a", "a=3", "b=1", "-b", "c=1", "-a:d", "c=2")
	wantRows(t, e, "c=2")
}

func rangeDelete(t *testing.T, fresh func(t testing.TB) Disk) {
	e := open(t, fresh)
	write(t, e, "a=1", "b=1", "ba=1", "c=1", "d=1")
	write(t, e, "-b:c")
	wantRows(t, e, "a=1 c=1 d=1")
	write(t, e, "b=2")
	wantRows(t, e, "a=1 b=2 c=1 d=1")
}

func scanBounds(t *testing.T, fresh func(t testing.TB) Disk) {
	e := open(t, fresh)
	write(t, e, "b=1", "c=1", "d=1")
	for _, c := range []struct{ from, to, forward, backward string }{
		{"", "", "b=1 c=1 d=1", "d=1 c=1 b=1"},
		{"b", "d", "b=1 c=1", "c=1 b=1"},
		{"bb", "dd", "c=1 d=1", "d=1 c=1"},
		{"a", "b", "", ""},
		{"e", "", "", ""},
		{"", "b", "", ""},
		{"", "c", "b=1", "b=1"},
		{"d", "", "d=1", "d=1"},
		{"c", "c", "", ""},
	} {
		if got := rows(t, e, c.from, c.to, false); got != c.forward {
			t.Errorf("from %q to %q: %q, want %q", c.from, c.to, got, c.forward)
		}
		if got := rows(t, e, c.from, c.to, true); got != c.backward {
			t.Errorf("from %q to %q backward: %q, want %q", c.from, c.to, got, c.backward)
		}
	}
}

func scanSnapshot(t *testing.T, fresh func(t testing.TB) Disk) {
	e := open(t, fresh)
	write(t, e, "a=1", "b=1", "c=1")
	forward, backward := e.Scan(nil, nil, false), e.Scan(nil, nil, true)
	if !forward.Next() || !backward.Next() {
		t.Fatal("no first row")
	}
	write(t, e, "-b", "c=2", "d=2", "aa=2", "a=2")
	if got := drain(t, forward); got != "b=1 c=1" {
		t.Errorf("after the first row came %q", got)
	}
	if got := drain(t, backward); got != "b=1 a=1" {
		t.Errorf("after the last row came %q", got)
	}
	wantRows(t, e, "a=2 aa=2 c=2 d=2")
}

func useError(t *testing.T, fresh func(t testing.TB) Disk) {
	e := open(t, fresh)
	write(t, e, "a=1")
	mine := errors.New("mine")
	if _, err := e.Get([]byte("a"), func([]byte) error { return mine }); !errors.Is(err, mine) {
		t.Fatalf("got %v", err)
	}
}

func noAliases(t *testing.T, fresh func(t testing.TB) Disk) {
	e := open(t, fresh)
	key, value := []byte("a"), []byte("1")
	var b state.Batch
	b.Set(key, value)
	if err := e.Write(&b); err != nil {
		t.Fatal(err)
	}
	b.Reset()
	b.Set([]byte("z"), []byte("9")) // over the bytes of before
	key[0], value[0] = 'z', '9'
	from, to := []byte("a"), []byte("b")
	it := e.Scan(from, to, false)
	from[0], to[0] = 'y', 'z'
	if got := drain(t, it); got != "a=1" {
		t.Fatalf("got %q", got)
	}
}

// atomicForReaders flips all rows between two values while others read.
func atomicForReaders(t *testing.T, fresh func(t testing.TB) Disk) {
	e := open(t, fresh)
	write(t, e, "a=0", "b=0", "c=0")
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				it := e.Scan(nil, nil, false)
				var seen []byte
				for it.Next() {
					seen = append(seen, it.Value()...)
				}
				if err := it.Close(); err != nil || len(seen) != 3 || !bytes.Equal(seen, bytes.Repeat(seen[:1], 3)) {
					t.Errorf("a reader saw %q, error %v", seen, err)
					return
				}
			}
		})
	}
	for i := range 300 {
		v := i % 2
		write(t, e, fmt.Sprintf("a=%d", v), "-b", fmt.Sprintf("c=%d", v), fmt.Sprintf("b=%d", v))
	}
	close(stop)
	wg.Wait()
}

func flushedSurvives(t *testing.T, fresh func(t testing.TB) Disk) {
	for choice := range uint64(4) {
		d := fresh(t)
		e, err := d.Open()
		if err != nil {
			t.Fatal(err)
		}
		write(t, e, "a=1", "b=1")
		if err := e.Flush(); err != nil {
			t.Fatal(err)
		}
		write(t, e, "a=2", "b=2", "-c")
		if !d.Crash(choice) {
			_ = e.Close()
			t.Skip("this disk cannot crash")
		}
		if e, err = d.Open(); err != nil {
			t.Fatal(err)
		}
		if got := rows(t, e, "", "", false); got != "a=1 b=1" && got != "a=2 b=2" {
			t.Errorf("after a crash: %q", got)
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func closedSurvives(t *testing.T, fresh func(t testing.TB) Disk) {
	d := fresh(t)
	for i := range 3 {
		e, err := d.Open()
		if err != nil {
			t.Fatal(err)
		}
		if i > 0 {
			wantRows(t, e, fmt.Sprintf("a=%d", i-1))
		}
		write(t, e, fmt.Sprintf("a=%d", i))
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
