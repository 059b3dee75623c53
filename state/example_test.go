package state_test

import (
	"fmt"
	"slices"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/state"
)

// A transaction from the first change to the engine.
func Example() {
	d, err := state.Open(state.NewMemory(), state.Options{Stores: []state.Spec{{Name: "counts"}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer d.Close()
	counts, err := state.OpenKV(d, "counts", codec.String, codec.Int64)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, word := range []string{"to", "be", "or", "not", "to", "be"} {
		ref, n, _, _, err := counts.Find(word)
		if err != nil {
			fmt.Println(err)
			return
		}
		counts.Set(ref, n+1, 1000)
	}

	// One changelog record for each key, however often it changed.
	end := int64(0)
	err = d.Changes(func(p *state.Part, key, value []byte, time int64) error {
		fmt.Printf("%s: %s=%x at %d\n", p.Name(), key, value, time)
		end++
		return nil
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	// ... Kafka has committed it.
	d.Committed(func(p *state.Part) (int64, bool) { return end, true })

	w := d.Persist()
	d.Persisted(w, w.Commit())
	fmt.Println("position", d.Part("counts").Position())

	// Output:
	// counts: to=0000000000000002 at 1000
	// counts: be=0000000000000002 at 1000
	// counts: or=0000000000000001 at 1000
	// counts: not=0000000000000001 at 1000
	// position 4
}

func ExampleDB_Undo() {
	d, _ := state.Open(state.NewMemory(), state.Options{Stores: []state.Spec{{Name: "s"}}})
	defer d.Close()
	s, _ := state.OpenKV(d, "s", codec.String, codec.String)

	_ = s.Put("a", "good", 1)
	d.Mark() // before a record
	_ = s.Put("a", "half of a change", 2)
	_ = s.Put("b", "the other half was not possible", 2)
	d.Undo() // it failed

	for row, err := range s.All() {
		fmt.Println(row.Key, row.Value, err)
	}
	// Output: a good <nil>
}

func ExamplePart_Apply() {
	d, _ := state.Open(state.NewMemory(), state.Options{Stores: []state.Spec{{Name: "s"}}})
	defer d.Close()
	s, _ := state.OpenKV(d, "s", codec.String, codec.String)

	p := d.Part("s")
	changelog := []state.Row{
		{Key: []byte("a"), Value: []byte("1"), Time: 1},
		{Key: []byte("b"), Value: []byte("1"), Time: 2},
		{Key: []byte("a"), Time: 3}, // deletes
	}
	// A control record follows at offset 3, so the position is 4.
	if err := p.Apply(slices.Values(changelog), 4); err != nil {
		fmt.Println(err)
	}
	for row := range s.All() {
		fmt.Println(row.Key, row.Value)
	}
	fmt.Println(p.Position())
	// Output:
	// b 1
	// 4
}
