package changelog_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semelstream/semel/changelog"
	"github.com/semelstream/semel/internal/seam"
)

func TestRestoresFromABroker(t *testing.T) {
	for name, log := range map[string]string{
		"an empty changelog":          "",
		"only aborted records":        "a=1 b=2 abort c=3 abort",
		"markers at the end":          "a=1 commit a=2 b=2 commit b- commit c=1 abort",
		"aborted between committed":   "a=1 commit a=2 b=2 abort c=3 commit",
		"values that are empty":       "a=1 b= commit a= commit",
		"one record in a transaction": "a=1 commit b=1 commit a- commit c=1 commit",
	} {
		t.Run(name, func(t *testing.T) {
			everywhere(t, func(c *cluster) {
				c.producer().write(c.tp, log)
				for _, to := range []target{newMap(), newPart(t)} {
					c.restore(to)
					if got, want := values(to.rows(t)), values(parse(log).fold(0, parse(log).end())); got != want {
						t.Errorf("rows are %q, want %q", got, want)
					}
				}
			})
		})
	}
}

// values are the rows without times, which count from each transaction here.
func values(m rows) string {
	out := rows{}
	for k, r := range m {
		out[k] = row{value: r.value}
	}
	return out.String()
}

func wantValues(t testing.TB, to target, want string) {
	t.Helper()
	if got := values(to.rows(t)); got != want {
		t.Errorf("rows are %q, want %q", got, want)
	}
}

func TestPartitionsOfABrokerAreRestoredSideBySideAndGoOn(t *testing.T) {
	everywhere(t, func(c *cluster) {
		p, other := c.producer(), seam.TP{Topic: c.tp.Topic, Partition: 1}
		to := map[seam.TP]target{c.tp: newMap(), other: newPart(c.T)}
		p.write(c.tp, "a=1 commit b=1 abort")
		p.write(other, "x=1 commit")
		c.restoreAll(to)
		wantValues(c.T, to[c.tp], "a=1@0")
		wantValues(c.T, to[other], "x=1@0")
		p.write(other, "x- y=2 commit")
		c.restoreAll(to) // one is at its end, the other is not
		wantValues(c.T, to[c.tp], "a=1@0")
		wantValues(c.T, to[other], "y=2@0")
		if m := to[c.tp].(*mapTarget); m.resets != 1 {
			c.Errorf("emptied %d times", m.resets)
		}
	})
}

func TestARestoreFromABrokerWaitsForTheOpenTransaction(t *testing.T) {
	for name, c2 := range map[string]struct {
		how  kgo.TransactionEndTry
		want string
	}{"that commits": {kgo.TryCommit, "a=2@0 b=2@0"}, "that aborts": {kgo.TryAbort, "a=1@0"}} {
		t.Run(name, func(t *testing.T) {
			everywhere(t, func(c *cluster) {
				p, to := c.producer(), newPart(c.T)
				p.write(c.tp, "a=1 commit a=2 b=2")
				r := c.reader()
				jobs, err := r.Jobs(c.ctx(), map[seam.TP]changelog.Target{c.tp: to})
				c.ok(err)
				rs, res := changelog.NewRestorer(r), results{}
				rs.Add(res.of(jobs[0]))
				for to.Position() < 2 { // up to the open transaction
					c.ok(rs.Step(c.ctx(), time.Second))
				}
				c.ok(rs.Step(c.ctx(), 200*time.Millisecond)) // more than an idle fetch
				if to.Position() != 2 || rs.Jobs() != 1 {
					c.Fatalf("position %d, %d jobs", to.Position(), rs.Jobs())
				}
				p.end(c.tp, c2.how)
				c.ok(rs.Run(c.ctx()))
				c.ok(res.one(c.T, c.tp))
				wantValues(c.T, to, c2.want)
				if to.Position() != 4 { // where the end was
					c.Errorf("position %d", to.Position())
				}
			})
		})
	}
}

func TestAReaderIsWokenAndCanceledWhileItWaits(t *testing.T) {
	everywhere(t, func(c *cluster) {
		c.producer().begin(c.tp, "a=1")
		r := c.reader()
		jobs, err := r.Jobs(c.ctx(), map[seam.TP]changelog.Target{c.tp: newMap()})
		c.ok(err)
		rs, res := changelog.NewRestorer(r), results{}
		rs.Add(res.of(jobs[0]))
		for range 20 {
			go rs.Wake() // before, in or after the wait
			start := time.Now()
			if c.ok(rs.Step(c.ctx(), time.Minute)); time.Since(start) > 20*time.Second {
				c.Fatal("it was not woken")
			}
		}
		rs.Wake() // before the wait
		start := time.Now()
		if c.ok(rs.Step(c.ctx(), time.Minute)); time.Since(start) > 20*time.Second {
			c.Fatal("a Wake before the Poll was lost")
		}
		start = time.Now()
		if c.ok(rs.Step(c.ctx(), 50*time.Millisecond)); time.Since(start) < 50*time.Millisecond {
			c.Fatal("one Wake woke two Polls")
		}
		ctx, cancel := context.WithCancel(c.ctx())
		go cancel()
		if err := rs.Run(ctx); !errors.Is(err, context.Canceled) {
			c.Fatal(err)
		}
		rs.Close()
		if err := res.one(c.T, c.tp); !errors.Is(err, changelog.ErrCanceled) {
			c.Fatal(err)
		}
	})
}

