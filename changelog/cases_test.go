package changelog_test

import (
	"errors"
	"testing"

	"github.com/semelstream/semel/changelog"
	"github.com/semelstream/semel/internal/seam"
)

var tp0 = seam.TP{Topic: "app-rows-changelog"}

// atEnd is an end of a job: the log's.
const atEnd = -1

// A restore of one log into one target, and what comes of it.
var cases = []struct {
	name  string
	log   string
	start int64
	end   int64  // of the job
	was   string // in the target before
	at    int64  // the target's position before
	anew  string

	rows    string
	emptied bool
	err     error
}{
	{name: "an empty changelog", end: atEnd},
	{name: "rows with their times", log: "a=1 b=2 commit c=3 commit", end: atEnd, rows: "a=1@0 b=2@1 c=3@3"},
	{name: "the last value counts and tombstones delete", log: "a=1 b=1 a=2 b- c- commit", end: atEnd, rows: "a=2@2"},
	{name: "an empty value is a value", log: "a= commit", end: atEnd, rows: "a=@0"},
	{name: "only aborted records", log: "a=1 b=2 abort", end: atEnd},
	{name: "only markers", log: "commit commit abort", end: atEnd},
	{name: "aborted between committed", log: "a=1 commit a=2 b=2 abort c=3 commit", end: atEnd, rows: "a=1@0 c=3@5"},
	{name: "markers at the end", log: "a=1 commit b=2 abort commit commit", end: atEnd, rows: "a=1@0"},
	{name: "everything deleted from the topic", log: "a=1 b=2 commit", start: 3, end: atEnd},
	{name: "everything and more deleted from the topic", log: "a=1 b=2 commit c=3 commit", start: 5, end: 3},
	{name: "everything deleted after the target came part of the way", log: "a=1 commit b=2 commit", start: 4, end: atEnd, was: "a=1", at: 2, emptied: true},
	{name: "the beginning deleted from the topic", log: "a=1 commit b=2 commit", start: 2, end: atEnd, rows: "b=2@2"},
	{name: "a target before the start, whose rows may have tombstones that are gone", log: "a=1 commit a- commit b=2 commit", start: 4, end: atEnd, was: "a=1", at: 1, rows: "b=2@4", emptied: true},
	{name: "a target at the start", log: "a=1 commit b=2 commit", start: 2, end: atEnd, was: "a=1", at: 2, rows: "a=1@0 b=2@2"},
	{name: "a compacted log", log: "_ _ _ a=2 _ c=3 commit", end: atEnd, rows: "a=2@3 c=3@5"},
	{name: "a compacted log with holes before its marker", log: "a=1 _ _ _ commit", end: atEnd, rows: "a=1@0"},
	{name: "on from the position, not from the beginning", log: "a=1 commit b=2 commit", end: atEnd, was: "a=7", at: 2, rows: "a=7@0 b=2@2"},
	{name: "on from a position in a hole", log: "a=1 _ _ _ b=2 commit", end: atEnd, was: "a=7", at: 2, rows: "a=7@0 b=2@4"},
	{name: "at the end already", log: "a=1 commit", end: atEnd, was: "a=7", at: 2, rows: "a=7@0"},
	{name: "an end in the middle of a batch", log: "a=1 b=2 c=3 commit a=4 commit", end: 2, rows: "a=1@0 b=2@1"},
	{name: "an end in a hole", log: "a=1 _ _ _ b=2 commit", end: 2, rows: "a=1@0"},
	{name: "an end before the first record", log: "_ _ a=1 commit", end: 1},
	{name: "rows without a position are no part of the history", log: "a=1 commit", end: atEnd, was: "z=9", at: 0, rows: "a=1@0"},
	{name: "anew", log: "_ _ _ c=3 commit", end: atEnd, was: "a=1", at: 1, anew: "its tombstone is gone", rows: "c=3@3", emptied: true},
	{name: "anew, ahead of a topic that was made again", log: "c=3 commit", end: atEnd, was: "a=1", at: 9, anew: "another topic id", rows: "c=3@0", emptied: true},
	{name: "ahead of the changelog", log: "a=1 commit", end: atEnd, was: "a=1", at: 3, rows: "a=1@0", err: changelog.ErrAhead},
}

func TestRestores(t *testing.T) {
	for _, c := range cases {
		for _, limit := range []int{0, 1} { // everything in one batch, or each record alone
			t.Run(c.name, func(t *testing.T) {
				eachTarget(t, func(t *testing.T, to target) {
					l := parse(c.log)
					l.start = c.start
					s := newSource()
					s.limit, s.logs[tp0] = limit, l
					end := c.end
					if end == atEnd {
						end = l.end()
					}
					if c.was != "" {
						fill(t, to, c.was, c.at)
					}
					emptied := ""
					j := job(to, l.start, end)
					j.Anew, j.Emptied = c.anew, func(why string) { emptied = why }
					err := restore(t, s, j)
					if !errors.Is(err, c.err) || err != nil && c.err == nil {
						t.Fatalf("error %v, want %v", err, c.err)
					}
					if (emptied != "") != c.emptied {
						t.Errorf("emptied because %q", emptied)
					}
					if at := to.Position(); err == nil && at != end {
						t.Errorf("position %d, want %d", at, end)
					}
					wantRows(t, to, c.rows)
					if len(s.at) > 0 {
						t.Errorf("%v are still read", s.at)
					}
				})
			})
		}
	}
}
