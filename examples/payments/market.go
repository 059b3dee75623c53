package main

import (
	"fmt"
	"math/rand/v2"
)

// A market is what people want: random deposits and payments, some of which
// are sent twice, more than the payer has, or nonsense.
type market struct {
	deposits map[id]Deposit
	payments map[id]Payment
	total    int64 // of deposits
	// In the order in which they are sent, with those sent twice.
	depositsSent []deposit
	paymentsSent []payment
}

// An id of a payment or deposit is unique together with its account.
type id struct{ account, id string }

type deposit struct {
	account string
	Deposit
}

type payment struct {
	payer string
	Payment
}

// opening is what each account begins with, in cents.
const opening = 100_00

// newMarket makes payments of at most most cents, but for the nonsense.
func newMarket(seed uint64, accounts, payments int, most int64) *market {
	m := &market{deposits: map[id]Deposit{}, payments: map[id]Payment{}}
	r := rand.New(rand.NewPCG(seed, 0))
	name := func() string { return account(r.IntN(accounts)) }
	for i := range accounts {
		d := deposit{account(i), Deposit{ID: "opening", Cents: opening}}
		m.deposits[id{d.account, d.ID}] = d.Deposit
		m.total += d.Cents
		m.depositsSent = append(m.depositsSent, d)
		if r.IntN(20) == 0 {
			m.depositsSent = append(m.depositsSent, d)
		}
	}
	for i := range payments {
		p := payment{name(), Payment{ID: fmt.Sprintf("p%d", i), Payee: name(), Cents: 1 + r.Int64N(most)}}
		switch r.IntN(100) {
		case 0:
			p.Cents = 1_000_000_00 // nobody has that
		case 1:
			p.Cents = -p.Cents // would rob the payee
		}
		m.payments[id{p.payer, p.ID}] = p.Payment
		m.paymentsSent = append(m.paymentsSent, p)
		if r.IntN(20) == 0 { // one of those sent before, again
			m.paymentsSent = append(m.paymentsSent, m.paymentsSent[r.IntN(len(m.paymentsSent))])
		}
	}
	return m
}

func account(i int) string { return fmt.Sprintf("account-%04d", i) }
