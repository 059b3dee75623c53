package state_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/state"
)

// inOrder is an engine that wants rows in order of keys, and counts them.
type inOrder struct {
	state.Engine
	t    *testing.T
	rows int
}

func (e *inOrder) Write(b *state.Batch) error {
	var last []byte
	err := b.Each(func(kind state.OpKind, key, value []byte) error {
		if kind == state.OpDeleteRange || key[0] == 0 { // behind the rows of their store, or of the catalogue
			last = nil
			return nil
		}
		if bytes.Compare(last, key) >= 0 {
			e.t.Errorf("%x comes behind %x", key, last)
		}
		if len(value) > 0 && !bytes.Contains(key, value[8:]) {
			e.t.Errorf("%x has the value %q", key, value[8:])
		}
		last = bytes.Clone(key)
		e.rows++
		return nil
	})
	if err != nil {
		return err
	}
	return e.Engine.Write(b)
}

func TestRowsAreWrittenInOrderOfKeys(t *testing.T) {
	const n = 2000
	e := &inOrder{Engine: state.NewMemory(), t: t}
	db, err := state.Open(e, state.Options{Stores: []state.Spec{{Name: "b"}, {Name: "a"}, {Name: "w", Kind: state.KindWindowByKey, ByTime: true}}})
	must(t, err)
	defer db.Close()
	w, err := state.OpenWindow(db, "w", codec.String, codec.String)
	must(t, err)
	for _, i := range rand.Perm(n) {
		key := fmt.Sprint("a key of which sixteen bytes are alike ", i)
		for _, name := range []string{"a", "b"} {
			s, err := state.OpenKV(db, name, codec.String, codec.String)
			must(t, err)
			must(t, s.Put(key, key, 1))
		}
		must(t, w.Put(key, int64(i), key, 1))
	}
	w.Expire(1000)
	commitAll(t, db)
	persistAll(t, db)
	if want := 2*n + 2*(n-1000); e.rows != want {
		t.Errorf("%d rows were written, want %d", e.rows, want)
	}
}
