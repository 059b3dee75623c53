package state_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/semelstream/semel/state"
)

func TestAViewShowsNothingOfTheOpenTransaction(t *testing.T) {
	r := newRig(t, state.NewMemory(), state.Options{})
	r.do("a=1", "b=1")
	r.commit()
	r.persist()
	r.do("c=1")
	r.commit() // not stored
	r.do("a=2", "-b", "-c", "d=1")
	v := r.s.View()
	if got := list(t, v.All()); got != "a=1 b=1 c=1" {
		t.Errorf("All: %q", got)
	}
	if got := list(t, v.Range("b", "z")); got != "b=1 c=1" {
		t.Errorf("Range: %q", got)
	}
	for k, want := range map[string]string{"a": "1", "b": "1", "c": "1", "d": ""} {
		if got, _, ok, err := v.Get(k); got != want || ok != (want != "") || err != nil {
			t.Errorf("Get %s: %q, %v, %v", k, got, ok, err)
		}
	}
	if n, err := v.Len(); n != 3 || err != nil {
		t.Errorf("Len %d, %v", n, err)
	}
}

func TestAViewWalksOverManyChunks(t *testing.T) {
	r := newRig(t, state.NewMemory(), state.Options{})
	var want string
	for i := range 1000 {
		r.do(fmt.Sprintf("%04d=x", i))
		want += fmt.Sprintf(" %04d=x", i)
		if i == 500 {
			r.commit()
			r.persist()
		}
	}
	r.commit()
	if got := " " + list(t, r.s.View().All()); got != want {
		t.Errorf("%d bytes of rows, want %d", len(got), len(want))
	}
	n := 0
	for row, err := range r.s.View().All() { // a view may be used inside of its own walk
		must(t, err)
		if _, _, ok, err := r.s.View().Get(row.Key); !ok || err != nil {
			t.Fatal(ok, err)
		}
		if n++; n == 300 {
			break
		}
	}
}

// Money moves between two rows; a reader must never see it twice or not at all.
func TestViewsReadWholeTransactionsBesideTheOwner(t *testing.T) {
	for _, engine := range []string{"memory", "pebble"} {
		t.Run(engine, func(t *testing.T) {
			e := state.NewMemory()
			if engine == "pebble" {
				var err error
				e, err = newCrashDisk(t).Open()
				must(t, err)
			}
			r := newRig(t, e, state.Options{CacheBytes: 1})
			r.do("a=100", "b=0")
			r.commit()
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
						if got := list(t, r.s.View().All()); got != "a=100 b=0" && got != "a=0 b=100" {
							t.Errorf("a view saw %q", got)
							return
						}
					}
				})
			}
			for i := range 500 {
				r.db.Lock()
				r.do(fmt.Sprintf("a=%d", i%2*100))
				r.db.Unlock() // in the middle
				r.db.Lock()
				r.do(fmt.Sprintf("b=%d", 100-i%2*100))
				r.commit()
				w := r.db.Persist()
				r.db.Unlock()
				err := w.Commit()
				r.db.Lock()
				r.db.Persisted(w, err)
				r.db.Unlock()
				must(t, err)
			}
			close(stop)
			wg.Wait()
		})
	}
}
