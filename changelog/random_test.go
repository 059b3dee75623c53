package changelog_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/semelstream/semel/changelog"
)

// A life is a log that grows, is compacted and deleted from, and a target that
// follows it in restores that end anywhere.
type life struct {
	*rand.Rand
	log *fakeLog
	src *fakeSource
	to  target
	bad error // what the model cannot explain
}

// grow appends a transaction, or the beginning of one.
func (l *life) grow() {
	l.src.change(func() {
		for range l.IntN(6) {
			w := fmt.Sprintf("%c=%d", 'a'+l.IntN(4), l.IntN(100))
			if l.IntN(3) == 0 {
				w = w[:1] + "-"
			}
			l.log.words = append(l.log.words, w)
		}
		if l.log.stable() == l.log.end() || l.IntN(4) > 0 {
			l.log.words = append(l.log.words, []string{"commit", "commit", "abort"}[l.IntN(3)])
		}
	})
}

// compact takes away what a later record of the same key replaces, markers
// and aborted records, but nothing of the last five offsets; a tombstone only
// when the target is past it, or nowhere: it was not away for too long.
func (l *life) compact() {
	l.src.change(func() {
		last := map[byte]int{}
		n := int(l.log.stable()) - 5
		for i := range max(n, 0) {
			if l.log.fate(i) == "commit" {
				last[l.log.words[i][0]] = i
			}
		}
		words := l.log.words
		gone := make([]bool, len(words))
		for i := range max(n, 0) {
			w := words[i]
			switch seen := l.to.Position() > int64(i) || l.to.Position() == 0; {
			case w == "commit" || w == "abort": // they decide over others: kept
			case l.log.fate(i) == "abort":
				gone[i] = true
			case w != "_" && (last[w[0]] > i || w[1] == '-' && seen):
				gone[i] = l.IntN(3) > 0
			}
		}
		for i, g := range gone {
			if g {
				words[i] = "_"
			}
		}
	})
}

// trim is DeleteRecords.
func (l *life) trim() {
	l.src.change(func() {
		if n := l.log.stable() - l.log.start; n > 0 {
			l.log.start += l.Int64N(n + 1)
		}
	})
}

// restore steps a job, during which things happen, and stops it anywhere.
func (l *life) restore(t *testing.T) {
	r := changelog.NewRestorer(l.src)
	l.src.limit = 1 + l.IntN(4)
	end, ended := l.log.end(), false
	j := job(l.to, l.log.start, end)
	j.Restart = func(context.Context) (int64, error) { return l.log.start, nil }
	j.Done = func(err error) {
		ended = true
		switch {
		case errors.Is(err, changelog.ErrCanceled):
		case err != nil:
			l.bad = err
		case l.to.Position() != end:
			l.bad = fmt.Errorf("position %d, end %d", l.to.Position(), end)
		}
	}
	r.Add(j)
	for n := l.IntN(30); n > 0 && !ended; n-- {
		switch l.IntN(12) {
		case 0:
			l.grow()
		case 1:
			l.trim()
		}
		step(t, r)
	}
	r.Cancel(tp0)
	l.src.Unassign(tp0) // as a crash would
}

// Whatever happens to log and target, the rows are the fold of what is in the
// log below the position. Compaction keeps that fold, and deleting records
// changes it, so that it is taken at the time.
func TestTargetsAreTheFoldOfTheirChangelogWhateverHappens(t *testing.T) {
	for seed := range uint64(2000) {
		l := &life{Rand: rand.New(rand.NewPCG(seed, 1)), log: parse(""), src: newSource()}
		if l.to = newMap(); seed%10 == 0 {
			l.to = newPart(t)
		}
		l.src.logs[tp0] = l.log
		for range 12 {
			switch l.IntN(6) {
			case 0, 1, 2:
				l.grow()
			case 3:
				l.compact()
			case 4:
				if l.IntN(3) == 0 {
					l.trim()
				}
			}
			l.restore(t)
			if l.bad != nil {
				t.Fatalf("seed %d: %v", seed, l.bad)
			}
		}
		// At the end the topic rests and one restore goes through.
		l.log.words = append(l.log.words, "z=1", "commit")
		if err := restore(t, l.src, job(l.to, l.log.start, l.log.end())); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if got, want := l.to.rows(t).String(), l.log.foldFor(l.to); got != want {
			t.Fatalf("seed %d: rows are %q, want %q\n%v from %d", seed, got, want, l.log.words, l.log.start)
		}
	}
}
