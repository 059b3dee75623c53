package state_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/state"
)

// A fixture is a changelog that Kafka Streams 4.4.0 wrote, and what it restored
// from it.
type fixture struct {
	Partitions int32
	Records    []fixtureRecord
	Final      []fixtureRecord
}

type fixtureRecord struct {
	Partition int32
	Key       string  `json:"key_hex"`
	Value     *string `json:"value_hex"`
	Ms        int64   `json:"ts"`
	Versions  []struct {
		From, To int64
		Value    string
	}
}

func (f fixtureRecord) row(t testing.TB) state.Row {
	r := state.Row{Key: unhex(t, f.Key), Time: f.Ms}
	if f.Value != nil {
		r.Value = unhex(t, *f.Value)
	}
	return r
}

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	must(t, err)
	return append([]byte{}, b...)
}

func readFixture(t testing.TB, name string) (f fixture) {
	t.Helper()
	b, err := os.ReadFile("testdata/" + name + ".json")
	must(t, err)
	must(t, json.Unmarshal(b, &f))
	return f
}

// of are the rows of one partition.
func of(t testing.TB, recs []fixtureRecord, partition int32) (out []state.Row) {
	for _, r := range recs {
		if r.Partition == partition {
			out = append(out, r.row(t))
		}
	}
	return out
}

