package state_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/semelstream/semel/state"
)

func TestPersistWhileATransactionIsOpenStoresWhatWasCommitted(t *testing.T) {
	e := state.NewMemory()
	r := newRig(t, e, state.Options{})
	r.do("a=1", "b=1", "c=1")
	r.commit()
	r.do("a=2", "-b", "d=2")
	w := r.db.Persist()
	r.do("c=2")
	must(t, w.Commit())
	r.do("a=3")
	r.db.Persisted(w, nil)
	wantStored(t, e, "a=1 b=1 c=1", 3)
	r.want("a=3 c=2 d=2")
	r.commit()
	r.persist()
	wantStored(t, e, "a=3 c=2 d=2", 7)
	if n := r.db.PendingBytes(); n != 0 {
		t.Errorf("%d bytes pending", n)
	}
	if w := r.db.Persist(); w != nil {
		t.Error("there was something to store once more")
	}
}

// gate is an engine whose Write waits.
type gate struct {
	state.Engine
	entered, open chan struct{}
}

func (g *gate) Write(b *state.Batch) error {
	if g.entered != nil {
		g.entered <- struct{}{}
		<-g.open
	}
	return g.Engine.Write(b)
}

func TestRewindWaitsForAPersistInFlight(t *testing.T) {
	g := &gate{Engine: state.NewMemory()}
	r := newRig(t, g, state.Options{})
	r.do("a=1")
	r.commit()
	r.persist()
	r.do("a=2")
	r.commit()
	r.do("a=3")
	g.entered, g.open = make(chan struct{}), make(chan struct{})
	w := r.db.Persist()
	done := make(chan error)
	go func() { done <- w.Commit() }()
	<-g.entered
	rewound := make(chan error)
	go func() { rewound <- r.db.Rewind() }()
	select {
	case <-rewound:
		t.Fatal("Rewind did not wait")
	default:
	}
	close(g.open)
	must(t, <-rewound)
	err := <-done
	must(t, err)
	r.want("a=2")
	if got := r.db.Part("s").Position(); got != 2 {
		t.Errorf("position %d, want that of the Write", got)
	}
	r.db.Persisted(w, err) // late
	r.want("a=2")
	g.entered = nil
	r.do("a=4")
	r.commit()
	r.persist()
	wantStored(t, g, "a=4", 3)
}

func TestRewindDropsAWriteThatHasNotBegun(t *testing.T) {
	e := state.NewMemory()
	r := newRig(t, e, state.Options{})
	r.do("a=1")
	r.commit()
	w := r.db.Persist()
	must(t, r.db.Rewind())
	if err := w.Commit(); !errors.Is(err, state.ErrRewound) {
		t.Fatalf("Commit after Rewind: %v", err)
	}
	r.db.Persisted(w, state.ErrRewound)
	r.want("")
	wantStored(t, e, "", 0)
	must(t, r.db.Part("s").Apply(slices.Values(r.log), 1))
	r.want("a=1")
}

func TestAFailedWriteIsStoredByTheNext(t *testing.T) {
	f := &failing{Engine: state.NewMemory()}
	r := newRig(t, f, state.Options{})
	r.do("a=1", "b=1")
	r.commit()
	f.err = errors.New("no space")
	w := r.db.Persist()
	r.do("b=2", "c=2")
	r.commit()
	err := w.Commit()
	if !errors.Is(err, f.err) {
		t.Fatalf("Commit: %v", err)
	}
	r.db.Persisted(w, err)
	wantStored(t, f, "", 0)
	f.err = nil
	r.persist()
	wantStored(t, f, "a=1 b=2 c=2", 4)
}

type failing struct {
	state.Engine
	err error
}

func (f *failing) Write(b *state.Batch) error {
	if f.err != nil {
		return f.err
	}
	return f.Engine.Write(b)
}
