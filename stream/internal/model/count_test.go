package model

import (
	"flag"
	"testing"
	"time"
)

var (
	seeds = flag.Int("seeds", 200, "how many seeds the tests of seeds try")
	first = flag.Uint64("first", 1, "the first seed")
	trace = flag.Bool("trace", false, "print the trace of a seed that fails")
)

func TestEverySeedCountsEveryInputOnce(t *testing.T) {
	var sum Stats
	begin := time.Now()
	for i := range *seeds {
		r := stormy(*first + uint64(i))
		r.trace = *trace
		if r.do(); len(r.bad) > 0 {
			t.Errorf("%v", r)
		}
		s := r.w.Stats()
		sum.Turns += s.Turns
		sum.Crashes += s.Crashes
		sum.Freezes += s.Freezes
		sum.Exits += s.Exits
		sum.NetFaults += s.NetFaults
		sum.Late += s.Late
	}
	d := time.Since(begin)
	t.Logf("%d seeds from %d on, %.1f ms each, %.0f ns a turn: %+v", *seeds, *first, d.Seconds()*1000/float64(*seeds), float64(d.Nanoseconds())/float64(sum.Turns), sum)
	if sum.Crashes < *seeds || sum.Freezes < *seeds/4 || sum.NetFaults < *seeds || sum.Late < *seeds {
		t.Errorf("too little went wrong to prove anything: %+v", sum)
	}
}

func TestTheSameSeedIsTheSameRun(t *testing.T) {
	for i := range 20 {
		a, b := stormy(uint64(i)).do().w, stormy(uint64(i)).do().w
		if a.Hash() != b.Hash() || a.Stats() != b.Stats() {
			t.Errorf("seed %d: %x %+v and %x %+v", i, a.Hash(), a.Stats(), b.Hash(), b.Stats())
		}
	}
	if a, b := stormy(1).do().w, stormy(2).do().w; a.Hash() == b.Hash() {
		t.Error("other seeds are the same run")
	}
}

func TestTracingDoesNotChangeTheRun(t *testing.T) {
	r := stormy(5)
	r.trace = true
	if a, b := r.do().w, stormy(5).do().w; a.Hash() != b.Hash() {
		t.Error("it does")
	}
	if len(r.w.Trace()) == 0 {
		t.Error("no trace")
	}
}

func TestACrashAtEveryTurnLosesNothing(t *testing.T) {
	probe := calm(3)
	if probe.do(); len(probe.bad) > 0 {
		t.Fatalf("without a crash: %v", probe)
	}
	turns := probe.procs[0].Turns()
	step := 1
	if testing.Short() {
		step = 7
	}
	for k := 1; k <= turns; k += step {
		r := calm(3)
		r.killAt = k
		r.trace = *trace
		if r.do(); len(r.bad) > 0 {
			t.Fatalf("crash at turn %d: %v", k, r)
		}
		if r.w.Stats().Crashes != 1 {
			t.Fatalf("crash at turn %d: %d crashes", k, r.w.Stats().Crashes)
		}
	}
	t.Logf("%d turns", turns)
}

func TestEveryMutantIsKilled(t *testing.T) {
	for _, m := range []struct {
		name string
		mut  mutants
	}{
		{"store before EndTxn", mutants{storeBeforeEnd: true}},
		{"offsets outside the transaction", mutants{offsetsOutside: true}},
		{"restore to the last stable offset", mutants{restoreToStable: true}},
		{"offsets fetched while a transaction is pending", mutants{unstableOffsets: true}},
		{"revoked task opened again", mutants{reopenRevoked: true}},
		{"unknown outcome guessed as committed", mutants{guessCommitted: true}},
	} {
		t.Run(m.name, func(t *testing.T) {
			for seed := range uint64(1000) {
				r := stormy(seed)
				r.mut = m.mut
				if r.do(); len(r.bad) > 0 {
					t.Logf("killed by seed %d: %s", seed, r.bad[0])
					return
				}
			}
			t.Error("it survived a thousand seeds")
		})
	}
}
