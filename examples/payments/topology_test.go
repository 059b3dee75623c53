package main

import (
	"cmp"
	"flag"
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/stream"
	"github.com/semelstream/semel/stream/streamtest"
)

var seedFlag = flag.Uint64("seed", 0, "of the random payments; 0 for another one each time")

// inFlight is the repartition topic, where money is on its way.
var inFlight = stream.NewTopic("app-credits-repartition", codec.String, codec.JSON[posting]())

// An auditor reads everything after each commit and checks what must be true
// at every moment.
type auditor struct {
	t  *testing.T
	d  *streamtest.Driver
	j  *judge // of the ledger so far
	in int64  // cents of deposits done
	// Cents taken from payers, sent on their way, and received.
	taken, sent, received int64
}

func newAuditor(t *testing.T, m *market, opts ...streamtest.Option) *auditor {
	d := streamtest.New(t, Topology, append(opts, streamtest.Partitions(3))...)
	return &auditor{t: t, d: d, j: newJudge(m)}
}

func (a *auditor) audit() {
	a.t.Helper()
	for _, r := range a.d.Out(Ledger) {
		e := r.Value
		a.j.entry(r.Key, e)
		switch {
		case e.Other == "":
			a.in += e.Cents
		case e.Cents < 0:
			a.taken -= e.Cents
		default:
			a.received += e.Cents
		}
	}
	for _, r := range a.d.Out(inFlight) {
		a.sent += r.Value.Cents
	}
	for _, r := range a.d.Out(Refused) {
		a.j.refusal(r.Key, r.Value)
	}
	var sum int64
	rows := a.d.Rows[string, int64]("balances")
	for _, b := range rows {
		sum += b
	}
	if sum+a.taken-a.received != a.in {
		a.t.Errorf("%d in the accounts, %d on their way, %d were paid in", sum, a.taken-a.received, a.in)
	}
	if a.sent != a.taken {
		a.t.Errorf("%d were taken from payers, %d sent to payees", a.taken, a.sent)
	}
	if !maps.Equal(rows, a.j.balances) {
		a.t.Errorf("balances %v are not those of the ledger, %v", rows, a.j.balances)
	}
}

// finish commits until nothing is on its way, and judges.
func (a *auditor) finish() {
	a.t.Helper()
	for range 4 { // debits, credits, and what crashes took back
		a.d.Commit()
		a.audit()
	}
	for _, f := range a.j.verdict() {
		a.t.Error(f)
	}
}

var points = []streamtest.Point{
	streamtest.BeforeOffsets, streamtest.BeforeCommit, streamtest.UnknownCommit, streamtest.AfterCommit, streamtest.AfterStore,
}

func TestMoneyIsNeitherMadeNorLostWhereverItCrashes(t *testing.T) {
	for _, point := range points {
		for _, lose := range []bool{false, true} {
			seed := cmp.Or(*seedFlag, rand.Uint64())
			t.Logf("crashes at %s, disk lost %v, seed %d", point, lose, seed)
			r := rand.New(rand.NewPCG(seed, 1))
			a := newAuditor(t, newMarket(seed, 6, 80, opening/2), streamtest.CommitByHand())
			for _, d := range a.j.m.depositsSent {
				a.d.Put(Deposits, d.account, d.Deposit)
			}
			for _, p := range a.j.m.paymentsSent {
				a.d.Put(Payments, p.payer, p.Payment)
				if r.IntN(3) > 0 {
					continue
				}
				if r.IntN(2) == 0 {
					a.d.CrashAt(point)
					if lose {
						a.d.LoseDisk()
					}
				}
				a.d.Commit()
				a.audit()
			}
			a.finish()
			if a.j.done == 0 || a.j.refused == 0 {
				t.Errorf("%d payments done, %d refused: the test shows nothing", a.j.done, a.j.refused)
			}
			if t.Failed() {
				return
			}
		}
	}
}

func TestPaymentThatWasSentTwiceIsDoneOnce(t *testing.T) {
	d := streamtest.New(t, Topology, streamtest.Partitions(3))
	d.Put(Deposits, "ann", Deposit{"d", 100})
	d.Put(Payments, "ann", Payment{"1", "bob", 30})
	d.Crash()
	d.Put(Payments, "ann", Payment{"1", "bob", 30})
	d.Put(Payments, "cid", Payment{"1", "bob", 30}) // the ID of another payer is another
	want := map[string]int64{"ann": 70, "bob": 30}
	if got := d.Rows[string, int64]("balances"); !maps.Equal(got, want) {
		t.Errorf("balances = %v, want %v", got, want)
	}
	if got := d.Out(Refused); len(got) != 1 || got[0].Key != "cid" {
		t.Errorf("refused = %v, want cid's", got)
	}
}

func TestRefusedPaymentStaysRefused(t *testing.T) {
	d := streamtest.New(t, Topology)
	d.Put(Payments, "ann", Payment{"1", "bob", 30}) // has nothing yet
	d.Put(Deposits, "ann", Deposit{"d", 100})
	d.Put(Payments, "ann", Payment{"1", "bob", 30})
	if got := d.Out(Refused); len(got) != 1 {
		t.Errorf("%d refused, want 1", len(got))
	}
	if got := d.Last(Ledger); len(got) != 1 || got["ann"].Balance != 100 {
		t.Errorf("last entries = %v, want ann's deposit only", got)
	}
}

func TestNonsenseIsRefused(t *testing.T) {
	for _, p := range []Payment{{"1", "bob", 0}, {"2", "bob", -5}, {"3", "", 5}, {"4", "bob", 101}} {
		d := streamtest.New(t, Topology)
		d.Put(Deposits, "ann", Deposit{"d", 100})
		d.Put(Payments, "ann", p)
		if got := d.Out(Refused); len(got) != 1 || got[0].Value != p {
			t.Errorf("%+v: refused = %v", p, got)
		}
		if got := d.Last(Ledger)["ann"].Balance; got != 100 {
			t.Errorf("%+v: balance %d", p, got)
		}
	}
}

func TestDepositOfNothingIsADeadLetter(t *testing.T) {
	d := streamtest.New(t, Topology, streamtest.OnError(stream.DeadLetter("bad")), streamtest.Topics("bad"))
	d.Put(Deposits, "ann", Deposit{"d", -100})
	d.Put(Deposits, "ann", Deposit{"d", 100}) // the ID was not used up
	if got := d.DeadLetters("bad"); len(got) != 1 || got[0].Operator != "deposit" {
		t.Errorf("dead letters = %v", got)
	}
	if got := d.Rows[string, int64]("balances")["ann"]; got != 100 {
		t.Errorf("balance %d, want 100", got)
	}
}

func TestAllOfABalanceCanBePaidAlsoToOneself(t *testing.T) {
	d := streamtest.New(t, Topology)
	d.Put(Deposits, "ann", Deposit{"d", 100})
	d.Put(Payments, "ann", Payment{"1", "ann", 100})
	if got := d.Rows[string, int64]("balances")["ann"]; got != 100 {
		t.Errorf("balance %d, want 100", got)
	}
	if n := len(d.Out(Ledger)); n != 3 {
		t.Errorf("%d entries, want deposit, debit and credit", n)
	}
}
