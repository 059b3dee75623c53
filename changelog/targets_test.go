package changelog_test

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semelstream/semel/changelog"
	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/state"
)

// A target is one that tests can look into.
type target interface {
	changelog.Target
	rows(t testing.TB) rows
}

// A mapTarget is a Target of a few lines.
type mapTarget struct {
	m      rows
	next   int64
	fail   error // of the next Apply or Reset
	resets int
}

func newMap() *mapTarget { return &mapTarget{m: rows{}} }

func (m *mapTarget) Position() int64 { return m.next }

func (m *mapTarget) Apply(recs []*kgo.Record, next int64) error {
	if err := m.fail; err != nil {
		m.fail = nil
		return err
	}
	for _, r := range recs {
		m.m.put(r)
	}
	m.next = next
	return nil
}

func (m *mapTarget) Reset() error {
	if err := m.fail; err != nil {
		m.fail = nil
		return err
	}
	m.m, m.next = rows{}, 0
	m.resets++
	return nil
}

func (m *mapTarget) rows(testing.TB) rows { return m.m }

// A partTarget is a state store as a Target.
type partTarget struct{ db *state.DB }

func (p partTarget) part() *state.Part { return p.db.Part("rows") }

func (p partTarget) Position() int64 { return p.part().Position() }

func (p partTarget) Apply(recs []*kgo.Record, next int64) error {
	return p.part().Apply(func(yield func(state.Row) bool) {
		for _, r := range recs {
			if !yield(state.Row{Key: r.Key, Value: r.Value, Time: r.Timestamp.UnixMilli()}) {
				return
			}
		}
	}, next)
}

func (p partTarget) Reset() error { return p.part().Reset() }

func (p partTarget) rows(t testing.TB) rows {
	t.Helper()
	s, err := state.OpenKV(p.db, "rows", codec.String, codec.String)
	if err != nil {
		t.Fatal(err)
	}
	m := rows{}
	for e, err := range s.All() {
		if err != nil {
			t.Fatal(err)
		}
		m[e.Key] = row{e.Value, e.Time.UnixMilli()}
	}
	return m
}

// open opens a store on e.
func open(t testing.TB, e state.Engine) partTarget {
	t.Helper()
	db, err := state.Open(e, state.Options{Stores: []state.Spec{{Name: "rows"}}})
	if err != nil {
		t.Fatal(err)
	}
	return partTarget{db}
}

// newPart is a store in memory.
func newPart(t testing.TB) partTarget {
	t.Helper()
	p := open(t, state.NewMemory())
	t.Cleanup(func() { p.db.Close() })
	return p
}

// eachTarget runs f with every kind of target.
func eachTarget(t *testing.T, f func(t *testing.T, to target)) {
	t.Run("map", func(t *testing.T) { f(t, newMap()) })
	t.Run("state", func(t *testing.T) { f(t, newPart(t)) })
}

// fill makes rows and a position as if they had been restored before.
func fill(t testing.TB, to target, words string, next int64) {
	t.Helper()
	var recs []*kgo.Record
	for i, w := range parse(words).words {
		recs = append(recs, word(tp0, int64(i), w))
	}
	if err := to.Apply(recs, next); err != nil {
		t.Fatal(err)
	}
}

func wantRows(t testing.TB, to target, want string) {
	t.Helper()
	if got := to.rows(t).String(); got != want {
		t.Errorf("rows are %q, want %q", got, want)
	}
}
