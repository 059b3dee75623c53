package txn

import (
	"errors"
	"testing"
	"time"

	"github.com/semelstream/semel/txn/internal/proxy"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// A caller with its own loop is told the truth even when EndTxn was not
// answered.
func TestCommitTellsWhatBecameOfItself(t *testing.T) {
	for what, c := range map[string]struct {
		act  proxy.Action
		want bool
	}{
		"answers lost":           {proxy.Action{LoseAnswer: true}, true},
		"requests lost":          {proxy.Action{LoseRequest: true}, false},
		"acted on, told to wait": {proxy.Action{Answer: proxy.Code(kerr.CoordinatorLoadInProgress), Act: true}, true},
		"acted on, told fenced":  {proxy.Action{Answer: proxy.Code(kerr.ProducerFenced), Act: true}, true},
		"told fenced":            {proxy.Action{Answer: proxy.Code(kerr.ProducerFenced)}, false},
	} {
		t.Run(what, func(t *testing.T) {
			both(t, func(t *testing.T, w *world) {
				cp := newCopying(w)
				s, err := Open(w.ctx, cp.config(name("tx"), kgo.RetryTimeout(100*time.Millisecond)))
				w.must(err)
				defer s.Close()
				cp.feed(8)
				want := c.want
				w.net.Set(func(req kmsg.Request) proxy.Action {
					if req.Key() == kmsg.EndTxn.Int16() {
						return c.act
					}
					return proxy.Action{}
				})
				for done := 0; done < cp.fed; {
					recs, err := s.Poll(w.ctx)
					w.must(err)
					tx, err := s.Begin()
					w.must(err)
					w.must(cp.handle(tx, recs))
					for _, r := range recs {
						tx.Done(r)
					}
					ok, err := tx.Commit(w.ctx)
					w.must(err)
					if ok != want {
						t.Fatalf("Commit says %v, the truth is %v", ok, want)
					}
					if ok {
						done += len(recs)
					}
					w.net.Set(nil)
					want = true
				}
				cp.check()
			})
		})
	}
}

// What is not Done when a transaction commits is read again.
func TestRecordsNotDoneComeAgain(t *testing.T) {
	c := newCopying(onFake(t))
	s, err := Open(c.ctx, c.config(name("tx")))
	c.must(err)
	defer s.Close()
	c.feed(12)
	for done := 0; done < c.fed; {
		recs, err := s.Poll(c.ctx)
		c.must(err)
		tx, err := s.Begin()
		c.must(err)
		c.must(c.handle(tx, recs[:1]))
		tx.Done(recs[0])
		if _, err := s.Begin(); err == nil {
			t.Error("two transactions at a time")
		}
		ok, err := tx.Commit(c.ctx)
		c.must(err)
		if !ok {
			t.Fatal("aborted")
		}
		done++
	}
	c.check()
}

func TestAckedHearsOfEveryRecord(t *testing.T) {
	c := newCopying(onFake(t))
	s, err := Open(c.ctx, c.config(name("tx")))
	c.must(err)
	defer s.Close()
	tx, err := s.Begin()
	c.must(err)
	var unsent, sent error
	tx.Produce(rec(c.out, 0, "k", "sent"), func(_ *kgo.Record, err error) { sent = err })
	tx.send(c.ctx)
	tx.Produce(rec(c.out, 0, "k", "unsent"), func(_ *kgo.Record, err error) { unsent = err })
	c.must(tx.Abort(c.ctx))
	if sent != nil || unsent == nil {
		t.Errorf("sent: %v, unsent: %v", sent, unsent)
	}
	if _, err := tx.Commit(c.ctx); !errors.Is(err, errEnded) {
		t.Error("commit after abort:", err)
	}
	if n := len(c.committed(c.out)); n != 0 {
		t.Errorf("%d records are visible", n)
	}
}

func TestConfigSaysWhatIsMissing(t *testing.T) {
	for _, cfg := range []Config{{}, {Group: "g"}, {Group: "g", TransactionalID: "t"}, {Group: "g", TransactionalID: "t", Brokers: []string{"b"}}} {
		if _, err := Open(t.Context(), cfg); err == nil {
			t.Errorf("%+v is accepted", cfg)
		}
	}
}

// A partition that was away and came back between two polls has perhaps been
// processed by somebody else: what was fetched of it before does not count.
func TestPartitionThatWasAwayIsReadFromItsNewOffset(t *testing.T) {
	c := newCopying(onFake(t))
	s, err := Open(c.ctx, c.config(name("tx")))
	c.must(err)
	defer s.Close()
	c.write(rec(c.in, 0, "k", "first"))
	commit := func(want string) {
		t.Helper()
		recs, err := s.Poll(c.ctx)
		c.must(err)
		tx, err := s.Begin()
		c.must(err)
		for _, r := range recs {
			if string(r.Value) != want {
				t.Errorf("read %q, want only %q", r.Value, want)
			}
			tx.Done(r)
		}
		ok, err := tx.Commit(c.ctx)
		c.must(err)
		if !ok {
			t.Fatal("aborted")
		}
	}
	commit("first")
	c.write(rec(c.in, 0, "k", "another's"))
	end := c.ends(c.in)[TP{Topic: c.in}]
	m, _ := s.group.still(s.turn)
	s.group.take(map[string][]int32{c.in: {0}})
	c.must(CommitOffsets(c.ctx, c.ask, m, Offsets{{Topic: c.in}: {At: end, Epoch: -1}}))
	s.group.assigned(map[string][]int32{c.in: {0}})
	c.write(rec(c.in, 0, "k", "ours"))
	commit("ours")
}