func TestARestoreThatIsGivenUpReadsNoMore(t *testing.T) {
	everywhere(t, func(c *cluster) {
		p, r := c.producer(), c.reader()
		p.begin(c.tp, "a=1")
		ctx, cancel := context.WithTimeout(c.ctx(), 50*time.Millisecond)
		defer cancel()
		to := map[seam.TP]changelog.Target{c.tp: newMap()}
		if err := changelog.Restore(ctx, r, to); !errors.Is(err, context.DeadlineExceeded) {
			c.Fatal(err)
		}
		p.end(c.tp, kgo.TryCommit)
		if got, err := r.Poll(c.ctx(), 10, 200*time.Millisecond); got != nil || err != nil {
			c.Fatalf("read %v, %v", got, err)
		}
		c.ok(changelog.Restore(c.ctx(), r, to))
		wantValues(c.T, to[c.tp].(target), "a=1@0")
	})
}

func TestRecordsThatWereDeletedFromABroker(t *testing.T) {
	everywhere(t, func(c *cluster) {
		p, to := c.producer(), newPart(c.T)
		p.write(c.tp, "a=1 commit")
		c.restore(to)
		p.write(c.tp, "a- commit b=1 commit")
		c.deleteBefore(c.tp, 4)
		c.restore(to)
		wantValues(c.T, to, "b=1@0") // a's tombstone is gone
		c.deleteBefore(c.tp, c.end(c.tp))
		c.restore(to) // is at the end
		wantValues(c.T, to, "b=1@0")
		fresh := newPart(c.T)
		c.restore(fresh)
		wantValues(c.T, fresh, "")
		p.write(c.tp, "c=1 commit")
		c.restore(fresh)
		wantValues(c.T, fresh, "c=1@0")
	})
}

func TestRecordsAreDeletedFromABrokerWhileTheyAreRead(t *testing.T) {
	everywhere(t, func(c *cluster) {
		p, to := c.producer(), newPart(c.T)
		p.write(c.tp, "a=1 commit")
		c.restore(to)
		p.write(c.tp, "a- commit b=1 commit")
		r := c.reader()
		jobs, err := r.Jobs(c.ctx(), map[seam.TP]changelog.Target{c.tp: to})
		c.ok(err)
		c.deleteBefore(c.tp, 4)
		rs, res, why := changelog.NewRestorer(r), results{}, ""
		jobs[0].Emptied = func(s string) { why = s }
		rs.Add(res.of(jobs[0]))
		c.ok(rs.Run(c.ctx()))
		c.ok(res.one(c.T, c.tp))
		wantValues(c.T, to, "b=1@0")
		if want := "the changelog's start moved to 4 while position 2 was read"; why != want {
			c.Errorf("emptied because %q", why)
		}
	})
}

func TestATopicThatWasMadeAnewIsNoticedIfItIsShorter(t *testing.T) {
	everywhere(t, func(c *cluster) {
		to := newMap()
		fill(c.T, to, "a=1", 9)
		c.producer().write(c.tp, "b=1 commit")
		r := c.reader()
		err := changelog.Restore(c.ctx(), r, map[seam.TP]changelog.Target{c.tp: to})
		if !errors.Is(err, changelog.ErrAhead) {
			c.Fatal(err)
		}
		wantValues(c.T, to, "a=1@0")
	})
}

func TestAPartitionThatDoesNotExistIsAnErrorThatNamesIt(t *testing.T) {
	everywhere(t, func(c *cluster) {
		for _, none := range []seam.TP{{Topic: c.tp.Topic, Partition: 7}, {Topic: c.tp.Topic + "-none"}} {
			err := changelog.Restore(c.ctx(), c.reader(), map[seam.TP]changelog.Target{none: newMap()})
			if err == nil || !strings.Contains(err.Error(), none.String()) {
				c.Fatal(err)
			}
		}
	})
}

// Compaction takes replaced and aborted records away, and with this topic's
// settings tombstones at once. The history is full of holes then, and a restore
// from nothing must still end and be right; one from a position whose tombstones
// are gone needs Anew.
func TestACompactedChangelog(t *testing.T) {
	everywhere(t, func(c *cluster) {
		p, old := c.producer(), newPart(c.T)
		p.write(c.tp, "a=1 b=1 commit")
		c.restore(old)
		p.write(c.tp, "b- c=1 commit c=2 commit a=9 d=9 abort c=3 commit")
		end := c.end(c.tp)
		c.compact(p, end, 0, 11)
		fresh := newPart(c.T)
		c.restore(fresh)
		wantValues(c.T, fresh, "a=1@0 c=3@0 roll=1@0")

		r := c.reader()
		jobs, err := r.Jobs(c.ctx(), map[seam.TP]changelog.Target{c.tp: old})
		c.ok(err)
		rs, res := changelog.NewRestorer(r), results{}
		jobs[0].Anew = "the store was away for longer than delete.retention.ms"
		rs.Add(res.of(jobs[0]))
		c.ok(rs.Run(c.ctx()))
		c.ok(res.one(c.T, c.tp))
		wantValues(c.T, old, "a=1@0 c=3@0 roll=1@0")
	})
}
