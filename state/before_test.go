package state_test

import (
	"fmt"
	"testing"

	"github.com/semelstream/semel/state"
)

func TestBeforeIsTheRowAsTheTransactionFoundIt(t *testing.T) {
	r := newRig(t, state.NewMemory(), state.Options{})
	before := func(want string) {
		t.Helper()
		got := ""
		for _, k := range []string{"a", "b", "c"} {
			v, ms, ok, err := r.s.Before(k)
			must(t, err)
			if ok {
				got += fmt.Sprintf("%s=%s@%d ", k, v, ms)
			}
		}
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	r.do("a=1", "b=1")
	before("")
	r.commit()
	before("a=1@1 b=1@1 ")
	r.do("a=2", "-b", "c=2")
	before("a=1@1 b=1@1 ")
	r.do("b=3", "-c")
	before("a=1@1 b=1@1 ")
	r.commit()
	before("a=2@1 b=3@1 ")
	r.db.Mark()
	r.do("a=4")
	r.db.Undo()
	before("a=2@1 b=3@1 ")
	r.do("-a")
	must(t, r.db.Rewind())
}
