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
// follows it in restores that stop anywhere.
type life struct {
	*rand.Rand
	log  *fakeLog
	full *fakeLog // the same before any compaction
	src  *fakeSource
	to   target
	base int64 // where the target's history begins
	done int   // restores that came to their end
}

// A based target tells where its history begins.
type based struct {
	target
	l *life
}

func (b based) Reset() error {
	b.l.base = b.l.log.start
	return b.target.Reset()
}

func (l *life) append(words ...string) {
	l.log.words = append(l.log.words, words...)
	l.full.words = append(l.full.words, words...)
}

// grow appends a transaction, or the beginning of one.
func (l *life) grow() {
	for range l.IntN(6) {
		w := fmt.Sprintf("%c=%d", 'k'+l.IntN(4), l.IntN(100))
		if l.IntN(3) == 0 {
			w = w[:1] + "-"
		}
		l.append(w)
	}
	if l.IntN(4) > 0 {
		l.append([]string{"commit", "commit", "abort"}[l.IntN(3)])
	}
}

// compact takes aborted records away, and those that a later one of the same
// key replaces. A tombstone goes when nothing of its key is before it and the
// target has seen it or will begin anew: it was not away for too long. The last
// offsets are in the active segment.
func (l *life) compact() {
	n, last, words := int(l.log.stable())-4, map[byte]int{}, l.log.words
	for i := range max(n, 0) {
		if l.log.fate(i) == "commit" {
			last[words[i][0]] = i
		}
	}
	left := map[byte]bool{}
	for i := int(l.log.start); i < n; i++ {
		w, key := words[i], words[i][0]
		if w == "commit" || w == "abort" || w == "_" {
			continue
		}
		seen := l.to.Position() > int64(i) || l.to.Position() == 0
		switch replaced := last[key] > i; {
		case l.IntN(3) == 0: // not this time
		case l.log.fate(i) == "abort", replaced, w[1] == '-' && !left[key] && seen:
			words[i] = "_"
		}
		left[key] = left[key] || words[i] == w && l.log.fate(i) == "commit"
	}
}

// trim is DeleteRecords.
func (l *life) trim() {
	if n := l.log.stable() - l.log.start; n > 0 {
		l.log.start += l.Int64N(n + 1)
	}
}

// restore takes at most steps, during which more happens to the log, and stops
// as in a crash.
func (l *life) restore(t *testing.T, steps int) (bad error) {
	r := changelog.NewRestorer(l.src)
	l.src.limit = 1 + l.IntN(4)
	end, ended := l.log.end(), false
	j := job(based{l.to, l}, l.log.start, end)
	j.Restart = func(context.Context) (int64, error) { return l.log.start, nil }
	j.Done = func(err error) {
		ended = true
		if errors.Is(err, changelog.ErrCanceled) {
			return
		}
		l.done++
		want := l.full.fold(min(l.base, end), end).String()
		if got := l.to.rows(t).String(); err != nil || got != want || l.to.Position() != end {
			bad = fmt.Errorf("%v: position %d, end %d, rows %q, want %q from %d\n%v\n%v", err, l.to.Position(), end, got, want, l.base, l.full.words, l.log.words)
		}
	}
	r.Add(j)
	trims := 2
	for ; steps > 0 && !ended; steps-- {
		switch n := l.IntN(12); {
		case n == 0:
			l.grow()
		case n == 1 && trims > 0:
			l.trim()
			trims--
		}
		step(t, r)
	}
	r.Cancel(tp0)
	return bad
}

func TestATargetIsTheFoldOfItsChangelogWhateverHappens(t *testing.T) {
	done, emptied := 0, 0
	for seed := range uint64(3000) {
		l := &life{Rand: rand.New(rand.NewPCG(seed, 1)), log: parse(""), full: parse(""), src: newSource()}
		m := newMap()
		if l.to = m; seed%10 == 0 {
			l.to = newPart(t)
		}
		l.src.logs[tp0] = l.log
		for range 12 {
			for range 3 {
				[]func(){l.grow, l.grow, l.grow, l.compact, l.compact, l.trim}[l.IntN(6)]()
			}
			if err := l.restore(t, l.IntN(20)); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
		}
		l.append("z=1", "commit") // nothing is open now
		if err := l.restore(t, 1000); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		done += l.done
		emptied += m.resets
	}
	t.Logf("%d restores came to their end, targets were emptied %d times", done, emptied)
	if done < 6000 || emptied < 6000 {
		t.Error("that tests little")
	}
}
