package state_test

import (
	"bytes"
	"testing"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/state"
)

// Values that Add puts are the store's own, whatever becomes of the caller's, and
// of any length.
func TestValuesThatAreAddedAreTheStoresOwn(t *testing.T) {
	d, err := state.Open(state.NewMemory(), state.Options{Stores: []state.Spec{{Name: "s", Kind: state.KindWindowByKey}}})
	must(t, err)
	t.Cleanup(func() { _ = d.Close() })
	s, err := state.OpenWindow(d, "s", codec.String, codec.Bytes)
	must(t, err)
	lengths := []int{0, 1, 100, 511, 512, 513, 5000, 3}
	for round := range 10 { // several blocks
		for i, n := range lengths {
			v := bytes.Repeat([]byte{byte(1 + i)}, n)
			must(t, s.Add("k", int64(100*round+i), v, 1))
			clear(v)
		}
	}
	for round := range 10 {
		for i, n := range lengths {
			at := int64(100*round + i)
			rows, err := s.AppendFetch(nil, "k", at, at)
			must(t, err)
			want := bytes.Repeat([]byte{byte(1 + i)}, n)
			if len(rows) != 1 || !bytes.Equal(rows[0].Value, want) || rows[0].Value == nil {
				t.Fatalf("of length %d there is %v", n, rows)
			}
			_ = append(rows[0].Value, 77) // touches nobody else's
		}
	}
}
