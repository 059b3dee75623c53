package state_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/state"
)

// rig is a DB with one store "s" and the changelog that it wrote.
type rig struct {
	t   testing.TB
	db  *state.DB
	s   *state.KV[string, string]
	log []state.Row
}

func newRig(t testing.TB, e state.Engine, o state.Options) *rig {
	t.Helper()
	o.Stores = []state.Spec{{Name: "s"}}
	db, err := state.Open(e, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	s, err := state.OpenKV(db, "s", codec.String, codec.String)
	if err != nil {
		t.Fatal(err)
	}
	return &rig{t: t, db: db, s: s}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// do changes rows: "a=1" puts, "-a" deletes.
func (r *rig) do(ops ...string) {
	r.t.Helper()
	for _, op := range ops {
		if k, ok := strings.CutPrefix(op, "-"); ok {
			must(r.t, r.s.Delete(k, 2))
			continue
		}
		k, v, _ := strings.Cut(op, "=")
		must(r.t, r.s.Put(k, v, 1))
	}
}

// commit appends the changes to the changelog and ends the transaction.
func (r *rig) commit() {
	r.t.Helper()
	r.logChanges()
	r.db.Committed(func(*state.Part) (int64, bool) { return int64(len(r.log)), true })
}

func (r *rig) logChanges() {
	r.t.Helper()
	must(r.t, r.db.Changes(func(_ *state.Part, key, value []byte, time int64) error {
		row := state.Row{Key: append([]byte{}, key...), Time: time}
		if value != nil {
			row.Value = append([]byte{}, value...)
		}
		r.log = append(r.log, row)
		return nil
	}))
}

func (r *rig) persist() {
	r.t.Helper()
	if w := r.db.Persist(); w != nil {
		err := w.Commit()
		r.db.Persisted(w, err)
		must(r.t, err)
	}
}

func list(t testing.TB, rows state.Rows[string, string]) string {
	t.Helper()
	var out []string
	for row, err := range rows {
		must(t, err)
		out = append(out, fmt.Sprintf("%s=%s", row.Key, row.Value))
	}
	return strings.Join(out, " ")
}

func (r *rig) want(rows string) {
	r.t.Helper()
	if got := list(r.t, r.s.All()); got != rows {
		r.t.Errorf("rows are %q, want %q", got, rows)
	}
}

// wantStored looks at what the engine has, without the DB.
func wantStored(t testing.TB, e state.Engine, rows string, position int64) {
	t.Helper()
	r := newRig(t, borrowed{e}, state.Options{})
	r.want(rows)
	if got := r.db.Part("s").Position(); got != position {
		t.Errorf("position %d, want %d", got, position)
	}
}

// borrowed is an engine that is closed by somebody else.
type borrowed struct{ state.Engine }

func (borrowed) Close() error { return nil }
