package state_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/semelstream/semel/state"
)

var once = state.Spec{Kind: state.KindWindowOnce, Segment: 10}

// changed are the changelog records of the open transaction.
func changed(t testing.TB, db *state.DB) (log []state.Row) {
	t.Helper()
	must(t, db.Changes(func(_ *state.Part, key, value []byte, time int64) error {
		log = append(log, state.Row{Key: bytes.Clone(key), Value: bytes.Clone(value), Time: time})
		return nil
	}))
	return log
}

func TestRowsThatArePutOnceShareChangelogRecords(t *testing.T) {
	db, s := openWindow(t, state.NewMemory(), once)
	const n = 1000
	for i := range n {
		at := int64(100 + i%3) // the times of rows go back and forth
		must(t, s.Put(fmt.Sprint("id", i), at, fmt.Sprint("v", i), 10*at+int64(i%7)))
	}
	log := changed(t, db)
	if len(log) < 2 || len(log) > 10 {
		t.Errorf("%d rows are in %d records", n, len(log))
	}
	for _, r := range log {
		if len(r.Value) > 4200 || r.Time != 1026 { // each record has a row of the latest time
			t.Errorf("a record of %d bytes and time %d", len(r.Value), r.Time)
		}
	}
	other, o := openWindow(t, state.NewMemory(), once)
	must(t, other.Part("w").Apply(slices.Values(log), int64(len(log))))
	want := windows(t, s.All())
	if got := windows(t, o.All()); got != want || strings.Count(want, " ") != n-1 {
		t.Errorf("restored:\n%s\nwant\n%s", got, want)
	}
	for r, err := range o.All() {
		must(t, err)
		var i int64
		_, err = fmt.Sscanf(r.Key, "id%d", &i)
		must(t, err)
		if want := 10*r.Start + i%7; r.Time != want {
			t.Fatalf("%s has the time %d, want %d", r.Key, r.Time, want)
		}
	}
}

// A topic that takes a row takes its bundle too: what is large is alone.
func TestALargeRowSharesNoRecord(t *testing.T) {
	db, s := openWindow(t, state.NewMemory(), once)
	must(t, s.Put("before", 1, "x", 1))
	must(t, s.Put("large", 1, strings.Repeat("x", 10_000), 1))
	must(t, s.Put("after", 1, "x", 1))
	log := changed(t, db)
	if len(log) != 3 || len(log[1].Value) > 10_000+16 {
		t.Errorf("%d records, the second of %d bytes", len(log), len(log[1].Value))
	}
}

func TestARowThatIsTakenBackIsInNoBundle(t *testing.T) {
	db, s := openWindow(t, state.NewMemory(), once)
	must(t, s.Put("a", 1, "x", 1))
	db.Mark()
	must(t, s.Put("b", 1, "x", 9))
	db.Undo()
	must(t, s.Put("c", 1, "x", 2))
	log := changed(t, db)
	if len(log) != 1 || log[0].Time != 2 || bytes.Contains(log[0].Value, []byte("b")) {
		t.Errorf("changes are %s", lines(log))
	}
	commitAll(t, db)
	if log := changed(t, db); len(log) != 0 {
		t.Errorf("nothing has changed, but %s", lines(log))
	}
}

func TestARowThatIsPutOnceIsNotChanged(t *testing.T) {
	for name, change := range map[string]func(s *state.Window[string, string]) error{
		"put again": func(s *state.Window[string, string]) error { return s.Put("a", 1, "y", 2) },
		"deleted":   func(s *state.Window[string, string]) error { return s.Delete("a", 1, 2) },
	} {
		t.Run(name, func(t *testing.T) {
			db, s := openWindow(t, state.NewMemory(), once)
			must(t, s.Put("a", 1, "x", 1))
			commitAll(t, db)
			must(t, change(s))
			defer func() {
				if p := fmt.Sprint(recover()); !strings.Contains(p, "store w: a row that is put once is changed or deleted") {
					t.Errorf("recovered %s", p)
				}
			}()
			changed(t, db)
		})
	}
}

// bundled is a record of three rows, and where in its value each ends.
func bundled(t testing.TB) (r state.Row, ends []int) {
	db, s := openWindow(t, state.NewMemory(), once)
	for i := range 3 {
		must(t, s.Put(strings.Repeat("k", i), int64(5*i), fmt.Sprint("value ", i), int64(1000*i)))
		r = changed(t, db)[0]
		ends = append(ends, len(r.Value))
	}
	return r, ends
}

func TestABundleThatIsCutShortIsAnError(t *testing.T) {
	r, ends := bundled(t)
	for n := range len(r.Value) + 1 {
		db, s := openWindow(t, state.NewMemory(), once)
		cut := state.Row{Key: r.Key, Value: r.Value[:n], Time: r.Time}
		err := db.Part("w").Apply(slices.Values([]state.Row{cut}), 1)
		if slices.Contains(ends, n) {
			must(t, err)
			continue
		}
		if err == nil || !strings.Contains(err.Error(), "not what its writer wrote") {
			t.Errorf("%d bytes: %v", n, err)
		}
		if got := windows(t, s.All()); got != "" {
			t.Errorf("%d bytes: %s were restored", n, got)
		}
	}
}

func FuzzABundleIsReadOrAnError(f *testing.F) {
	r, _ := bundled(f)
	f.Add(r.Key, r.Value)
	f.Add(make([]byte, 12), binary.AppendUvarint(make([]byte, 8), 1<<63))                   // a length without end
	f.Add(make([]byte, 12), []byte("\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00")) // a start before 0
	f.Add([]byte("short"), r.Value)
	f.Fuzz(func(t *testing.T, key, value []byte) {
		db, s := openWindow(t, state.NewMemory(), once)
		err := db.Part("w").Apply(slices.Values([]state.Row{{Key: key, Value: value}}), 1)
		for r, err := range s.All() {
			if must(t, err); r.Start < 0 {
				t.Errorf("a row starts at %d", r.Start)
			}
		}
		if err == nil && db.Part("w").Position() != 1 {
			t.Error("applied, but the position says otherwise")
		}
	})
}