// lines are rows as text, sorted.
func lines(rows []state.Row) string {
	var out []string
	for _, r := range rows {
		out = append(out, fmt.Sprintf("%x=%x@%d", r.Key, r.Value, r.Time))
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}

// changesOf are the changelog records of the open transaction.
func changesOf(t testing.TB, db *state.DB) (out []state.Row) {
	t.Helper()
	must(t, db.Changes(func(_ *state.Part, key, value []byte, time int64) error {
		r := state.Row{Key: bytes.Clone(key), Time: time}
		if value != nil {
			r.Value = append([]byte{}, value...)
		}
		out = append(out, r)
		return nil
	}))
	return out
}

// A fixtureStore writes changelog records again as an operator would have.
type fixtureStore struct {
	write func(r state.Row) error
	all   func() []state.Row // what is in the store, as changelog records
}

func openFixture(t testing.TB, name string) (*state.DB, fixtureStore) {
	t.Helper()
	kind := map[string]state.Kind{
		"window-aggregate-delete": state.KindWindow, "window-duplicates": state.KindWindowByKey,
		"session-count": state.KindSession, "versioned": state.KindVersioned,
	}[name]
	db, err := state.Open(state.NewMemory(), state.Options{Stores: []state.Spec{{Name: "s", Kind: kind}}})
	must(t, err)
	t.Cleanup(func() { db.Close() })
	switch kind {
	case state.KindSession:
		return db, sessionFixture(t, db)
	case state.KindVersioned:
		return db, versionedFixture(t, db)
	}
	return db, windowFixture(t, db, kind)
}

func windowFixture(t testing.TB, db *state.DB, kind state.Kind) fixtureStore {
	s, err := state.OpenWindow(db, "s", codec.Bytes, codec.Bytes)
	must(t, err)
	return fixtureStore{
		func(r state.Row) error {
			n := len(r.Key) - 12
			start := int64(binary.BigEndian.Uint64(r.Key[n:]))
			switch {
			case r.Value == nil:
				return s.Delete(r.Key[:n], start, r.Time)
			case kind == state.KindWindowByKey:
				return s.Add(r.Key[:n], start, r.Value, r.Time)
			}
			return s.Put(r.Key[:n], start, r.Value, r.Time)
		},
		func() (out []state.Row) {
			for w, err := range s.All() {
				must(t, err)
				key := binary.BigEndian.AppendUint64(bytes.Clone(w.Key), uint64(w.Start))
				out = append(out, state.Row{Key: append(key, 0, 0, 0, 0), Value: w.Value, Time: w.Time})
			}
			return out
		},
	}
}

func sessionFixture(t testing.TB, db *state.DB) fixtureStore {
	s, err := state.OpenSession(db, "s", codec.Bytes, codec.Bytes)
	must(t, err)
	return fixtureStore{
		func(r state.Row) error {
			n := len(r.Key) - 16
			end, start := int64(binary.BigEndian.Uint64(r.Key[n:])), int64(binary.BigEndian.Uint64(r.Key[n+8:]))
			if r.Value == nil {
				return s.Delete(r.Key[:n], start, end, r.Time)
			}
			return s.Put(r.Key[:n], start, end, r.Value, r.Time)
		},
		func() (out []state.Row) {
			for w, err := range s.All() {
				must(t, err)
				key := binary.BigEndian.AppendUint64(bytes.Clone(w.Key), uint64(w.End))
				out = append(out, state.Row{Key: binary.BigEndian.AppendUint64(key, uint64(w.Start)), Value: w.Value, Time: w.Time})
			}
			return out
		},
	}
}

func versionedFixture(t testing.TB, db *state.DB) fixtureStore {
	s, err := state.OpenVersioned(db, "s", codec.Bytes, codec.Bytes, 60_000)
	must(t, err)
	return fixtureStore{
		func(r state.Row) error {
			if r.Value == nil {
				_, _, err := s.Delete(r.Key, r.Time)
				return err
			}
			_, _, err := s.Put(r.Key, r.Time, r.Value)
			return err
		},
		nil,
	}
}

var fixtureNames = []string{"window-aggregate-delete", "window-duplicates", "session-count", "versioned"}

func TestChangelogsOfKafkaStreamsAreWrittenAgainByteForByte(t *testing.T) {
	for _, name := range fixtureNames {
		t.Run(name, func(t *testing.T) {
			f := readFixture(t, name)
			for p := range f.Partitions {
				db, s := openFixture(t, name)
				for _, want := range of(t, f.Records, p) {
					must(t, s.write(want))
					got := changesOf(t, db)
					if len(got) != 1 || lines(got) != lines([]state.Row{want}) {
						t.Fatalf("wrote %s, want %s", lines(got), lines([]state.Row{want}))
					}
					db.Committed(func(*state.Part) (int64, bool) { return 0, false })
				}
			}
		})
	}
}

func TestChangelogsOfKafkaStreamsGiveItsRows(t *testing.T) {
	for _, name := range fixtureNames[:3] {
		t.Run(name, func(t *testing.T) {
			f := readFixture(t, name)
			for p := range f.Partitions {
				db, s := openFixture(t, name)
				recs, want := of(t, f.Records, p), of(t, f.Final, p)
				must(t, db.Part("s").Apply(slices.Values(recs), int64(len(recs))))
				if name == "window-duplicates" { // rows do not tell their numbers
					for i := range want {
						copy(want[i].Key[len(want[i].Key)-4:], []byte{0, 0, 0, 0})
					}
				}
				if got := lines(s.all()); got != lines(want) {
					t.Errorf("partition %d:\n%s\nwant\n%s", p, got, lines(want))
				}
			}
		})
	}
}

func TestVersionsOfKafkaStreamsAreRestored(t *testing.T) {
	f := readFixture(t, "versioned")
	n := 0
	for p := range f.Partitions {
		db, _ := openFixture(t, "versioned")
		recs := of(t, f.Records, p)
		must(t, db.Part("s").Apply(slices.Values(recs), int64(len(recs))))
		s, err := state.OpenVersioned(db, "s", codec.Bytes, codec.Bytes, 60_000)
		must(t, err)
		for _, key := range f.Final {
			if key.Partition != p {
				continue
			}
			var got, want []string
			for v, err := range s.History(unhex(t, key.Key), 0, math.MaxInt64) {
				must(t, err)
				got = append(got, fmt.Sprintf("%s[%d,%d)", v.Value, v.From, v.To))
			}
			for _, v := range key.Versions {
				if v.To == 0 {
					v.To = math.MaxInt64
				}
				want = append(want, fmt.Sprintf("%s[%d,%d)", v.Value, v.From, v.To))
			}
			if n += len(want); !slices.Equal(got, want) {
				t.Errorf("%s has %q, want %q", key.Key, got, want)
			}
		}
	}
	if n < 10 {
		t.Errorf("only %d versions", n)
	}
}
